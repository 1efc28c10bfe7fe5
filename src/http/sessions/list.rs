//! Lists of sessions: all, ancestors and children. None of them reads states.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;

use super::view::found;
use crate::http::auth::Call;
use crate::http::metadata_filter::take_metadata;
use crate::http::paging::{ListPage, Paging};
use crate::http::parameters::{PathParameters, QueryParameters, invalid};
use crate::http::problem::Problem;
use crate::http::problem_groups::SESSION_PROBLEMS;
use agent::record::ThreadName;
use store::TimeRange;
use store::retention::Ancestor;
use store::sessions::{SessionFilter, SessionTree, TreeFigures};
use values::ids::SessionId;
use values::session::SessionHead;

/// A page of sessions, or of trees.
type Sessions = ListPage<ListedSession>;
/// A page of sessions that continue one.
type Children = ListPage<SessionHead>;
/// A page of a line.
type Line = ListPage<Ancestor>;

/// A session in a list, or the oldest session of a tree.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ListedSession {
    #[serde(flatten)]
    session: SessionHead,
    /// The tree; only in a list of roots.
    #[serde(skip_serializing_if = "Option::is_none")]
    tree: Option<TreeFigures>,
}

impl ListedSession {
    /// Returns the key by which its list is ordered. A tree is listed by its root, which may have
    /// been removed.
    fn key(&self) -> SessionId {
        match self.tree {
            Some(_) => self.session.root_session_id,
            None => self.session.session_id,
        }
    }
}

impl From<SessionHead> for ListedSession {
    fn from(session: SessionHead) -> Self {
        Self { session, tree: None }
    }
}

impl From<SessionTree> for ListedSession {
    fn from(SessionTree { oldest, figures }: SessionTree) -> Self {
        Self {
            session: oldest,
            tree: Some(figures),
        }
    }
}

/// Lists sessions, newest first. With `roots=true`, lists the roots of their trees instead, newest
/// root first.
#[utoipa::path(get, path = "/v1/sessions", tag = "sessions", params(
    ("agent" = Option<String>, Query, description = "Only of this agent"),
    ("metadata" = Option<String>, Query, description = "Only with all key-value pairs of this JSON object; `metadata.KEY=VALUE` asks for one text, where the key has no dot"),
    ("created_from" = Option<chrono::DateTime<chrono::Utc>>, Query, description = "The first instant (RFC 3339)"),
    ("created_until" = Option<chrono::DateTime<chrono::Utc>>, Query, description = "The first instant after (RFC 3339)"),
    ("subagent_of" = Option<uuid::Uuid>, Query, description = "Only of subagents that the agent of this session started"),
    ("thread" = Option<ThreadName>, Query, description = "Only those that runs on this thread or changes of its files or messages have published"),
    ("tips" = Option<bool>, Query, description = "Only sessions that nothing continues"),
    ("root" = Option<uuid::Uuid>, Query, description = "Only of the tree with this root, which may have been removed"),
    ("roots" = Option<bool>, Query, description = "Only the oldest session of each tree, with figures of the tree; not together with a filter"),
    ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query),
), responses(
    (status = 200, description = "A page of sessions", body = Sessions),
))]
pub(in crate::http) async fn list_sessions(call: Call, mut query: QueryParameters) -> Result<Json<Sessions>, Problem> {
    let roots = query.parsed("roots")?.unwrap_or(false);
    let filter = take_filter(&mut query)?;
    let page = Paging::<SessionId>::take(query)?;
    if roots && filter != SessionFilter::default() {
        return Err(invalid(
            "roots",
            "a list of roots takes no filter: leave the others out",
        ));
    }
    let store = &call.api.runs.store;
    let rows: Vec<ListedSession> = if roots {
        let trees = store.tree_list(&call.tenant, page.one_more()).await?;
        trees.into_iter().map(Into::into).collect()
    } else {
        let sessions = store.session_list(&call.tenant, &filter, page.one_more()).await?;
        sessions.into_iter().map(Into::into).collect()
    };
    Ok(page.page(rows, ListedSession::key))
}

fn take_filter(query: &mut QueryParameters) -> Result<SessionFilter, Problem> {
    Ok(SessionFilter {
        agent: query.text("agent")?,
        metadata: take_metadata(query)?,
        created: TimeRange {
            from: query.time("created_from")?,
            until: query.time("created_until")?,
        },
        parent: None,
        root: query.id("root")?,
        subagent_of: query.id("subagent_of")?,
        thread: query.parsed("thread")?,
        tips_only: query.parsed("tips")?.unwrap_or(false),
    })
}

/// Lists a session and its ancestors, itself first. A removed one has its ids only.
#[utoipa::path(get, path = "/v1/sessions/{session_id}/lineage", tag = "sessions", params(
    ("session_id" = uuid::Uuid, Path),
    ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query),
), responses(
    (status = 200, description = "A page of the line", body = Line),
), extensions(("x-problems" = json!(SESSION_PROBLEMS))))]
pub(in crate::http) async fn list_lineage(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
) -> Result<Json<Line>, Problem> {
    let page = Paging::<SessionId>::take(query)?;
    let session_id = path.id("session_id")?;
    let lineage = call
        .api
        .runs
        .store
        .session_lineage(&call.tenant, session_id, page.one_more());
    let lineage = found(&call, session_id, lineage.await?).await?;
    Ok(page.page(lineage, Ancestor::session_id))
}

/// Lists the sessions that continue a session directly, newest first.
#[utoipa::path(get, path = "/v1/sessions/{session_id}/children", tag = "sessions", params(
    ("session_id" = uuid::Uuid, Path),
    ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query),
), responses(
    (status = 200, description = "A page of sessions", body = Children),
), extensions(("x-problems" = json!(SESSION_PROBLEMS))))]
pub(in crate::http) async fn list_children(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
) -> Result<Json<Children>, Problem> {
    let page = Paging::take(query)?;
    let session_id = path.id("session_id")?;
    let parent = call.api.runs.store.session_lookup(&call.tenant, session_id).await?;
    found(&call, session_id, parent).await?;
    let filter = SessionFilter {
        parent: Some(session_id),
        ..SessionFilter::default()
    };
    let children = call.api.runs.store.session_list(&call.tenant, &filter, page.one_more());
    Ok(page.page(children.await?, |head| head.session_id))
}
