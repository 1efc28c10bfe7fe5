//! `sessions`: shows sessions.

use std::collections::BTreeMap;
use std::sync::Arc;

use clap::Subcommand;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::absent::absent;
use super::files::{self, FilesArgs};
use super::item::Item;
use super::output::{moment, print_items, print_json, print_line};
use super::source::{ReadArgs, Source, SourceArgs};
use super::transfer::{ExportArgs, ImportArgs, export, import};
use crate::app::Extensions;
use crate::http::{SessionDiff, SessionView};
use crate::run::files::{diff_files, open_tree};
use agent::record::ThreadName;
use store::sessions::SessionFilter;
use store::{Page, Sessions, Store};
use values::clock::{SystemClock, Timestamp};
use values::ids::SessionId;
use values::session::Bundle;
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
        #[command(flatten)]
        source: SourceArgs,
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

/// The fields of a session that a row or a tree shows.
#[derive(Deserialize)]
struct SessionFields {
    session_id: SessionId,
    parent_session_id: Option<SessionId>,
    created_at: Timestamp,
    agent: String,
    message_count: u64,
}

/// A session of a line.
#[derive(Deserialize)]
#[serde(untagged)]
enum AncestorFields {
    Retained(SessionFields),
    Removed(IgnoredAny),
}

/// Runs the command.
pub(super) async fn inspect(command: SessionsCommand, extensions: Extensions) -> anyhow::Result<()> {
    match command {
        SessionsCommand::List(args) => {
            let ReadArgs { json, source } = args.read.clone();
            source.with(async |source| show_list(source, json, args).await).await
        }
        SessionsCommand::Show { session_id, read } => {
            read.source.with(async |source| show(source, session_id).await).await
        }
        SessionsCommand::Tree { session_id, source } => {
            source.with(async |source| show_tree(source, session_id).await).await
        }
        SessionsCommand::Files(args) => files::show(args).await,
        SessionsCommand::Export(args) => export(args, extensions).await,
        SessionsCommand::Import(args) => import(args, extensions).await,
        SessionsCommand::Diff { left, right, read } => {
            read.source
                .with(async |source| show_diff(source, left, right).await)
                .await
        }
    }
}

async fn show(source: &Source<'_>, session_id: SessionId) -> anyhow::Result<()> {
    match source {
        Source::Store { store, tenant, .. } => {
            print_json(&SessionView::whole(&*load(store, tenant, session_id).await?))
        }
        Source::Service(service) => print_json(&service.get_json(&format!("/v1/sessions/{session_id}")).await?),
    }
}

async fn show_diff(source: &Source<'_>, left: SessionId, right: SessionId) -> anyhow::Result<()> {
    let (store, tenant) = match source {
        Source::Store { store, tenant, .. } => (*store, tenant),
        Source::Service(service) => {
            return print_json(&service.get_json(&format!("/v1/sessions/{left}/diff/{right}")).await?);
        }
    };
    let left = load(store, tenant, left).await?;
    let right = load(store, tenant, right).await?;
    let trees = [&left, &right].map(|bundle| open_tree(store, tenant, &bundle.environment, WorkspaceLimits::default()));
    let files = diff_files(tenant, &trees[0], &trees[1]).await?;
    print_json(&SessionDiff::whole(&left, &right, files)?)
}

async fn show_list(source: &Source<'_>, json: bool, args: ListArgs) -> anyhow::Result<()> {
    let filter = SessionFilter {
        agent: args.agent,
        thread: args.thread,
        tips_only: args.tips,
        ..SessionFilter::default()
    };
    let sessions = list(source, filter, args.limit as usize).await?;
    let heading = ["SESSION", "CREATED", "AGENT", "MESSAGES", "PARENT"];
    print_items(json, &sessions, heading, row)
}

fn row(session: &SessionFields) -> [String; 5] {
    [
        session.session_id.to_string(),
        moment(session.created_at),
        session.agent.clone(),
        session.message_count.to_string(),
        session.parent_session_id.map_or_else(String::new, |id| id.to_string()),
    ]
}

