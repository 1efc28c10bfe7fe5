//! `tokens`: revokes tokens of identity providers.

use anyhow::Context as _;
use clap::Subcommand;

use super::options::StoreArgs;
use super::output::print_line;
use super::requester::requester;
use super::store::on_existing;
use crate::config::Config;
use crate::tokens::{IssuerSettings, MAX_LIFETIME};
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
        /// Revokes tokens that were issued before this time (RFC 3339). By default all that
        /// are valid now.
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
        let now = SystemClock.now();
        let settings = find(config, &issuer)?;
        let revocation = TokenRevocation {
            issuer: settings.issuer.clone(),
            subject: sub,
            // The clock of the provider may be ahead.
            issued_before: before.unwrap_or(now + settings.leeway),
        };
        store
            .token_revocation_put(&revocation, now - MAX_LIFETIME, &requester())
            .await?;
        Ok(print_line(format_args!(
            "revoked the tokens of {} that were issued before {}",
            revocation.subject, revocation.issued_before
        ))?)
    })
    .await
}

/// Finds a configured identity provider by its name or its `iss`.
fn find<'a>(config: &'a Config, issuer: &str) -> anyhow::Result<&'a IssuerSettings> {
    let issuers = &config.tokens.issuers;
    let found = issuers
        .get(issuer)
        .or_else(|| issuers.values().find(|known| known.issuer == issuer));
    found.with_context(|| format!("the configuration has no identity provider {issuer}"))
}
