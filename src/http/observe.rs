//! Assigns each request its id, writes problems, and logs one line per request. Never logs bodies,
//! queries, headers or keys.

use std::time::Instant;

use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::response::{IntoResponse as _, Response};
use tracing::Instrument as _;
use tracing::field::{Empty, display};

use super::auth::Call;
use super::face_errors::{is_of_page, write_text};
use super::health::is_probe;
use super::openai_errors::{is_openai_path, mark_duration, status_of, write_error};
use super::problem::Problem;
use crate::run::{RequestOrigin, RunContext};
use crate::spans::ServerSpan;
use net::trace_header::TRACEPARENT;
use values::ids::RunId;
use values::trace_context::TraceContext;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// What stands for the status of a request whose caller does not wait for the response.
const ABANDONED: u16 = 499;
/// The longest request id that is accepted from a caller.
const MAX_REQUEST_ID: usize = 128;

/// The run that a request has started, for its log line.
#[derive(Debug, Clone, Copy)]
pub(super) struct StartedRun(pub(super) RunId);

/// The log line of a request.
struct Line {
    /// The method; `None` if the request could not be read.
    method: Option<Method>,
    route: String,
    origin: RequestOrigin,
    started: Instant,
    /// The span that is sent to a collector; `None` if there is none.
    span: Option<ServerSpan>,
}

/// A request whose caller waits. If the caller gives up, its connection drops this before the
/// response.
struct Waiting<'a> {
    runs: &'a RunContext,
    line: &'a Line,
    is_over: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            record(self.runs, self.line, ABANDONED, None);
        }
    }
}

/// Handles a request, from its arrival until its response begins.
pub(super) async fn observe<F: Future<Output = Response>>(
    runs: &RunContext,
    mut request: Request,
    answer: impl FnOnce(Request) -> F,
) -> Response {
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or("unmatched", MatchedPath::as_str);
    let path = request.uri().path().to_owned();
    let caller = trace_of(request.headers());
    let traces = runs.traces.as_ref().filter(|_| !is_of_operators(&path));
    let span = traces.map(|traces| traces.begin(caller));
    let line = Line {
        method: Some(request.method().clone()),
        route: route.to_owned(),
        origin: RequestOrigin {
            request_id: request_id(request.headers()).unwrap_or_else(|| runs.ids.next_uuid().to_string()),
            trace: span.as_ref().map(|span| span.context).or(caller),
        },
        started: Instant::now(),
        span,
    };
    request.extensions_mut().insert(line.origin.clone());
    // The span has the level of errors, so that no log filter drops it from a logged line.
    let request_id = line.origin.request_id.as_str();
    let span = tracing::error_span!("http.request", request_id, trace_id = Empty, run_id = Empty);
    if let Some(trace) = line.origin.trace {
        span.record("trace_id", display(trace.trace_id));
    }
    let mut waiting = Waiting {
        runs,
        line: &line,
        is_over: false,
    };
    let response = answer(request).instrument(span).await;
    waiting.is_over = true;
    drop(waiting);
    finish(runs, &line, &path, response)
}

/// Responds to a request that could not be parsed.
pub(super) fn respond_unparsed(problem: Problem, runs: &RunContext) -> Response {
    let line = Line {
        method: None,
        route: "unread".to_owned(),
        origin: RequestOrigin {
            request_id: runs.ids.next_uuid().to_string(),
            trace: None,
        },
        started: Instant::now(),
        span: None,
    };
    finish(runs, &line, "/", problem.into_response())
}

