//! `threads`: shows threads.

use std::sync::Arc;

use anyhow::Context as _;
use clap::Subcommand;

use super::output::{print_json, print_list};
use super::{ReadArgs, moment};
use agent::record::{ThreadName, ThreadRecord};
use store::Store;
use store::threads::{ThreadFilter, ThreadPage};
use values::tenant::TenantId;

/// The most threads that one query returns.
const PAGE: u32 = 200;

/// The commands about threads.
#[derive(Debug, Subcommand)]
pub(super) enum ThreadsCommand {
    /// Lists threads by name.
    List {
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Prints where a thread points to as JSON.
    Show {
        /// The thread's name.
        name: ThreadName,
        #[command(flatten)]
        read: ReadArgs,
    },
}

/// Runs the command against the store.
pub(super) async fn inspect(store: &Arc<dyn Store>, command: ThreadsCommand) -> anyhow::Result<()> {
    match command {
        ThreadsCommand::List { read } => {
            let threads = list(&**store, &read.tenant).await?;
            let heading = ["THREAD", "SESSION", "VERSION", "UPDATED"];
            print_list(read.json, threads, |thread| thread, heading, row)
        }
        ThreadsCommand::Show { name, read } => {
            let thread = store.thread_lookup(&read.tenant, &name).await?;
            let thread = thread.with_context(|| format!("there is no thread named \"{name}\""))?;
            print_json(&thread)
        }
    }
}

async fn list(store: &dyn Store, tenant: &TenantId) -> anyhow::Result<Vec<ThreadRecord>> {
    let mut all: Vec<ThreadRecord> = Vec::new();
    loop {
        let page = ThreadPage {
            after: all.last().map(|thread| thread.name.clone()),
            limit: PAGE,
        };
        let more = store.thread_list(tenant, &ThreadFilter::default(), &page).await?;
        if more.is_empty() {
            return Ok(all);
        }
        all.extend(more);
    }
}

fn row(thread: &ThreadRecord) -> [String; 4] {
    [
        thread.name.to_string(),
        thread
            .session_id
            .map_or_else(|| "none yet".to_owned(), |id| id.to_string()),
        thread.version.to_string(),
        moment(thread.updated_at),
    ]
}
