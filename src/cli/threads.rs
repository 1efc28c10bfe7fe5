//! `threads`: shows threads.

use anyhow::Context as _;
use clap::Subcommand;
use serde::Deserialize;

use super::item::Item;
use super::output::{moment, print_items, print_json};
use super::source::{ReadArgs, Source};
use agent::record::{ThreadName, ThreadRecord};
use store::Store;
use store::threads::{ThreadFilter, ThreadPage};
use values::clock::Timestamp;
use values::ids::SessionId;
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

/// The fields of a thread that a row shows.
#[derive(Deserialize)]
struct ThreadFields {
    name: String,
    session_id: Option<SessionId>,
    version: u64,
    updated_at: Timestamp,
}

/// Runs the command.
pub(super) async fn inspect(command: ThreadsCommand) -> anyhow::Result<()> {
    match command {
        ThreadsCommand::List {
            read: ReadArgs { json, source },
        } => {
            source
                .with(async |source| {
                    let threads = match source {
                        Source::Store { store, tenant, .. } => Item::all(list(&***store, tenant).await?)?,
                        Source::Service(service) => service.list("/v1/threads", &[], usize::MAX).await?,
                    };
                    print_items(json, &threads, ["THREAD", "SESSION", "VERSION", "UPDATED"], row)
                })
                .await
        }
        ThreadsCommand::Show { name, read } => read.source.with(async |source| show(source, &name).await).await,
    }
}

async fn show(source: &Source<'_>, name: &ThreadName) -> anyhow::Result<()> {
    match source {
        Source::Store { store, tenant, .. } => {
            let thread = store.thread_lookup(tenant, name).await?;
            print_json(&thread.with_context(|| format!("there is no thread named \"{name}\""))?)
        }
        // A name has no character that a path can't have.
        Source::Service(service) => print_json(&service.get_json(&format!("/v1/threads/{name}")).await?),
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

fn row(thread: &ThreadFields) -> [String; 4] {
    [
        thread.name.clone(),
        thread
            .session_id
            .map_or_else(|| "none yet".to_owned(), |id| id.to_string()),
        thread.version.to_string(),
        moment(thread.updated_at),
    ]
}
