//! Errors on the routes for pages. A page shows the body of an error as it is, so it is a text.

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;

use super::problem::Problem;

/// The beginnings of the paths.
const PREFIXES: [&str; 3] = ["/v1/ai-sdk/", "/v1/ag-ui/", "/v1/langgraph/"];
/// The media type of an error.
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// Returns whether a path belongs to these routes, also if no route has it.
pub(super) fn is_of_page(path: &str) -> bool {
    PREFIXES.iter().any(|prefix| path.starts_with(prefix))
}

/// Writes a problem as the body of its response.
pub(super) fn write_text(response: &mut Response, problem: &Problem) {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(TEXT));
    headers.remove(header::CONTENT_LENGTH);
    *response.body_mut() = Body::from(problem.detail().to_owned());
}
