//! `tokens`: revokes tokens of identity providers.

use anyhow::ensure;
use clap::Subcommand;

use super::options::StoreArgs;
use super::output::print_line;
use super::store::on_existing;
use crate::config::Config;
use crate::tokens::MAX_LIFETIME;
use ::store::Store;
use ::store::token_revocations::TokenRevocation;
use values::clock::{Clock as _, SystemClock, Timestamp};

/// The commands about tokens.
#[derive(Debug, Subcommand)]
pub(super) enum TokensCommand {
    /// Revokes the tokens of a subject; they stop working within seconds.
    Revoke {
        /// The identity provider: its `iss`, or its name in the configuration.
        #[arg(long)]
        issuer: String,
        /// The subject: the `sub` of the tokens.
        #[arg(long)]
        sub: String,
        /// Revokes tokens that were issued before this time (RFC 3339); by default now.
        #[arg(long)]
        before: Option<Timestamp>,
        #[command(flatten)]
        store: StoreArgs,
    },
}

/// Runs the command against the configured store.
pub(super) async fn manage(command: TokensCommand) -> anyhow::Result<()> {
    let TokensCommand::Revoke {
        issuer,
        sub,
        before,
        store,
    } = command;
    on_existing(store, async |config, store| {
        let issuer = identifier(config, issuer)?;
        revoke(&**store, issuer, sub, before).await
    })
    .await
}

/// Returns the `iss` of a configured identity provider.
fn identifier(config: &Config, issuer: String) -> anyhow::Result<String> {
    let issuers = &config.tokens.issuers;
    if let Some(named) = issuers.get(&issuer) {
        return Ok(named.issuer.clone());
    }
    let is_known = issuers.values().any(|known| known.issuer == issuer);
    ensure!(is_known, "the configuration has no identity provider {issuer}");
    Ok(issuer)
}

async fn revoke(store: &dyn Store, issuer: String, subject: String, before: Option<Timestamp>) -> anyhow::Result<()> {
    let now = SystemClock.now();
    let revocation = TokenRevocation {
        issuer,
        subject,
        issued_before: before.unwrap_or(now),
        created_at: now,
    };
    store.token_revocation_put(&revocation, now - MAX_LIFETIME).await?;
    Ok(print_line(format_args!(
        "revoked the tokens of {} that were issued before {}",
        revocation.subject, revocation.issued_before
    ))?)
}
