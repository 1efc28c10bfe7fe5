//! Errors on the routes for AI SDK UI. A page shows the body of an error as it is, so it is a text.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;

use super::problem::Problem;

/// The beginning of the paths.
const PREFIX: &str = "/v1/ai-sdk/";
/// The media type of an error.
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// Returns whether a path belongs to these routes, also if no route has it.
pub(super) fn is_ai_sdk_path(path: &str) -> bool {
    path.starts_with(PREFIX)
}

/// Writes a problem as the body of its response.
pub(super) fn write_text(response: &mut Response, problem: &Problem) {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(TEXT));
    headers.remove(header::CONTENT_LENGTH);
    *response.body_mut() = Body::from(problem.detail().to_owned());
}
