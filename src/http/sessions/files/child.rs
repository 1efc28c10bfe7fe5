//! Responds with a session that a change of files or a merge has published.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::http::auth::Call;
use crate::http::idempotency::mark_replay;
use crate::http::in_flight::{SMALL, respond_with};
use crate::http::problem::Problem;
use crate::http::sessions::etag;
use crate::http::sessions::view::{Include, SessionView};
use crate::run::files::ChildSession;
use values::json::json_length;

/// Responds with the session and its environment, if the key may read them. The session is stored
/// already, and an error would make the caller repeat the request. So without room the session is
/// shown without its environment.
pub(super) async fn respond_child(call: &Call, child: ChildSession) -> Result<Response, Problem> {
    let ChildSession { bundle, is_replay } = child;
    let head = bundle.head.clone();
    let location = format!("/v1/sessions/{}", head.session_id);
    let location = HeaderValue::from_str(&location).map_err(Problem::internal)?;
    let headers = etag::headers(head.root_hash);
    let view = SessionView::written(call, &bundle, Include::ENVIRONMENT);
    let length = json_length(&view);
    let room = if length <= SMALL { 0 } else { 2 * length };
    let response = match call.api.in_flight.try_take(&call.tenant, room) {
        Some(share) => respond_with(share, view).await?,
        None => Json(SessionView::bare(head)).into_response(),
    };
    let mut response = (StatusCode::CREATED, headers, response).into_response();
    response.headers_mut().insert(header::LOCATION, location);
    mark_replay(&mut response, is_replay);
    Ok(response)
}
