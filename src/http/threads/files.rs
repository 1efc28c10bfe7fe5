//! The files of a thread: those of the session to which it points.

use axum::http::HeaderMap;
use axum::response::Response;

use super::name::known_name;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::idempotency::KeyedBody;
use crate::http::parameters::{NoParameters, PathParameters, QueryParameters};
use crate::http::problem::Problem;
use crate::http::problem_groups::CHILD_PROBLEMS;
use crate::http::sessions::files::change::respond_changed;
use crate::http::sessions::files::change_body::ChangeFiles;
use crate::http::sessions::files::download::respond_file;
use crate::http::sessions::files::list::{FileRange, Files};
use crate::http::sessions::files::view::FileBytes;
use crate::http::sessions::view::SessionView;
use crate::run::files::{ChangeTarget, session_of_thread};
use values::ids::SessionId;

/// The problems of routes with the session of a thread.
const THREAD_PROBLEMS: &[ProblemCode] = &[ProblemCode::ThreadNotFound, ProblemCode::SessionNotFound];

/// Lists the files of a thread by name.
#[utoipa::path(get, path = "/v1/threads/{name}/files", tag = "threads", params(
    ("name" = String, Path),
    ("path" = Option<String>, Query, description = "The directory to list; by default the root"),
    ("recursive" = Option<bool>, Query, description = "Also lists what is in the directories below; by default false"),
    ("limit" = Option<u32>, Query), ("cursor" = Option<String>, Query),
), responses(
    (status = 200, description = "A page of files", body = Files),
), extensions(("x-problems" = json!([THREAD_PROBLEMS, [ProblemCode::FileNotFound]]))))]
pub(in crate::http) async fn list_thread_files(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
) -> Result<Response, Problem> {
    let range = FileRange::take(query)?;
    range.respond(&call, session_of(&call, &path).await?).await
}

/// Reads a file of a thread. The answer is an attachment with the media type of the file's name.
#[utoipa::path(get, path = "/v1/threads/{name}/files/{path}", tag = "threads", params(
    ("name" = String, Path),
    ("path" = String, Path, description = "The path of the file; the `/` between names may stay as they are"),
    ("If-None-Match" = Option<String>, Header),
    ("Range" = Option<String>, Header, description = "One range of bytes, such as `bytes=0-99`; several are answered with the whole file"),
    ("If-Range" = Option<String>, Header, description = "The `ETag` that the file must have for the range to apply"),
), responses(
    (status = 200, description = "The file", body = FileBytes, content_type = "application/octet-stream", headers(("ETag" = String, description = "The BLAKE3 of the file, quoted"))),
    (status = 206, description = "The wanted bytes of the file", body = FileBytes, content_type = "application/octet-stream", headers(("Content-Range" = String, description = "Which bytes these are, and the size of the file"))),
    (status = 304, description = "The caller has it"),
), extensions(("x-problems" = json!([THREAD_PROBLEMS, [ProblemCode::FileNotFound, ProblemCode::RangeNotSatisfiable]]))))]
pub(in crate::http) async fn get_thread_file(
    call: Call,
    path: PathParameters,
    _: NoParameters,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let session_id = session_of(&call, &path).await?;
    respond_file(&call, session_id, path.text("path"), &headers).await
}

/// Changes files of a thread: all changes or none. Makes a session that continues the thread's with
/// the same messages and context, without a run, and moves the thread to it.
///
/// If another change moves the thread meanwhile, the changes are made to the session to which it
/// points then.
#[utoipa::path(post, path = "/v1/threads/{name}/files", tag = "threads", params(
    ("name" = String, Path),
    ("Idempotency-Key" = Option<String>, Header),
), request_body = ChangeFiles, responses(
    (status = 201, description = "The new session with its environment", body = SessionView, headers(("Location"), ("ETag"), ("Idempotency-Replayed"))),
), extensions(("x-problems" = json!([THREAD_PROBLEMS, CHILD_PROBLEMS, [ProblemCode::UnknownBlob, ProblemCode::ThreadBusy, ProblemCode::ThreadMoved]]))))]
pub(in crate::http) async fn change_thread_files(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
    body: KeyedBody<ChangeFiles>,
) -> Result<Response, Problem> {
    query.finish()?;
    let target = ChangeTarget::Thread(known_name(&path)?);
    respond_changed(&call, target, body).await
}

async fn session_of(call: &Call, path: &PathParameters) -> Result<SessionId, Problem> {
    let name = known_name(path)?;
    let session_id = session_of_thread(&call.api.runs, &call.tenant, &name).await;
    session_id.map_err(Problem::from)
}
