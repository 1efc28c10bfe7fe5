//! `keys`: API keys. A secret is shown once, when it is made; the store keeps its hash.

use anyhow::{anyhow, ensure};
use clap::Subcommand;
use secrecy::ExposeSecret as _;

use super::output::{print_line, print_note};
use crate::api_key;
use crate::app;
use crate::clock::{Clock as _, SystemClock};
use crate::config::Config;
use crate::ids::{ApiKeyId, UuidV7Source};
use crate::store::{ApiKeyRecord, Scope, Store};
use crate::tenant::TenantId;

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Makes a key and prints it. From the first key on, every request needs one.
    Create {
        /// The tenant whose data the key opens.
        #[arg(long)]
        tenant: TenantId,
        /// What the key allows: `runs:write`, `sessions:read`, `admin`.
        #[arg(long = "scope", value_delimiter = ',', default_values = ["runs:write", "sessions:read"])]
        scopes: Vec<Scope>,
        /// What the key is for.
        #[arg(long, default_value = "")]
        label: String,
    },
    /// Lists keys, newest first.
    List,
    /// Revokes a key; it stops working within seconds.
    Revoke {
        /// The key's id, as `keys list` shows it.
        key_id: ApiKeyId,
    },
}

/// Runs the command against the configured store.
pub(super) async fn manage(config: Config, command: KeysCommand) -> anyhow::Result<()> {
    let store = app::open_store(&config).await?;
    let done = match command {
        KeysCommand::Create { tenant, scopes, label } => {
            let made = create(&*store, tenant, scopes, label).await;
            made.and_then(|()| Ok(print_note(format_args!("the store is {}", config.store.url))?))
        }
        KeysCommand::List => list(&*store).await,
        KeysCommand::Revoke { key_id } => revoke(&*store, key_id).await,
    };
    store.close().await;
    done
}

async fn create(store: &dyn Store, tenant: TenantId, scopes: Vec<Scope>, label: String) -> anyhow::Result<()> {
    let (secret, secret_hash) =
        api_key::generate().map_err(|error| anyhow!("the operating system gives no random bytes: {error}"))?;
    let key_id = ApiKeyId::generate(&UuidV7Source);
    let created_at = SystemClock.now();
    let key = ApiKeyRecord {
        key_id,
        secret_hash,
        tenant,
        scopes,
        label,
        created_at,
        revoked_at: None,
    };
    store.key_insert(&key).await?;
    print_line(secret.expose_secret())?;
    Ok(print_note(format_args!(
        "made the key {key_id} of tenant {}; it is not shown again",
        key.tenant
    ))?)
}

async fn list(store: &dyn Store) -> anyhow::Result<()> {
    print_line(format_args!(
        "{:<36}  {:<16}  {:<32}  {:<25}  STATE    LABEL",
        "KEY", "TENANT", "SCOPES", "CREATED"
    ))?;
    for key in store.key_list().await? {
        let scopes: Vec<_> = key.scopes.iter().map(|scope| scope.as_str()).collect();
        let state = if key.revoked_at.is_some() { "revoked" } else { "active" };
        let created = key.created_at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        let (tenant, scopes, label) = (key.tenant.as_str(), scopes.join(","), key.label);
        print_line(format_args!(
            "{}  {tenant:<16}  {scopes:<32}  {created:<25}  {state:<7}  {label}",
            key.key_id
        ))?;
    }
    Ok(())
}

async fn revoke(store: &dyn Store, key_id: ApiKeyId) -> anyhow::Result<()> {
    ensure!(
        store.key_revoke(key_id, SystemClock.now()).await?,
        "there is no active key {key_id}"
    );
    Ok(print_line(format_args!("revoked {key_id}"))?)
}
