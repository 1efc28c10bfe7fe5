//! `sessions`: shows stored sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::Subcommand;

use super::absent::absent;
use super::files::{self, FilesArgs};
use super::output::{print_json, print_line, print_list};
use super::transfer::{ExportArgs, ImportArgs, export, import};
use super::{ReadArgs, moment};
use crate::app::{self, Extensions};
use crate::config::Config;
use crate::http::{SessionDiff, SessionView};
use crate::run::files::{diff_files, open_tree};
use agent::record::ThreadName;
use store::retention::Ancestor;
use store::sessions::SessionFilter;
use store::{Page, Sessions, Store};
use values::clock::SystemClock;
use values::ids::SessionId;
use values::session::{Bundle, SessionHead};
use values::tenant::TenantId;
use workspace::WorkspaceLimits;

/// The most sessions that a tree shows.
const MAX_TREE: usize = 1_000;
/// The most sessions that one query returns.
const PAGE: u32 = 200;

/// The commands about sessions.
#[derive(Debug, Subcommand)]
pub(super) enum SessionsCommand {
    /// Lists sessions, newest first.
    List(ListArgs),
    /// Prints a session with its states as JSON.
    Show {
        /// The session.
        session_id: SessionId,
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Prints sessions as the tree that continuing and forking have made.
    Tree {
        /// Only the tree of this session; by default the newest 1,000 sessions.
        session_id: Option<SessionId>,
        /// Works on this tenant's data.
        #[arg(long, default_value_t = TenantId::anonymous())]
        tenant: TenantId,
    },
    /// Lists the files of a session, or prints one of them.
    Files(FilesArgs),
    /// Writes a session and its ancestors into a file, with all that is needed to continue them.
    Export(ExportArgs),
    /// Stores the sessions of such a file, with the same ids and hashes.
    Import(ImportArgs),
    /// Prints how two sessions differ as JSON.
    Diff {
        /// The one session.
        left: SessionId,
        /// The other session.
        right: SessionId,
        #[command(flatten)]
        read: ReadArgs,
    },
}

/// The sessions to list.
#[derive(Debug, clap::Args)]
pub(super) struct ListArgs {
    /// Only of this agent.
    #[arg(long)]
    agent: Option<String>,
    /// Only sessions that runs on this thread have published.
    #[arg(long)]
    thread: Option<ThreadName>,
    /// Only sessions that nothing continues.
    #[arg(long)]
    tips: bool,
    /// The most sessions.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    limit: u32,
    #[command(flatten)]
    read: ReadArgs,
}

/// Runs the command against the store.
pub(super) async fn inspect(
    config: &Config,
    store: &Arc<dyn Store>,
    command: SessionsCommand,
    extensions: Extensions,
) -> anyhow::Result<()> {
    match command {
        SessionsCommand::List(args) => show_list(&**store, args).await,
        SessionsCommand::Show { session_id, read } => {
            print_json(&SessionView::whole(&*load(store, &read.tenant, session_id).await?))
        }
        SessionsCommand::Tree { session_id, tenant } => show_tree(&**store, &tenant, session_id).await,
        SessionsCommand::Files(args) => files::show(store, args).await,
        SessionsCommand::Export(args) => {
            let (agents, _) = app::agent_directory(store, config, extensions)?;
            export(&**store, &agents, args).await
        }
        SessionsCommand::Import(args) => {
            let (agents, _) = app::agent_directory(store, config, extensions)?;
            import(config, store, &agents, args).await
        }
        SessionsCommand::Diff { left, right, read } => {
            let left = load(store, &read.tenant, left).await?;
            let right = load(store, &read.tenant, right).await?;
            let trees = [&left, &right]
                .map(|bundle| open_tree(store, &read.tenant, &bundle.environment, WorkspaceLimits::default()));
            let files = diff_files(&read.tenant, &trees[0], &trees[1]).await?;
            print_json(&SessionDiff::whole(&left, &right, files)?)
        }
    }
}

async fn show_list(store: &dyn Store, args: ListArgs) -> anyhow::Result<()> {
    let filter = SessionFilter {
        agent: args.agent,
        thread: args.thread,
        tips_only: args.tips,
        ..SessionFilter::default()
    };
    let page = Page {
        before: None,
        limit: args.limit,
    };
    let sessions = store.session_list(&args.read.tenant, &filter, page).await?;
    let heading = ["SESSION", "CREATED", "AGENT", "MESSAGES", "PARENT"];
    print_list(args.read.json, sessions, |head| head, heading, row)
}

fn row(head: &SessionHead) -> [String; 5] {
    [
        head.session_id.to_string(),
        moment(head.created_at),
        head.agent.clone(),
        head.message_count.to_string(),
        head.parent_session_id.map_or_else(String::new, |id| id.to_string()),
    ]
}

async fn show_tree(store: &dyn Store, tenant: &TenantId, session_id: Option<SessionId>) -> anyhow::Result<()> {
    let heads = match session_id {
        Some(session_id) => tree_of(store, tenant, session_id).await?,
        None => list(store, tenant, &SessionFilter::default()).await?,
    };
    let shown: BTreeMap<SessionId, &SessionHead> = heads.iter().map(|head| (head.session_id, head)).collect();
    let mut children: BTreeMap<Option<SessionId>, Vec<&SessionHead>> = BTreeMap::new();
    for head in shown.values() {
        let parent = head.parent_session_id.filter(|parent| shown.contains_key(parent));
        children.entry(parent).or_default().push(head);
    }
    print_tree(&children)
}

/// Prints the sessions as a tree: children of a fork are indented, and an arrow marks a session
/// that continues the session above it. Uses an explicit stack, since a conversation may be too
/// deep for recursion.
fn print_tree(children: &BTreeMap<Option<SessionId>, Vec<&SessionHead>>) -> anyhow::Result<()> {
    let children_of = |parent: Option<SessionId>| children.get(&parent).map_or(&[][..], Vec::as_slice);
    let mut open: Vec<(usize, &str, &SessionHead)> = children_of(None).iter().map(|root| (0, "", *root)).collect();
    while let Some((indent, arrow, head)) = open.pop() {
        let created = head.created_at.format("%Y-%m-%d %H:%M:%S");
        let (session_id, agent, messages) = (head.session_id, &head.agent, head.message_count);
        print_line(format_args!(
            "{:indent$}{arrow}{session_id}  {created}  {agent}  {messages} messages",
            ""
        ))?;
        let continued = children_of(Some(session_id));
        let (indent, arrow) = if continued.len() > 1 {
            (indent + 2, "")
        } else {
            (indent, "↳ ")
        };
        open.extend(continued.iter().map(|child| (indent, arrow, *child)));
    }
    Ok(())
}

async fn tree_of(store: &dyn Store, tenant: &TenantId, session_id: SessionId) -> anyhow::Result<Vec<SessionHead>> {
    let mut root = None;
    let mut before = None;
    'upwards: loop {
        let page = Page { before, limit: PAGE };
        let Some(lineage) = store.session_lineage(tenant, session_id, page).await? else {
            return Err(absent(store, tenant, session_id).await);
        };
        let Some(oldest) = lineage.last() else { break };
        before = Some(oldest.session_id());
        for ancestor in lineage {
            // The tree begins below a removed ancestor.
            let Ancestor::Retained(head) = ancestor else {
                break 'upwards;
            };
            root = Some(head);
        }
    }
    let mut found: Vec<SessionHead> = root.into_iter().collect();
    let mut next = 0;
    while next < found.len() && found.len() < MAX_TREE {
        let filter = SessionFilter {
            parent: Some(found[next].session_id),
            ..SessionFilter::default()
        };
        found.extend(list(store, tenant, &filter).await?);
        next += 1;
    }
    Ok(found)
}

async fn list(store: &dyn Store, tenant: &TenantId, filter: &SessionFilter) -> anyhow::Result<Vec<SessionHead>> {
    let mut heads: Vec<SessionHead> = Vec::new();
    while heads.len() < MAX_TREE {
        let page = Page {
            before: heads.last().map(|head| head.session_id),
            limit: PAGE,
        };
        let more = store.session_list(tenant, filter, page).await?;
        if more.is_empty() {
            break;
        }
        heads.extend(more);
    }
    Ok(heads)
}

/// Loads a session with all its messages.
async fn load(store: &Arc<dyn Store>, tenant: &TenantId, session_id: SessionId) -> anyhow::Result<Arc<Bundle>> {
    let sessions = Sessions::new(Arc::clone(store), 0, Arc::new(SystemClock));
    let bundle = sessions.whole_bundle(tenant, session_id).await?;
    match bundle {
        Some(bundle) => Ok(bundle),
        None => Err(absent(store.as_ref(), tenant, session_id).await),
    }
}
