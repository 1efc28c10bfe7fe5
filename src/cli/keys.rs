//! `keys`: manages API keys. A secret is shown once, when it is made; the store has its hash.

use anyhow::{Context as _, anyhow, ensure};
use clap::Subcommand;
use secrecy::ExposeSecret as _;
use serde_json::json;

use super::options::StoreArgs;
use super::output::{JsonArgs, moment, print_line, print_list, print_note};
use super::requester::requester;
use super::store::{self, on_existing};
use crate::api_key;
use ::store::Store;
use ::store::keys::{ApiKeyRecord, Scope};
use values::clock::{Clock as _, SystemClock};
use values::ids::{ApiKeyId, ParseIdError, UuidV7Source};
use values::json::Value;
use values::limits::{ParsePatternError, Pattern, RunLimits, SpendLimits};
use values::session::Hash;
use values::tenant::TenantId;
use values::usage::Cost;

/// The commands about keys.
#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// Makes a key and prints it. From the first key on, every request needs one.
    Create {
        /// The tenant whose data the key opens.
        #[arg(long)]
        tenant: TenantId,
        /// The scopes of the key: `runs:write`, `sessions:read`, `admin`, `metrics`, `audit`.
        #[arg(long = "scope", value_delimiter = ',', default_value = "runs:write,sessions:read")]
        scopes: Vec<Scope>,
        /// The purpose of the key.
        #[arg(long, default_value = "")]
        label: String,
        #[command(flatten)]
        limits: KeyLimits,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Lists keys, newest first.
    List {
        #[command(flatten)]
        json: JsonArgs,
        #[command(flatten)]
        store: StoreArgs,
    },
    /// Revokes a key; it stops working within seconds.
    Revoke {
        /// The key's id, as `keys list` shows it, or the key itself.
        #[arg(value_name = "KEY_ID", value_parser = named)]
        key: NamedKey,
        #[command(flatten)]
        store: StoreArgs,
    },
}

/// A key that is there already.
#[derive(Debug, Clone, Copy)]
pub(super) enum NamedKey {
    /// By its id.
    Id(ApiKeyId),
    /// By its secret, which no message may repeat.
    Secret(Hash),
}

fn named(text: &str) -> Result<NamedKey, ParseIdError> {
    match api_key::hash_secret(text) {
        Some(hash) => Ok(NamedKey::Secret(hash)),
        None => text.parse().map(NamedKey::Id),
    }
}

/// The limits of runs of a key; if absent, the limits of the tenant.
#[derive(Debug, clap::Args)]
pub(super) struct KeyLimits {
    /// The most steps of a run.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    max_steps: Option<u32>,
    /// The most tokens of a run, input and output together.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    max_tokens: Option<u64>,
    /// The most seconds of a run.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    max_seconds: Option<u32>,
    /// The most US dollars of a run.
    #[arg(long, value_parser = dollars)]
    max_cost: Option<Cost>,
    /// The most US dollars of all runs in a day.
    #[arg(long, value_parser = dollars)]
    max_cost_per_day: Option<Cost>,
    /// The most US dollars of all runs in a month.
    #[arg(long, value_parser = dollars)]
    max_cost_per_month: Option<Cost>,
    /// Patterns of the agents that may work, such as `support-*`.
    #[arg(long, value_delimiter = ',')]
    agents: Vec<Pattern>,
    /// Patterns of the models that may be asked, such as `openai/gpt-4.1*`.
    #[arg(long, value_delimiter = ',', value_parser = model_pattern)]
    models: Vec<Pattern>,
    /// Patterns of the providers that may be asked.
    #[arg(long, value_delimiter = ',')]
    providers: Vec<Pattern>,
}

fn model_pattern(text: &str) -> Result<Pattern, String> {
    let pattern: Pattern = text.parse().map_err(|error: ParsePatternError| error.to_string())?;
    pattern.check_for_models().map(|()| pattern)
}

