//! `tenants`: removes all data of a tenant.

use std::io::{self, BufRead as _, IsTerminal as _};

use anyhow::{Context as _, ensure};
use clap::Subcommand;

use super::options::StoreArgs;
use super::output::{print_line, print_note};
use super::requester::requester;
use super::store::on_existing;
use crate::app;
use board::Board;
use store::Store;
use tasks::supervision::Supervisor;
use values::tenant::TenantId;

/// The most rows of a table that one transaction removes.
const BATCH: u32 = 1_000;

/// The commands about tenants.
#[derive(Debug, Subcommand)]
pub(super) enum TenantsCommand {
    /// Removes all that belongs to a tenant: sessions, runs, agents, threads, webhooks, keys. It
    /// can't be undone.
    Delete {
        /// The tenant.
        name: TenantId,
        /// Does not ask.
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        store: StoreArgs,
    },
}

/// Runs the command against the store and the board.
pub(super) async fn manage(command: TenantsCommand) -> anyhow::Result<()> {
    let TenantsCommand::Delete { name, yes, store } = command;
    on_existing(store, async |config, store| {
        let board = app::open_shared_board(config, &Supervisor::default()).await?;
        let done = delete(&**store, board.as_ref(), &name, yes).await;
        if let Some(board) = board {
            board.close().await;
        }
        done
    })
    .await
}

async fn delete(store: &dyn Store, board: Option<&Board>, tenant: &TenantId, yes: bool) -> anyhow::Result<()> {
    require_other_keys(store, tenant).await?;
    if !yes {
        confirm(tenant)?;
    }
    let (by, mut rows) = (requester(), 0);
    loop {
        let by = Some(&by).filter(|_| rows == 0);
        let removed = store.tenant_remove(tenant, BATCH, by).await?;
        if removed == 0 {
            break;
        }
        rows += removed;
    }
    if rows > 0 {
        print_line(format_args!("removed the tenant {tenant}: {rows} rows"))?;
    }
    let keys = match board {
        Some(board) => delete_shared(board, tenant).await?,
        None => 0,
    };
    // A tenant without any data is most likely a mistyped name.
    ensure!(rows > 0 || keys > 0, "there is nothing of a tenant {tenant}");
    Ok(())
}

async fn delete_shared(board: &Board, tenant: &TenantId) -> anyhow::Result<u64> {
    let keys = board.tenant_remove(tenant).await.context(
        "nothing is removed from Redis: its data of the tenant expires after `board.event_retention`, or repeat the command when it is back",
    )?;
    print_line(format_args!("removed from Redis: {keys} keys"))?;
    Ok(keys)
}

/// Fails if the tenant has the last keys, since a store without any key is open to everybody.
async fn require_other_keys(store: &dyn Store, tenant: &TenantId) -> anyhow::Result<()> {
    let keys = store.key_list().await?;
    ensure!(
        keys.is_empty() || keys.iter().any(|key| key.tenant != *tenant),
        "all API keys belong to the tenant {tenant}, and without any the service is open to everybody: make a key of another tenant first"
    );
    Ok(())
}

fn confirm(tenant: &TenantId) -> anyhow::Result<()> {
    let stdin = io::stdin();
    ensure!(
        stdin.is_terminal(),
        "no terminal to confirm on: pass --yes to remove all data of the tenant {tenant}"
    );
    print_note(format_args!(
        "This removes all that belongs to the tenant {tenant}, for good. Type its name to continue:"
    ))?;
    let mut typed = String::new();
    stdin.lock().read_line(&mut typed)?;
    ensure!(typed.trim() == tenant.as_str(), "nothing was removed");
    Ok(())
}
