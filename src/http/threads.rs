//! Routes of threads: named pointers to sessions. Runs move them; callers can move them here.

use axum::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::auth::Call;
use super::codes::ProblemCode;
use super::headers;
use super::in_flight::respond_with;
use super::json_body::JsonBody;
use super::paging::{ListPage, Paging};
use super::parameters::{NoParameters, PathParameters, QueryParameters, parse_id};
use super::problem::Problem;
use super::problem_groups::SESSION_PROBLEMS;
use super::sessions::show::{MessageList, MessageRange};
use super::sessions::view::absent_session;
use crate::run::refusal::Refusal;
use agent::record::{ParseThreadNameError, ThreadName, ThreadRecord};
use store::threads::{ThreadDelete, ThreadExpectation, ThreadPage, ThreadPut};
use values::ids::SessionId;

/// The longest part of a name that is quoted, in characters.
const MAX_SHOWN: usize = 128;

/// Some messages of the session that a thread points to.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ThreadMessageList {
    /// The session; null until the thread's first run has published one.
    session_id: Option<SessionId>,
    #[serde(flatten)]
    messages: MessageList,
}

/// The new session of a thread.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PutThread {
    /// The session.
    #[schema(format = Uuid)]
    session_id: String,
    /// Where it must point now; null for a thread that points to no session yet. Absent, it may
    /// point anywhere.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Uuid)]
    expected_session_id: Expected,
}

/// The session that a caller expects a thread to point to. Null differs from an absent field.
#[derive(Debug, Default, Deserialize)]
#[serde(from = "Option<String>")]
enum Expected {
    #[default]
    Anywhere,
    At(Option<String>),
}

impl From<Option<String>> for Expected {
    fn from(at: Option<String>) -> Self {
        Self::At(at)
    }
}

/// A page of threads.
type Threads = ListPage<ThreadRecord>;

/// Lists threads by name.
#[utoipa::path(get, path = "/v1/threads", tag = "threads", params(
    ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query),
), responses(
    (status = 200, description = "A page of threads", body = Threads),
))]
pub(super) async fn list_threads(call: Call, query: QueryParameters) -> Result<Json<Threads>, Problem> {
    let page = Paging::<ThreadName>::take(query)?;
    let threads = ThreadPage {
        after: page.after.clone(),
        limit: page.limit + 1,
    };
    let threads = call.api.runs.store.thread_list(&call.tenant, &threads).await?;
    Ok(page.page(threads, |thread| thread.name.clone()))
}

/// Shows a thread.
#[utoipa::path(get, path = "/v1/threads/{name}", tag = "threads", params(("name" = String, Path)), responses(
    (status = 200, description = "The thread", body = ThreadRecord),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound]))))]
pub(super) async fn get_thread(
    call: Call,
    path: PathParameters,
    _: NoParameters,
) -> Result<Json<ThreadRecord>, Problem> {
    let name = known_name(&path)?;
    let thread = call.api.runs.store.thread_lookup(&call.tenant, &name).await?;
    thread.map(Json).ok_or_else(|| thread_not_found(name.as_str()))
}

/// Lists the messages of the session that a thread points to, oldest first.
///
/// `session_id` changes when the thread has moved between two pages. Shared messages keep their
/// index.
#[utoipa::path(get, path = "/v1/threads/{name}/messages", tag = "threads", params(
    ("name" = String, Path),
    ("from" = Option<u32>, Query, description = "The index of the first message, from 0; not together with `cursor`"),
    ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query),
), responses(
    (status = 200, description = "A page of messages", body = ThreadMessageList),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound]))))]
