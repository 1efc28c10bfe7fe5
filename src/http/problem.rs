//! Problems (RFC 9457): the responses to failed requests.
//!
//! Only this file makes error responses. A problem also has the cause for the operator. The cause
//! goes to the log and never reaches the caller.

use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::codes::ProblemCode;
use super::conflicts::Conflict;
use crate::run::refusal::OpenCalls;
use agent::record::{RequiredActionView, RunStatus};
use values::causes::with_causes;
use values::clock::Timestamp;
use values::ids::{RunId, SessionId};

/// The longest text of a problem, in bytes.
const MAX_TEXT: usize = 1_000;
/// The most bytes of the open calls that a problem shows. A problem takes no room among the bytes
/// in flight.
const MAX_SHOWN_CALLS: usize = 64 << 10;

/// A request that failed: words for the caller and, apart from them, the cause for the operator.
#[derive(Debug, Clone)]
pub struct Problem(Box<Parts>);

#[derive(Debug, Clone)]
struct Parts {
    code: ProblemCode,
    body: ProblemBody,
    retry_after: Option<Duration>,
    /// What the header `WWW-Authenticate` says, if not the default.
    challenge: Option<String>,
    cause: Option<Arc<dyn Error + Send + Sync>>,
}

/// An error in one value of the request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldProblem {
    /// A JSON pointer (RFC 6901) to the value in the body, or the name of the parameter.
    pub pointer: String,
    /// The error, in words.
    pub message: String,
}

/// A problem as it is sent (RFC 9457).
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct ProblemBody {
    /// The address of the page that explains the code.
    #[serde(rename = "type")]
    #[schema(rename = "type", value_type = String, example = "/docs/problems#session_not_found")]
    kind: String,
    /// The title, the same for every problem with this code.
    title: &'static str,
    /// The status of the response, the same for every problem with this code.
    #[schema(value_type = u16, minimum = 400, maximum = 599)]
    status: u16,
    /// The error of this request, in words.
    detail: String,
    /// The path of the request.
    instance: String,
    /// The stable code.
    #[schema(example = "session_not_found")]
    code: &'static str,
    /// Names the request in the log and in the header `x-request-id`. It is the id of the request's
    /// own header, if there is one.
    request_id: String,
    /// The values that are wrong. `pointer` is a JSON pointer into the body, or the name of a
    /// parameter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    errors: Vec<FieldProblem>,
    /// The run that the problem is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    run_id: Option<RunId>,
    /// The status of that run, in `session_not_committed` and `run_not_waiting`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<RunStatus>)]
    run_status: Option<RunStatus>,
    /// The first open calls, up to 64 KiB, the number of the others in `omitted_calls`, and the
    /// answers to be filled in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    required_action: Option<RequiredActionView>,
    /// The session that a thread points to instead, or whose open calls the problem is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = Uuid)]
    session_id: Option<SessionId>,
    /// When runs may begin again, in `spend_limit_reached`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<chrono::DateTime<chrono::Utc>>)]
    resets_at: Option<Timestamp>,
    /// The conflicts of a merge, in `merge_conflict`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    conflicts: Vec<Conflict>,
}

impl Problem {
    /// Makes a problem. `detail` describes this case, in words for the caller.
    pub fn new(code: ProblemCode, detail: impl Into<String>) -> Self {
        let body = ProblemBody {
            kind: format!("/docs/problems#{}", code.as_str()),
            title: code.title(),
            status: code.status().as_u16(),
            detail: shortened(detail.into()),
            instance: String::new(),
            code: code.as_str(),
            request_id: String::new(),
            errors: Vec::new(),
            run_id: None,
            run_status: None,
            session_id: None,
            required_action: None,
            resets_at: None,
            conflicts: Vec::new(),
        };
        Self(Box::new(Parts {
            code,
            body,
            retry_after: None,
            challenge: None,
            cause: None,
        }))
    }

    /// Makes a problem with one value of the request.
    pub(super) fn of_field(code: ProblemCode, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        let (pointer, message) = (pointer.into(), message.into());
        let position = if pointer.is_empty() { "the body" } else { &pointer };
        Self::new(code, format!("{position}: {message}")).with_error(pointer, message)
    }

    /// Makes a problem with a value of the body that can't be used.
    pub(super) fn invalid_field(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of_field(ProblemCode::InvalidField, pointer, message)
    }

    /// Makes a problem that reveals only that the service failed.
    pub(super) fn internal(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(
            ProblemCode::InternalError,
            "the service failed to answer; its log has the cause under the request id",
        )
        .with_cause(cause)
    }

    /// Adds a fault of a value.
    #[must_use]
    pub(super) fn with_error(mut self, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        self.0.body.errors.push(FieldProblem {
            pointer: shortened(pointer.into()),
            message: shortened(message.into()),
        });
        self
    }

    /// Names the run that the problem is about.
    #[must_use]
    pub(super) fn with_run(mut self, run_id: Option<RunId>) -> Self {
        self.0.body.run_id = run_id;
        self
    }

