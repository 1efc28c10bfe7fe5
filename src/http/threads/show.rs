//! Reads threads, and the messages of their sessions.

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::name::{known_name, thread_not_found};
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::in_flight::respond_with;
use crate::http::metadata_filter::take_metadata;
use crate::http::paging::{ListPage, Paging};
use crate::http::parameters::{NoParameters, PathParameters, QueryParameters};
use crate::http::problem::Problem;
use crate::http::sessions::show::{MessageList, MessageRange};
use agent::record::{ThreadName, ThreadRecord};
use store::TimeRange;
use store::threads::{ThreadFilter, ThreadPage};
use values::ids::SessionId;

/// Some messages of the session that a thread points to.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ThreadMessageList {
    /// The session; null until the thread's first run has published one.
    session_id: Option<SessionId>,
    #[serde(flatten)]
    messages: MessageList,
}

/// A page of threads.
type Threads = ListPage<ThreadRecord>;

/// Lists threads by name.
#[utoipa::path(get, path = "/v1/threads", tag = "threads", params(
    ("agent" = Option<String>, Query, description = "Only those that point to a session of this agent"),
    ("metadata" = Option<String>, Query, description = "Only with all key-value pairs of this JSON object; `metadata.KEY=VALUE` asks for one text, where the key has no dot"),
    ("created_from" = Option<chrono::DateTime<chrono::Utc>>, Query, description = "The first instant (RFC 3339)"),
    ("created_until" = Option<chrono::DateTime<chrono::Utc>>, Query, description = "The first instant after (RFC 3339)"),
    ("updated_from" = Option<chrono::DateTime<chrono::Utc>>, Query, description = "The first instant of the last change (RFC 3339)"),
    ("updated_until" = Option<chrono::DateTime<chrono::Utc>>, Query, description = "The first instant after the last change (RFC 3339)"),
    ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query),
), responses(
    (status = 200, description = "A page of threads", body = Threads),
))]
pub(in crate::http) async fn list_threads(call: Call, mut query: QueryParameters) -> Result<Json<Threads>, Problem> {
    let filter = take_filter(&mut query)?;
    let page = Paging::<ThreadName>::take(query)?;
    let threads = ThreadPage {
        after: page.after.clone(),
        limit: page.limit + 1,
    };
    let threads = call.api.runs.store.thread_list(&call.tenant, &filter, &threads);
    Ok(page.page(threads.await?, |thread| thread.name.clone()))
}

fn take_filter(query: &mut QueryParameters) -> Result<ThreadFilter, Problem> {
    Ok(ThreadFilter {
        agent: query.text("agent")?,
        metadata: take_metadata(query)?,
        created: TimeRange {
            from: query.time("created_from")?,
            until: query.time("created_until")?,
        },
        updated: TimeRange {
            from: query.time("updated_from")?,
            until: query.time("updated_until")?,
        },
    })
}

/// Shows a thread.
#[utoipa::path(get, path = "/v1/threads/{name}", tag = "threads", params(("name" = String, Path)), responses(
    (status = 200, description = "The thread", body = ThreadRecord),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound]))))]
pub(in crate::http) async fn get_thread(
    call: Call,
    path: PathParameters,
    _: NoParameters,
) -> Result<Json<ThreadRecord>, Problem> {
    find(&call, &path).await.map(Json)
}

/// Lists the messages of the session that a thread points to, oldest first.
///
/// `session_id` changes when the thread has moved between two pages. Shared messages keep their
/// index.
#[utoipa::path(get, path = "/v1/threads/{name}/messages", tag = "threads", params(
    ("name" = String, Path),
    ("from" = Option<u32>, Query, description = "The index of the first message, from 0; not together with `cursor`"),
    ("before" = Option<u32>, Query, description = "The index after the last message; an index beyond the end stands for the end; not together with `from` or `cursor`"),
    ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query),
), responses(
    (status = 200, description = "A page of messages", body = ThreadMessageList),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound]))))]
pub(in crate::http) async fn list_thread_messages(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
) -> Result<Response, Problem> {
    let range = MessageRange::take(query)?;
    let thread = find(&call, &path).await?;
    let page = |messages| ThreadMessageList {
        session_id: thread.session_id,
        messages,
    };
    let Some(session_id) = thread.session_id else {
        return Ok(Json(page(range.empty())).into_response());
    };
    let (share, messages) = range.read(&call, session_id).await?;
    respond_with(share, page(messages)).await
}

async fn find(call: &Call, path: &PathParameters) -> Result<ThreadRecord, Problem> {
    let name = known_name(path)?;
    let thread = call.api.runs.store.thread_lookup(&call.tenant, &name).await?;
    thread.ok_or_else(|| thread_not_found(name.as_str()))
}
