//! Opens the store for a command and prints its name, so that the user notices a store that is not
//! the service's.

use std::sync::Arc;

use super::options::StoreArgs;
use super::output::{print_line, print_note};
use crate::app;
use crate::config::Config;
use store::{self, Store};

/// Runs a command on the configured store, which must exist.
pub(super) async fn on_existing(
    args: StoreArgs,
    command: impl AsyncFnOnce(&Config, &Arc<dyn Store>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let config = args.load()?.config;
    let store = open_existing(&config).await?;
    let done = command(&config, &store).await;
    store.close().await;
    done
}

/// Opens the store for a command that needs existing data. Does not create a missing store.
pub(super) async fn open_existing(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    let store = app::open_existing_store(config).await?;
    name(config, false)?;
    Ok(store)
}

/// Opens the store for a command that adds data. Creates a missing store.
pub(super) async fn open_or_make(config: &Config) -> anyhow::Result<Arc<dyn Store>> {
    let is_new = is_missing(config)?;
    let store = app::open_store(config).await?;
    name(config, is_new)?;
    Ok(store)
}

/// Migrates the configured store to the newest schema.
pub(super) async fn migrate(config: &Config) -> anyhow::Result<()> {
    store::migrate(config.store.url.expose()).await?;
    Ok(print_line(format_args!("{} is up to date", config.store.address()))?)
}

/// Returns whether the store is a file that does not exist yet.
pub(super) fn is_missing(config: &Config) -> anyhow::Result<bool> {
    Ok(store::missing_file(config.store.url.expose())?.is_some())
}

/// Prints the name of the store.
pub(super) fn name(config: &Config, is_new: bool) -> std::io::Result<()> {
    let address = config.store.address();
    let note = if is_new { " (new)" } else { "" };
    print_note(format_args!("store {address}{note}"))
}
