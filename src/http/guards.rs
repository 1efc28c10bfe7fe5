//! Layers that enforce the limits of requests, and that limit a panic to its request.

use std::any::Any;
use std::collections::BTreeMap;
use std::future::{Ready, ready};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::TryFutureExt as _;
use utoipa::openapi::{OpenApi, PathItem};

use super::auth::Call;
use super::codes::ProblemCode;
use super::health::is_probe;
use super::host::check_host;
use super::in_flight::held;
use super::limits::HttpLimits;
use super::openai_errors::is_openai_path;
use super::paging::PAGE_BYTES;
use super::problem::Problem;
use super::state::Api;

/// The longest path and query, in bytes.
pub(super) const MAX_URI: usize = 8 * 1024;
/// The most headers.
const MAX_HEADERS: usize = 100;
/// When to retry after a timeout.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// When to try again after all connections were taken.
const CONNECTION_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Marks requests on connections of the reserve, and those over HTTP/2 beyond their number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reserved;

/// Rejects invalid HTTP/1.1 requests, and requests with too large an address or headers. Of the
/// [`Reserved`] ones, rejects everything but probes. `unread` handles requests that hyper rejects.
pub(super) fn check_head(limits: &HttpLimits, request: &Request) -> Result<(), Problem> {
    if request.extensions().get::<Reserved>().is_some() && !is_probe(request.uri().path()) {
        let words = "`http.max_connections` are open; only /healthz and /readyz respond";
        return Err(Problem::new(ProblemCode::TooManyConnections, words).with_retry_after(CONNECTION_RETRY_AFTER));
    }
    check_host(request)?;
    check_transfer_encoding(request.headers())?;
    let uri = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if uri > MAX_URI {
        return Err(uri_too_long());
    }
    // In addition to its text, each header has a colon, a space and a line break.
    let headers = request.headers();
    let size: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    let limit = limits.max_header_bytes;
    if uri + size > limit || headers.len() > MAX_HEADERS {
        return Err(headers_too_large(limit));
    }
    Ok(())
}

/// Makes the problem of an address that is too long.
pub(super) fn uri_too_long() -> Problem {
    let words = format!("path and query have at most {MAX_URI} bytes");
    Problem::new(ProblemCode::UriTooLong, words)
}

/// Makes the problem of headers that are too many or too large.
pub(super) fn headers_too_large(limit: usize) -> Problem {
    let words = format!("a request has at most {MAX_HEADERS} headers and {limit} bytes of them");
    Problem::new(ProblemCode::HeadersTooLarge, words)
}

/// Checks that the only transfer encoding is `chunked`. Content in any other encoding would be read
/// as the body itself.
fn check_transfer_encoding(headers: &HeaderMap) -> Result<(), Problem> {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    let is_plain = match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => is_chunked(coding.as_bytes()),
        (Some(_), Some(_)) => false,
    };
    if is_plain {
        Ok(())
    } else {
        let words = "the header Transfer-Encoding must read `chunked`, or be left out";
        Err(Problem::new(ProblemCode::UnsupportedTransferEncoding, words))
    }
}

/// Counts the bytes of responses in flight: a full page while the response is made, then its actual
/// bytes until they are sent.
pub(super) async fn count_bytes(call: Call, request: Request, next: Next) -> Result<Response, Problem> {
    let mut share = call.api.in_flight.take_soon(&call.tenant, PAGE_BYTES).await?;
    let (parts, body) = next.run(request).await.into_parts();
    if body.size_hint().exact().is_none() {
        return Ok(Response::from_parts(parts, body));
    }
    // The body is in memory already.
    let bytes = to_bytes(body, usize::MAX).await.map_err(Problem::internal)?;
    share.set(bytes.len());
    Ok(Response::from_parts(parts, Body::from(held(bytes, share))))
}

/// Bounds the time of a response. Runs and their readers are bounded by budgets instead.
pub(super) async fn limit_time(State(api): State<Arc<Api>>, request: Request, next: Next) -> Result<Response, Problem> {
    // Reading a body has a separate limit of the same length, with its own problem.
    let has_body = matches!(*request.method(), Method::POST | Method::PUT);
    let limit = if has_body {
        api.limits.request_timeout * 2
    } else {
        api.limits.request_timeout
    };
    within(limit, next.run(request)).await
}