async fn show_tree(source: &Source<'_>, session_id: Option<SessionId>) -> anyhow::Result<()> {
    let sessions = match session_id {
        Some(session_id) => tree_of(source, session_id).await?,
        None => fields(list(source, SessionFilter::default(), MAX_TREE).await?),
    };
    let shown: BTreeMap<SessionId, &SessionFields> =
        sessions.iter().map(|session| (session.session_id, session)).collect();
    let mut children: BTreeMap<Option<SessionId>, Vec<&SessionFields>> = BTreeMap::new();
    for session in shown.values() {
        let parent = session.parent_session_id.filter(|parent| shown.contains_key(parent));
        children.entry(parent).or_default().push(session);
    }
    print_tree(&children)
}

fn fields<F>(items: Vec<Item<F>>) -> Vec<F> {
    items.into_iter().map(|item| item.fields).collect()
}

/// Prints the sessions as a tree: children of a fork are indented, and an arrow marks a session
/// that continues the session above it. Uses an explicit stack, since a conversation may be too
/// deep for recursion.
fn print_tree(children: &BTreeMap<Option<SessionId>, Vec<&SessionFields>>) -> anyhow::Result<()> {
    let children_of = |parent: Option<SessionId>| children.get(&parent).map_or(&[][..], Vec::as_slice);
    let mut open: Vec<(usize, &str, &SessionFields)> = children_of(None).iter().map(|root| (0, "", *root)).collect();
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

async fn tree_of(source: &Source<'_>, session_id: SessionId) -> anyhow::Result<Vec<SessionFields>> {
    let line = fields(lineage(source, session_id).await?).into_iter();
    // The tree begins below a removed ancestor.
    let retained = line.map_while(|ancestor| match ancestor {
        AncestorFields::Retained(session) => Some(session),
        AncestorFields::Removed(_) => None,
    });
    let mut found: Vec<SessionFields> = retained.last().into_iter().collect();
    let mut next = 0;
    while next < found.len() && found.len() < MAX_TREE {
        let filter = SessionFilter {
            parent: Some(found[next].session_id),
            ..SessionFilter::default()
        };
        found.extend(fields(list(source, filter, MAX_TREE).await?));
        next += 1;
    }
    Ok(found)
}

/// Reads a session and its ancestors, itself first.
async fn lineage(source: &Source<'_>, session_id: SessionId) -> anyhow::Result<Vec<Item<AncestorFields>>> {
    let (store, tenant) = match source {
        Source::Store { store, tenant, .. } => (*store, tenant),
        Source::Service(service) => {
            let path = format!("/v1/sessions/{session_id}/lineage");
            return Ok(service.list(&path, &[], usize::MAX).await?);
        }
    };
    let mut line = Vec::new();
    let mut before = None;
    loop {
        let page = Page { before, limit: PAGE };
        let Some(more) = store.session_lineage(tenant, session_id, page).await? else {
            return Err(absent(&**store, tenant, session_id).await);
        };
        let Some(oldest) = more.last() else { return Ok(line) };
        before = Some(oldest.session_id());
        line.extend(Item::all(more)?);
    }
}

/// Lists sessions, newest first. A filter by parent has no other fields.
async fn list(source: &Source<'_>, filter: SessionFilter, most: usize) -> anyhow::Result<Vec<Item<SessionFields>>> {
    match source {
        Source::Store { store, tenant, .. } => list_stored(&***store, tenant, &filter, most).await,
        Source::Service(service) => {
            let path = match filter.parent {
                Some(parent) => format!("/v1/sessions/{parent}/children"),
                None => "/v1/sessions".to_owned(),
            };
            let filters = [
                ("agent", filter.agent),
                ("thread", filter.thread.map(|thread| thread.to_string())),
                ("tips", filter.tips_only.then(|| "true".to_owned())),
            ];
            Ok(service.list(&path, &filters, most).await?)
        }
    }
}

async fn list_stored(
    store: &dyn Store,
    tenant: &TenantId,
    filter: &SessionFilter,
    most: usize,
) -> anyhow::Result<Vec<Item<SessionFields>>> {
    let mut sessions: Vec<Item<SessionFields>> = Vec::new();
    while sessions.len() < most {
        let page = Page {
            before: sessions.last().map(|session| session.fields.session_id),
            limit: u32::try_from(most - sessions.len()).map_or(PAGE, |room| room.min(PAGE)),
        };
        let more = store.session_list(tenant, filter, page).await?;
        if more.is_empty() {
            break;
        }
        sessions.extend(Item::all(more)?);
    }
    Ok(sessions)
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
