//! `migrate`: migrates the store's schema to the newest version.

use super::output::print_line;
use crate::config::Config;
use crate::store;

/// Migrates the configured store.
pub(super) async fn migrate(config: Config) -> anyhow::Result<()> {
    store::migrate(config.store.url.expose()).await?;
    Ok(print_line(format_args!("{} is up to date", config.store.address()))?)
}
