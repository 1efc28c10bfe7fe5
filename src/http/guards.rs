//! Layers that keep a request within its limits and a panic within its request.

use std::any::Any;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::Api;
use super::codes::ProblemCode;
use super::problem::Problem;

/// The longest path and query, in bytes.
const MAX_URI: usize = 8 * 1024;
/// The most headers.
const MAX_HEADERS: usize = 100;
/// When to try again after an answer took too long.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Refuses addresses and headers that are too large. The connection has limits of its own, above these.
pub(super) async fn limit_head(State(api): State<Arc<Api>>, request: Request, next: Next) -> Result<Response, Problem> {
    let uri = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if uri > MAX_URI {
        return Err(Problem::new(
            ProblemCode::UriTooLong,
            format!("path and query have at most {MAX_URI} bytes"),
        ));
    }
    // Each header costs a colon, a space and a line break beside its text.
    let headers = request.headers();
    let size: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    let limit = api.limits.max_header_bytes;
    if uri + size > limit || headers.len() > MAX_HEADERS {
        let words = format!("a request has at most {MAX_HEADERS} headers and {limit} bytes of them");
        return Err(Problem::new(ProblemCode::HeadersTooLarge, words));
    }
    Ok(next.run(request).await)
}

/// Ends an answer that takes too long. Not for runs, which have budgets, and for those who follow them.
pub(super) async fn limit_time(State(api): State<Arc<Api>>, request: Request, next: Next) -> Result<Response, Problem> {
    // Reading a body has the same limit to itself, with a problem of its own.
    let has_body = matches!(*request.method(), Method::POST | Method::PUT);
    let limit = if has_body {
        api.limits.request_timeout * 2
    } else {
        api.limits.request_timeout
    };
    within(limit, next.run(request)).await
}

/// Ends work that takes too long.
pub(super) async fn within<T>(limit: Duration, work: impl Future<Output = T>) -> Result<T, Problem> {
    tokio::time::timeout(limit, work).await.map_err(|_| {
        Problem::new(ProblemCode::AnswerTimeout, "the service took too long to answer").with_retry_after(RETRY_AFTER)
    })
}

/// Answers for a handler that panicked; its words are for the operator.
pub(super) fn answer_panic(panic: Box<dyn Any + Send + 'static>) -> Response {
    let words = panic
        .downcast::<String>()
        .map(|words| *words)
        .or_else(|panic| panic.downcast::<&str>().map(|words| (*words).to_owned()));
    Problem::internal(format!(
        "a handler panicked: {}",
        words.unwrap_or_else(|_| "no words".to_owned())
    ))
    .into_response()
}

/// Answers at addresses that lead nowhere.
pub(super) fn route_not_found() -> Ready<Problem> {
    ready(Problem::new(
        ProblemCode::RouteNotFound,
        "no route has this path; GET /openapi.json lists all",
    ))
}

/// Answers for the interface where a process only takes runs from the queue.
pub(super) fn no_api_here() -> Ready<Problem> {
    ready(Problem::new(
        ProblemCode::RouteNotFound,
        "this replica has the role `worker` and answers /healthz and /readyz only; ask one of the role `api` or `all`",
    ))
}

/// Answers to methods that a route does not have; the header `Allow` names those that it has.
pub(super) fn method_not_allowed() -> Ready<Problem> {
    ready(Problem::new(
        ProblemCode::MethodNotAllowed,
        "the header Allow lists the methods of this path",
    ))
}