/// Ends work that exceeds the limit.
pub(super) fn within<T>(limit: Duration, work: impl Future<Output = T>) -> impl Future<Output = Result<T, Problem>> {
    tokio::time::timeout(limit, work).map_err(|_| {
        Problem::new(ProblemCode::AnswerTimeout, "the service took too long to answer").with_retry_after(RETRY_AFTER)
    })
}

/// Responds after a handler panicked. The panic message goes to the log.
pub(super) fn respond_to_panic(panic: Box<dyn Any + Send + 'static>) -> Response {
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

/// The last parts of paths by which other APIs ask a model, with the routes of this API instead.
const HABITS: &[(&str, &str)] = &[
    ("/completions", "; POST /v1/chat/completions completes a conversation"),
    ("/responses", RUN_ADVICE),
    ("/v1/messages", RUN_ADVICE),
    ("/converse", RUN_ADVICE),
    (":generateContent", RUN_ADVICE),
    ("/assistants", "; PUT /v1/agents/{name} stores an agent"),
    (
        "/submit_tool_outputs",
        "; POST /v1/runs/{run_id}/answers answers open calls",
    ),
    ("/runs", "; POST /v1/runs with a `thread` runs an agent on a thread"),
];
const RUN_ADVICE: &str = "; POST /v1/runs with an `agent` and an `input` runs an agent";
const OPENAI_ADVICE: &str = "; of OpenAI's API, the service has /v1/responses, /v1/conversations, /v1/chat/completions \
                             and /v1/models";

/// Responds to unknown paths. Names the route to use instead of a path of another API.
pub(super) fn route_not_found(request: &Request) -> Problem {
    let path = request.uri().path();
    let habit = HABITS.iter().find(|(end, _)| path.trim_end_matches('/').ends_with(end));
    let other = if is_openai_path(path) { OPENAI_ADVICE } else { "" };
    let advice = habit.map_or(other, |(_, advice)| advice);
    let words = format!("no route has this path{advice}; GET /openapi.json lists all");
    Problem::new(ProblemCode::RouteNotFound, words)
}

/// Responds to API requests in a process that only executes runs of the queue.
pub(super) fn api_not_served() -> Ready<Problem> {
    ready(Problem::new(
        ProblemCode::RouteNotFound,
        "this replica has the role `worker` and answers /healthz and /readyz only; ask one of the role `api` or `all`",
    ))
}

/// Responds to methods that a route does not have; `openapi` makes the description of the
/// interface. axum adds the header `Allow` with the methods that the route has.
pub(super) fn method_not_allowed(request: &Request, openapi: fn() -> OpenApi) -> Problem {
    let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    let advice = match (request.method(), path) {
        (&Method::POST, Some("/v1/agents")) => "; PUT /v1/agents/{name} stores an agent",
        (&Method::POST, Some("/v1/sessions/{session_id}/messages")) => {
            "; POST /v1/runs with a `base_session_id` and an `input` continues a session"
        }
        _ => "",
    };
    let words = format!(
        "{} is not allowed here; the methods of this path are {}{advice}",
        request.method(),
        methods_of(path.unwrap_or_default(), openapi)
    );
    Problem::new(ProblemCode::MethodNotAllowed, words)
}

/// Returns the methods of a route. Routes that the description lacks are pages.
fn methods_of(path: &str, openapi: fn() -> OpenApi) -> &'static str {
    static METHODS: OnceLock<BTreeMap<String, String>> = OnceLock::new();
    let methods = METHODS.get_or_init(|| {
        let paths = openapi().paths.paths.into_iter();
        paths.map(|(path, item)| (path, methods_in(&item))).collect()
    });
    match path {
        "/mcp" | "/mcp/" => "POST",
        _ => methods.get(path).map_or("GET, HEAD", String::as_str),
    }
}

fn methods_in(item: &PathItem) -> String {
    let methods = [
        (item.get.is_some(), "GET, HEAD"),
        (item.post.is_some(), "POST"),
        (item.put.is_some(), "PUT"),
        (item.patch.is_some(), "PATCH"),
        (item.delete.is_some(), "DELETE"),
    ];
    let present = methods.into_iter().filter(|(is_there, _)| *is_there);
    present.map(|(_, name)| name).collect::<Vec<_>>().join(", ")
}