/// Logs and counts the response, writes the body of a problem, and adds the request id.
fn finish(runs: &RunContext, line: &Line, path: &str, mut response: Response) -> Response {
    let problem = response.extensions_mut().remove::<Problem>();
    let is_openai = is_openai_path(path);
    if let Some(problem) = problem.as_ref().filter(|_| is_openai) {
        *response.status_mut() = status_of(problem.code());
    }
    log(line, &response, problem.as_ref());
    record(runs, line, response.status().as_u16(), problem.as_ref());
    match problem {
        Some(problem) if is_openai => {
            let has_started = response.extensions().get::<StartedRun>().is_some();
            write_error(&mut response, &problem, path, has_started);
        }
        Some(problem) if is_of_page(path) => write_text(&mut response, &problem),
        Some(problem) => write_problem(&mut response, problem, path, &line.origin.request_id),
        None => (),
    }
    if is_openai {
        mark_duration(response.headers_mut(), line.started.elapsed());
    }
    if let Ok(value) = HeaderValue::from_str(&line.origin.request_id) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
    response
        .headers_mut()
        .insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Returns the caller's request id if it is harmless in logs and headers.
fn request_id(headers: &HeaderMap) -> Option<String> {
    let given = headers.get(REQUEST_ID)?.to_str().ok()?;
    let harmless = |c: u8| c.is_ascii_alphanumeric() || b"-_.:/+=@".contains(&c);
    let sane = (1..=MAX_REQUEST_ID).contains(&given.len()) && given.bytes().all(harmless);
    sane.then(|| given.to_owned())
}

/// Returns whether a request is one that operators repeat all the time.
fn is_of_operators(path: &str) -> bool {
    is_probe(path) || path == "/metrics"
}

/// Returns the trace of the caller. A header that is malformed or comes twice counts as none.
fn trace_of(headers: &HeaderMap) -> Option<TraceContext> {
    let mut given = headers.get_all(TRACEPARENT).iter();
    let first = given.next()?.to_str().ok()?.trim().parse().ok()?;
    given.next().is_none().then_some(first)
}

fn write_problem(response: &mut Response, problem: Problem, path: &str, request_id: &str) {
    // Serialising strings and numbers can't fail. If it did, the response would have an empty body
    // and the right status.
    let json = problem.into_json(path, request_id).unwrap_or_default();
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    response.headers_mut().remove(header::CONTENT_LENGTH);
    *response.body_mut() = Body::from(json);
}

/// Counts a response, and ends the span of its request.
fn record(runs: &RunContext, line: &Line, status: u16, problem: Option<&Problem>) {
    let method = line.method.as_ref().map_or("unread", Method::as_str);
    let code = problem.map(|problem| problem.code().as_str());
    if let (Some(traces), Some(span)) = (&runs.traces, &line.span) {
        traces.end(span, method, &line.route, status, code);
    }
    if let Some(metrics) = &runs.metrics {
        metrics
            .http
            .answered(method, &line.route, status, line.started.elapsed());
        if let Some(code) = code {
            metrics.http.refused(code);
        }
    }
}

fn log(line: &Line, response: &Response, problem: Option<&Problem>) {
    let Line {
        method,
        route,
        origin,
        started,
        span,
    } = line;
    let request_id = origin.request_id.as_str();
    let trace_id = origin.trace.map(|trace| display(trace.trace_id));
    let span_id = span.as_ref().map(|span| display(span.context.span_id));
    let caller = span.as_ref().and_then(ServerSpan::linked_trace);
    let caller_trace_id = caller.map(|caller| display(caller.trace_id));
    let (method, status) = (method.as_ref().map(Method::as_str), response.status().as_u16());
    // Rounded to a microsecond.
    let duration_ms = (started.elapsed().as_secs_f64() * 1e6).round() / 1e3;
    let call = response.extensions().get::<Call>();
    let tenant = call.map(|call| call.tenant.as_str());
    let key_id = call.and_then(Call::key_id).map(display);
    let principal = call.and_then(Call::principal);
    let (issuer, subject) = principal
        .map(|caller| (&*caller.issuer, caller.subject.as_str()))
        .unzip();
    let client = call.and_then(Call::certified_name);
    let run_id = response.extensions().get::<StartedRun>();
    let run_id = run_id.map(|StartedRun(run_id)| display(run_id));
    let code = problem.map(|problem| problem.code().as_str());
    let cause = problem.and_then(Problem::cause_chain);
    macro_rules! line {
        ($level:ident, $message:literal) => {
            tracing::$level!(
                method,
                route,
                status,
                duration_ms,
                request_id,
                trace_id,
                span_id,
                caller_trace_id,
                tenant,
                key_id,
                issuer,
                subject,
                client,
                run_id,
                code,
                cause,
                $message
            )
        };
    }
    // Neither a shutdown, which has no cause, nor a mistake of the caller is a failure of the
    // service.
    if status == 500 || (status > 500 && cause.is_some()) {
        line!(error, "request failed");
    } else {
        line!(info, "request answered");
    }
}
