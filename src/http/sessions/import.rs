//! `POST /v1/sessions`.

use std::sync::Arc;

use axum::Json;
use axum::response::{IntoResponse as _, Response};
use tokio::time::timeout;

use super::etag;
use super::import_body::ImportSession;
use super::show::respond_whole;
use super::view::{Include, SessionView, created};
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::idempotency::KeyedBody;
use crate::http::in_flight::{SMALL, respond_with};
use crate::http::parameters::QueryParameters;
use crate::http::problem::Problem;
use crate::run::import::{self, Imported};
use tasks::off_thread::by_size;
use values::json::json_length;
use values::session::SessionHead;

/// The problems of a session that is imported.
const IMPORT_PROBLEMS: &[ProblemCode] = &[
    ProblemCode::SessionTooLarge,
    ProblemCode::AgentNotFound,
    ProblemCode::NotAllowed,
    ProblemCode::UnknownModel,
    ProblemCode::ModelNotConfigured,
    ProblemCode::InvalidPrompt,
    ProblemCode::InvalidResponseFormat,
    ProblemCode::TooManyMessages,
    ProblemCode::InvalidHistory,
    ProblemCode::BaseSessionConflict,
];

/// Makes a session of given states, without a run.
///
/// The response shows only data of the request, so it needs no scope to read.
#[utoipa::path(post, path = "/v1/sessions", tag = "sessions", params(
    ("Idempotency-Key" = Option<String>, Header),
), request_body = ImportSession, responses(
    (status = 201, description = "The session as it is stored", body = SessionView, headers(("Location"), ("ETag"), ("Idempotency-Replayed"))),
), extensions(("x-problems" = json!(IMPORT_PROBLEMS))))]
pub(in crate::http) async fn import_session(
    call: Call,
    query: QueryParameters,
    KeyedBody { key, body, bytes, .. }: KeyedBody<ImportSession>,
) -> Result<Response, Problem> {
    query.finish()?;
    let api = Arc::clone(&call.api);
    let request = by_size(&call.tenant, bytes, move || body.into_request(&api.runs, key)).await?;
    let imported = import::import_session(&call.api.runs, call.tenant.clone(), request).await?;
    let Imported { bundle, is_replay } = imported;
    let head = bundle.head.clone();
    let session_id = head.session_id;
    let view = move || {
        let view = SessionView::new(&bundle, Include::ALL);
        let length = json_length(&view);
        (view, length)
    };
    let view = by_size(&call.tenant, bytes, view).await;
    let response = show(&call, head, view).await?;
    created(response, session_id, is_replay)
}

/// Responds with the session, which is stored already. An error would make the caller import it
/// again, so a lack of room only delays the response. If the session can't be read, it is shown
/// without its states.
async fn show(call: &Call, head: SessionHead, (view, length): (SessionView, usize)) -> Result<Response, Problem> {
    let room = if length <= SMALL { 0 } else { 2 * length };
    if let Some(room) = call.api.in_flight.try_take(&call.tenant, room) {
        let response = respond_with(room, view).await?;
        return Ok((etag::headers(head.root_hash), response).into_response());
    }
    // A request that waits for room holds no data, so the session is read again.
    drop(view);
    let session_id = head.session_id;
    let waiting = async {
        loop {
            match respond_whole(call, session_id, Include::ALL).await {
                Err(problem) if problem.code() == ProblemCode::TooMuchInFlight => (),
                shown => return shown,
            }
        }
    };
    match timeout(call.api.limits.request_timeout / 2, waiting).await {
        Ok(Ok(shown)) => return Ok(shown),
        Ok(Err(problem)) => {
            let (code, cause) = (problem.code().as_str(), problem.cause_chain());
            tracing::warn!(%session_id, code, cause, "an imported session is shown without its states");
        }
        Err(_) => (),
    }
    Ok((etag::headers(head.root_hash), Json(SessionView::bare(head))).into_response())
}
