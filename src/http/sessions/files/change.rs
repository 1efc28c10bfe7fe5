//! `POST /v1/sessions/{session_id}/files`, also for the files of a thread.

use axum::response::Response;

use super::change_body::ChangeFiles;
use super::child::respond_child;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::idempotency::KeyedBody;
use crate::http::parameters::{PathParameters, QueryParameters};
use crate::http::problem::Problem;
use crate::http::problem_groups::{CHILD_PROBLEMS, SESSION_PROBLEMS};
use crate::http::sessions::view::SessionView;
use crate::run::files::{self, ChangeTarget};
use tasks::off_thread::by_size;

/// Changes files of a session: all changes or none. Makes a session that continues it with the same
/// messages and context, without a run.
#[utoipa::path(post, path = "/v1/sessions/{session_id}/files", tag = "files", params(
    ("session_id" = uuid::Uuid, Path),
    ("Idempotency-Key" = Option<String>, Header),
), request_body = ChangeFiles, responses(
    (status = 201, description = "The new session with its environment", body = SessionView, headers(("Location"), ("ETag"), ("Idempotency-Replayed"))),
), extensions(("x-problems" = json!([SESSION_PROBLEMS, CHILD_PROBLEMS, [ProblemCode::UnknownBlob]]))))]
pub(in crate::http) async fn change_files(
    call: Call,
    path: PathParameters,
    query: QueryParameters,
    body: KeyedBody<ChangeFiles>,
) -> Result<Response, Problem> {
    query.finish()?;
    let target = ChangeTarget::Session(path.id("session_id")?);
    respond_changed(&call, target, body).await
}

/// Changes files, and responds with the new session.
pub(in crate::http) async fn respond_changed(
    call: &Call,
    target: ChangeTarget,
    KeyedBody { key, body, bytes, .. }: KeyedBody<ChangeFiles>,
) -> Result<Response, Problem> {
    let request = by_size(&call.tenant, bytes, move || body.into_request(target, key)).await?;
    let child = files::change_files(&call.api.runs, &call.tenant, request).await?;
    respond_child(call, child).await
}