    /// Says when runs may begin again.
    #[must_use]
    pub(super) fn with_reset(mut self, resets_at: Timestamp) -> Self {
        self.0.body.resets_at = Some(resets_at);
        self
    }

    /// Adds the status of that run.
    #[must_use]
    pub(super) fn with_run_status(mut self, run_status: RunStatus) -> Self {
        self.0.body.run_status = Some(run_status);
        self
    }

    /// Names the session that a thread points to instead of the expected one.
    #[must_use]
    pub(super) fn with_session(mut self, session_id: Option<SessionId>) -> Self {
        self.0.body.session_id = session_id;
        self
    }

    /// Adds the open calls of a session, as many as there is room for, and the answers to be filled
    /// in.
    #[must_use]
    pub(super) fn with_open_calls(mut self, open: &OpenCalls) -> Self {
        let (session_id, calls) = (open.session_id, &open.step.open_calls);
        let action = RequiredActionView::within(calls, MAX_SHOWN_CALLS, open.at);
        let omitted = action.as_ref().map_or(0, RequiredActionView::omitted_calls);
        let body = &mut self.0.body;
        if omitted > 0 {
            // Writing to a string can't fail.
            let _ = write!(
                body.detail,
                "; the last {omitted} open calls are not shown here: GET \
                 /v1/sessions/{session_id}?include=context_state has them"
            );
        }
        body.required_action = action;
        self.with_session(Some(session_id))
    }

    /// Adds the conflicts of a merge.
    #[must_use]
    pub(super) fn with_conflicts(mut self, conflicts: Vec<Conflict>) -> Self {
        self.0.body.conflicts = conflicts;
        self
    }

    /// Removes the contents of sessions: open calls, and the conflicts of a merge.
    #[must_use]
    pub(super) fn without_contents(mut self) -> Self {
        let Parts { code, body, .. } = &mut *self.0;
        body.required_action = None;
        if !std::mem::take(&mut body.conflicts).is_empty() {
            code.title().clone_into(&mut body.detail);
        }
        self
    }

    /// Adds when a retry may help.
    #[must_use]
    pub(super) fn with_retry_after(mut self, retry_after: Duration) -> Self {
        self.0.retry_after = Some(retry_after);
        self
    }

    /// Adds what credentials the request needs, for the header `WWW-Authenticate`.
    #[must_use]
    pub(super) fn with_challenge(mut self, challenge: String) -> Self {
        self.0.challenge = Some(challenge);
        self
    }

    /// Adds the cause, for the operator alone.
    #[must_use]
    pub(super) fn with_cause(mut self, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.0.cause = Some(Arc::from(cause.into()));
        self
    }

    /// Returns the code.
    pub fn code(&self) -> ProblemCode {
        self.0.code
    }

    /// Returns the description of this case, in words for the caller.
    pub(super) fn detail(&self) -> &str {
        &self.0.body.detail
    }

    /// Returns what is wrong with the first value that is named, if one is.
    pub(super) fn first_error(&self) -> Option<&FieldProblem> {
        self.0.body.errors.first()
    }

    /// Returns the cause and its causes, joined, for the log.
    pub(super) fn cause_chain(&self) -> Option<String> {
        self.0.cause.as_deref().map(|cause| with_causes(cause))
    }

    /// Returns the JSON of the response to a request for the path.
    pub(super) fn into_json(self, path: &str, request_id: &str) -> Result<Vec<u8>, serde_json::Error> {
        serde_json::to_vec(&ProblemBody {
            instance: path.to_owned(),
            request_id: request_id.to_owned(),
            ..self.0.body
        })
    }
}

/// Truncates a text that may quote the request.
fn shortened(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        text.push_str("...");
    }
    text
}

impl IntoResponse for Problem {
    /// Makes a response without a body. The outermost layer writes the body, since only that layer
    /// knows the request id and the path.
    fn into_response(self) -> Response {
        let mut response = self.0.code.status().into_response();
        let headers = response.headers_mut();
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(retry_after) = self.0.retry_after {
            let seconds = retry_after.as_millis().div_ceil(1000).max(1);
            headers.insert(
                header::RETRY_AFTER,
                HeaderValue::from(u64::try_from(seconds).unwrap_or(u64::MAX)),
            );
        }
        let challenge = self.0.challenge.as_deref().map(HeaderValue::from_str);
        if let Some(Ok(challenge)) = challenge {
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        } else if self.0.code.status() == axum::http::StatusCode::UNAUTHORIZED {
            headers.insert(
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static(r#"Bearer realm="agent-runtime""#),
            );
        }
        if matches!(
            self.0.code,
            ProblemCode::BodyTooLarge
                | ProblemCode::RequestTimeout
                | ProblemCode::MalformedBody
                | ProblemCode::MalformedRequest
                | ProblemCode::UnsupportedTransferEncoding
                | ProblemCode::TooManyConnections
        ) {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        *response.body_mut() = Body::empty();
        response.extensions_mut().insert(self);
        response
    }
}
