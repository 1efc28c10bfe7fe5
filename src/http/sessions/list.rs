//! Lists of sessions: all, ancestors and children. None of them reads states.

use axum::Json;

use super::view::found;
use crate::http::auth::Call;
use crate::http::metadata_filter::take_metadata;
use crate::http::paging::{ListPage, Paging};
use crate::http::parameters::{PathParameters, QueryParameters};
use crate::http::problem::Problem;
use crate::http::problem_groups::SESSION_PROBLEMS;
use agent::record::ThreadName;
use store::TimeRange;
use store::retention::Ancestor;
use store::sessions::SessionFilter;
use values::ids::SessionId;
use values::session::SessionHead;

/// A page of sessions.
type Sessions = ListPage<SessionHead>;
/// A page of a line.
type Line = ListPage<Ancestor>;

/// Lists sessions, newest first.
#[utoipa::path(get, path = "/v1/sessions", tag = "sessions", params(
    ("agent" = Option<String>, Query, description = "Only of this agent"),
    ("metadata" = Option<String>, Query, description = "Only with all key-value pairs of this JSON object; `metadata.KEY=VALUE` asks for one text, where the key has no dot"),
    ("created_from" = Option<chrono::DateTime<chrono::Utc>>, Query, description = "The first instant (RFC 3339)"),
    ("created_until" = Option<chrono::DateTime<chrono::Utc>>, Query, description = "The first instant after (RFC 3339)"),
    ("subagent_of" = Option<uuid::Uuid>, Query, description = "Only of subagents that the agent of this session started"),
    ("thread" = Option<ThreadName>, Query, description = "Only those that runs on this thread or changes of its files or messages have published"),
    ("tips" = Option<bool>, Query, description = "Only sessions that nothing continues"),
    ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query),
), responses(
    (status = 200, description = "A page of sessions", body = Sessions),
))]
pub(in crate::http) async fn list_sessions(call: Call, mut query: QueryParameters) -> Result<Json<Sessions>, Problem> {
    let filter = SessionFilter {
        agent: query.text("agent")?,
        metadata: take_metadata(&mut query)?,
        created: TimeRange {
            from: query.time("created_from")?,
            until: query.time("created_until")?,
        },
        parent: None,
        subagent_of: query.id("subagent_of")?,
        thread: query.parsed("thread")?,
        tips_only: query.parsed("tips")?.unwrap_or(false),
    };
    respond(&call, &filter, &Paging::take(query)?).await
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
    (status = 200, description = "A page of sessions", body = Sessions),
), extensions(("x-problems" = json!(SESSION_PROBLEMS))))]
pub(in crate::http) async fn list_children(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
) -> Result<Json<Sessions>, Problem> {
    let page = Paging::take(query)?;
    let session_id = path.id("session_id")?;
    let parent = call.api.runs.store.session_lookup(&call.tenant, session_id).await?;
    found(&call, session_id, parent).await?;
    let filter = SessionFilter {
        parent: Some(session_id),
        ..SessionFilter::default()
    };
    respond(&call, &filter, &page).await
}

async fn respond(call: &Call, filter: &SessionFilter, page: &Paging<SessionId>) -> Result<Json<Sessions>, Problem> {
    let sessions = call.api.runs.store.session_list(&call.tenant, filter, page.one_more());
    Ok(page.page(sessions.await?, |head| head.session_id))
}
