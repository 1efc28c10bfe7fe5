//! Responds with a session that a change of files or a merge has published.

use axum::Json;
use axum::response::{IntoResponse as _, Response};

use crate::http::auth::Call;
use crate::http::in_flight::{SMALL, respond_with};
use crate::http::problem::Problem;
use crate::http::sessions::etag;
use crate::http::sessions::view::{Include, SessionView, created};
use crate::run::files::ChildSession;
use values::json::json_length;

/// Responds with the session and its environment, if the key may read them. The session is stored
/// already, and an error would make the caller repeat the request. So without room the session is
/// shown without its environment.
pub(super) async fn respond_child(call: &Call, child: ChildSession) -> Result<Response, Problem> {
    let ChildSession { bundle, is_replay } = child;
    let head = bundle.head.clone();
    let (session_id, headers) = (head.session_id, etag::headers(head.root_hash));
    let view = SessionView::written(call, &bundle, Include::ENVIRONMENT);
    let length = json_length(&view);
    let room = if length <= SMALL { 0 } else { 2 * length };
    let response = match call.api.in_flight.try_take(&call.tenant, room) {
        Some(share) => respond_with(share, view).await?,
        None => Json(SessionView::bare(head)).into_response(),
    };
    created((headers, response).into_response(), session_id, is_replay)
}