pub(super) async fn list_thread_messages(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
) -> Result<Response, Problem> {
    let range = MessageRange::take(query)?;
    let name = known_name(&path)?;
    let thread = call.api.runs.store.thread_lookup(&call.tenant, &name).await?;
    let thread = thread.ok_or_else(|| thread_not_found(name.as_str()))?;
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

/// Points a thread to a session. Creates the thread if it does not exist.
///
/// The thread is moved only if it points to `expected_session_id`, or, with `If-None-Match: *`,
/// where it does not exist. While a run is active on it, only the run moves it.
#[utoipa::path(put, path = "/v1/threads/{name}", tag = "threads", params(
    ("name" = ThreadName, Path, description = "1 to 128 letters, digits, `-`, `_`, `.`, `:` and `@`, but neither `.` nor `..`"),
    ("If-None-Match" = Option<String>, Header, pattern = "^\\*$", description = "`*`: the thread must not exist"),
), request_body = PutThread, responses(
    (status = 200, description = "The thread as it is now", body = ThreadRecord),
), extensions(("x-problems" = json!([SESSION_PROBLEMS, [ProblemCode::ThreadMoved, ProblemCode::ThreadBusy, ProblemCode::InvalidHeader, ProblemCode::MalformedId]]))))]
pub(super) async fn put_thread(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
    headers: HeaderMap,
    JsonBody(body): JsonBody<PutThread>,
) -> Result<Json<ThreadRecord>, Problem> {
    query.finish()?;
    let name = path.text("name").parse();
    let name: ThreadName =
        name.map_err(|error: ParseThreadNameError| Problem::invalid_field("name", error.to_string()))?;
    let (session_id, expected) = body.into_parts(&headers)?;
    let (store, now) = (&call.api.runs.store, call.api.runs.clock.now());
    match store.thread_put(&call.tenant, &name, session_id, expected, now).await? {
        ThreadPut::Moved(thread) => Ok(Json(thread)),
        ThreadPut::Unexpected(thread) => Err(thread_moved(&name, thread)),
        ThreadPut::NoSession => Err(absent_session(&call, session_id).await),
        ThreadPut::Busy(run_id) => Err(Refusal::ThreadAtWork { name, run_id }.into()),
    }
}

/// Takes a thread away, unless a run is active on it. Its sessions stay.
#[utoipa::path(delete, path = "/v1/threads/{name}", tag = "threads", params(("name" = String, Path)), responses(
    (status = 204, description = "Done"),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound, ProblemCode::ThreadBusy]))))]
pub(super) async fn delete_thread(call: Call, path: PathParameters, _: NoParameters) -> Result<StatusCode, Problem> {
    let name = known_name(&path)?;
    match call.api.runs.store.thread_delete(&call.tenant, &name).await? {
        ThreadDelete::Deleted => Ok(StatusCode::NO_CONTENT),
        ThreadDelete::Absent => Err(thread_not_found(name.as_str())),
        ThreadDelete::Busy(run_id) => Err(Refusal::ThreadAtWork { name, run_id }.into()),
    }
}

impl PutThread {
    /// Checks the values, and returns the new and the expected session.
    fn into_parts(self, headers: &HeaderMap) -> Result<(SessionId, ThreadExpectation), Problem> {
        let name = "if-none-match";
        let is_new = match headers::single(headers, name)? {
            None => false,
            Some("*") => true,
            Some(_) => return Err(headers::invalid(name, "only `*`, for a thread that must not exist")),
        };
        let expected = match (is_new, self.expected_session_id) {
            (true, Expected::Anywhere) => ThreadExpectation::Absent,
            (true, Expected::At(_)) => {
                return Err(headers::invalid(
                    name,
                    "a thread that must not exist can't point anywhere: leave `expected_session_id` out",
                ));
            }
            (false, Expected::Anywhere) => ThreadExpectation::Anything,
            (false, Expected::At(at)) => {
                let at = at.map(|text| parse_id("/expected_session_id", &text));
                ThreadExpectation::At(at.transpose()?)
            }
        };
        Ok((parse_id("/session_id", &self.session_id)?, expected))
    }
}

/// Returns the name in the path if it is a possible name. Other names need no query.
fn known_name(path: &PathParameters) -> Result<ThreadName, Problem> {
    let name = path.text("name");
    name.parse().map_err(|_| thread_not_found(name))
}

fn thread_not_found(name: &str) -> Problem {
    let shown: String = name.chars().take(MAX_SHOWN).collect();
    Problem::new(
        ProblemCode::ThreadNotFound,
        format!("there is no thread named {shown:?}"),
    )
}

fn thread_moved(name: &ThreadName, thread: Option<ThreadRecord>) -> Problem {
    let Some(thread) = thread else {
        return Problem::new(ProblemCode::ThreadMoved, format!("there is no thread named \"{name}\""));
    };
    let detail = match thread.session_id {
        Some(session_id) => format!("the thread \"{name}\" points to the session {session_id}"),
        None => format!("the thread \"{name}\" points to no session yet"),
    };
    Problem::new(ProblemCode::ThreadMoved, detail).with_session(thread.session_id)
}