fn dollars(text: &str) -> Result<Cost, String> {
    let dollars = text.parse().ok().and_then(Cost::from_dollars);
    dollars.ok_or_else(|| "not an amount of US dollars".to_owned())
}

impl From<KeyLimits> for RunLimits {
    fn from(limits: KeyLimits) -> Self {
        Self {
            max_steps: limits.max_steps,
            max_tokens: limits.max_tokens,
            max_seconds: limits.max_seconds,
            max_cost: limits.max_cost,
            agents: limits.agents,
            models: limits.models,
            providers: limits.providers,
            spend: SpendLimits {
                day: limits.max_cost_per_day,
                month: limits.max_cost_per_month,
            },
        }
    }
}

/// Runs the command against the configured store.
pub(super) async fn manage(command: KeysCommand) -> anyhow::Result<()> {
    match command {
        KeysCommand::Create {
            tenant,
            scopes,
            label,
            limits,
            store,
        } => {
            // A key may be created before the first start of the service.
            let store = store::open_or_make(&store.load()?.config).await?;
            let done = create(&*store, tenant, scopes, label, limits.into()).await;
            store.close().await;
            done
        }
        KeysCommand::List { json, store } => on_existing(store, async |_, store| list(&**store, json).await).await,
        KeysCommand::Revoke { key, store } => on_existing(store, async |_, store| revoke(&**store, key).await).await,
    }
}

async fn create(
    store: &dyn Store,
    tenant: TenantId,
    scopes: Vec<Scope>,
    label: String,
    limits: RunLimits,
) -> anyhow::Result<()> {
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
        limits,
        created_at,
        revoked_at: None,
    };
    let is_first = !store.key_exists().await?;
    store.key_insert(&key, &requester()).await?;
    print_line(secret.expose_secret())?;
    print_note(format_args!(
        "made the key {key_id} of tenant {}; it is not shown again",
        key.tenant
    ))?;
    let soon = if is_first { " within a second" } else { "" };
    Ok(print_note(format_args!(
        "authentication is on{soon}: every service on this store wants `authorization: Bearer` with a key in each request"
    ))?)
}

async fn list(store: &dyn Store, JsonArgs { json }: JsonArgs) -> anyhow::Result<()> {
    let heading = ["KEY", "TENANT", "SCOPES", "CREATED", "STATE", "LABEL", "LIMITS"];
    print_list(json, store.key_list().await?, |key| shown(&key), heading, row)
}

fn row(key: &ApiKeyRecord) -> [String; 7] {
    let scopes: Vec<_> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    [
        key.key_id.to_string(),
        key.tenant.to_string(),
        scopes.join(","),
        moment(key.created_at),
        if key.revoked_at.is_some() { "revoked" } else { "active" }.to_owned(),
        key.label.clone(),
        if key.limits.is_empty() {
            String::new()
        } else {
            serde_json::to_string(&key.limits).unwrap_or_default()
        },
    ]
}

fn shown(key: &ApiKeyRecord) -> Value {
    let scopes: Vec<_> = key.scopes.iter().map(|scope| scope.as_str()).collect();
    json!({
        "key_id": key.key_id,
        "tenant": key.tenant,
        "scopes": scopes,
        "label": key.label,
        "limits": key.limits,
        "created_at": key.created_at,
        "revoked_at": key.revoked_at,
    })
}

async fn revoke(store: &dyn Store, key: NamedKey) -> anyhow::Result<()> {
    let key_id = match key {
        NamedKey::Id(key_id) => key_id,
        NamedKey::Secret(hash) => {
            let found = store.key_lookup(hash).await?;
            found.context("this is no active key of this store")?.key_id
        }
    };
    ensure!(
        store.key_revoke(key_id, &requester()).await?,
        "there is no active key {key_id}"
    );
    Ok(print_line(format_args!("revoked {key_id}"))?)
}
