//! Creates, moves, changes and deletes threads.

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::body::{CreateThread, PatchThread, PutThread};
use super::name::{known_name, new_name, thread_moved, thread_not_found};
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::idempotency::{KeyedBody, mark_replay};
use crate::http::json_body::JsonBody;
use crate::http::parameters::{NoParameters, PathParameters, QueryParameters};
use crate::http::problem::Problem;
use crate::http::problem_groups::SESSION_PROBLEMS;
use crate::http::sessions::view::absent_session;
use crate::run::refusal::Refusal;
use crate::run::{self, CreatedThread};
use agent::record::{ThreadName, ThreadRecord};
use store::threads::{ThreadDelete, ThreadPatched, ThreadPut};
use values::json::Object;

/// Creates a thread that does not exist yet, with a session or without one.
#[utoipa::path(post, path = "/v1/threads", tag = "threads", params(
    ("Idempotency-Key" = Option<String>, Header),
), request_body = CreateThread, responses(
    (status = 201, description = "The new thread", body = ThreadRecord, headers(("Location"), ("Idempotency-Replayed"))),
), extensions(("x-problems" = json!([SESSION_PROBLEMS, [ProblemCode::ThreadExists, ProblemCode::MalformedId]]))))]
pub(in crate::http) async fn create_thread(
    call: Call,
    query: QueryParameters,
    KeyedBody { key, body, .. }: KeyedBody<CreateThread>,
) -> Result<Response, Problem> {
    query.finish()?;
    let created = run::create_thread(&call.api.runs, &call.tenant, body.into_thread(key)?).await?;
    respond_created(&call, created)
}

/// Points a thread to a session; one that does not exist is made.
///
/// The thread is moved only if it points to `expected_session_id`, or, with `If-None-Match: *`,
/// where it does not exist. While a run is active on it, only the run moves it.
#[utoipa::path(put, path = "/v1/threads/{name}", tag = "threads", params(
    ("name" = ThreadName, Path, description = "1 to 128 letters, digits, `-`, `_`, `.`, `:` and `@`, but neither `.` nor `..`"),
    ("If-None-Match" = Option<String>, Header, pattern = "^\\*$", description = "`*`: the thread must not exist"),
), request_body = PutThread, responses(
    (status = 200, description = "The thread as it is now", body = ThreadRecord),
), extensions(("x-problems" = json!([SESSION_PROBLEMS, [ProblemCode::ThreadMoved, ProblemCode::ThreadBusy, ProblemCode::InvalidHeader, ProblemCode::MalformedId]]))))]
pub(in crate::http) async fn put_thread(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
    headers: HeaderMap,
    JsonBody(body): JsonBody<PutThread>,
) -> Result<Json<ThreadRecord>, Problem> {
    query.finish()?;
    let name = new_name(&path)?;
    let (session_id, expected) = body.into_parts(&headers)?;
    let (store, now) = (&call.api.runs.store, call.api.runs.clock.now());
    match store.thread_put(&call.tenant, &name, session_id, expected, now).await? {
        ThreadPut::Moved(thread) => Ok(Json(changed(&call, thread))),
        ThreadPut::Unexpected(thread) => Err(thread_moved(&name, thread)),
        ThreadPut::NoSession => Err(absent_session(&call, session_id).await),
        ThreadPut::Busy(run_id) => Err(Refusal::ThreadAtWork { name, run_id }.into()),
    }
}

/// Changes the title and the metadata of a thread, also while a run is active on it.
#[utoipa::path(patch, path = "/v1/threads/{name}", tag = "threads", params(
    ("name" = String, Path),
), request_body = PatchThread, responses(
    (status = 200, description = "The thread as it is now", body = ThreadRecord),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound]))))]
pub(in crate::http) async fn patch_thread(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
    JsonBody(body): JsonBody<PatchThread>,
) -> Result<Json<ThreadRecord>, Problem> {
    query.finish()?;
    let (name, patch) = (known_name(&path)?, body.into_patch()?);
    let (store, now) = (&call.api.runs.store, call.api.runs.clock.now());
    match store.thread_patch(&call.tenant, &name, &patch, now).await? {
        ThreadPatched::Changed(thread) => Ok(Json(changed(&call, thread))),
        ThreadPatched::Absent => Err(thread_not_found(name.as_str())),
        ThreadPatched::TooLarge(rule) => {
            let words = format!("together with that of the thread, {rule}");
            Err(Problem::invalid_field("/metadata", words))
        }
    }
}

/// Takes a thread away, unless a run is active on it. Its sessions stay.
#[utoipa::path(delete, path = "/v1/threads/{name}", tag = "threads", params(("name" = String, Path)), responses(
    (status = 204, description = "Done"),
), extensions(("x-problems" = json!([ProblemCode::ThreadNotFound, ProblemCode::ThreadBusy]))))]
pub(in crate::http) async fn delete_thread(
    call: Call,
    path: PathParameters,
    _: NoParameters,
) -> Result<StatusCode, Problem> {
    let name = known_name(&path)?;
    match call.api.runs.store.thread_delete(&call.tenant, &name).await? {
        ThreadDelete::Deleted => {
            call.api.runs.publish_thread_removed(&call.tenant, &name);
            Ok(StatusCode::NO_CONTENT)
        }
        ThreadDelete::Absent => Err(thread_not_found(name.as_str())),
        ThreadDelete::Busy(run_id) => Err(Refusal::ThreadAtWork { name, run_id }.into()),
    }
}

fn respond_created(call: &Call, created: CreatedThread) -> Result<Response, Problem> {
    let CreatedThread { thread, is_replay } = created;
    let location = HeaderValue::try_from(format!("/v1/threads/{}", thread.name)).map_err(Problem::internal)?;
    let thread = Json(written(call, thread));
    let mut response = (StatusCode::CREATED, [(header::LOCATION, location)], thread).into_response();
    mark_replay(&mut response, is_replay);
    Ok(response)
}

/// Publishes the change of a thread, and returns the thread for the response.
fn changed(call: &Call, thread: ThreadRecord) -> ThreadRecord {
    call.api.runs.publish_thread(&call.tenant, &thread);
    written(call, thread)
}

/// Returns a thread for the response to a write. A key that may not read sessions sees neither
/// title nor metadata.
fn written(call: &Call, thread: ThreadRecord) -> ThreadRecord {
    if call.may_read() {
        return thread;
    }
    ThreadRecord {
        title: None,
        metadata: Object::new(),
        ..thread
    }
}
