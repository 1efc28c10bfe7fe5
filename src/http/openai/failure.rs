//! Failed runs as errors. A client that waits for a response often reads no status in it, so an
//! error is safer than a response that has failed.

use axum::http::StatusCode;
use axum::response::Response;

use crate::http::faces::openai::ids::response_id;
use crate::http::faces::openai::response::is_cut;
use crate::http::openai_errors::{ErrorBody, ErrorFields, error_response, kind_of};
use agent::RunErrorCode as Code;
use agent::record::{RunError, RunPhase, RunRecord, RunStatus};
use values::session::OpenCallKind;

/// The codes of errors that another request of the caller may avoid.
const OF_REQUEST: [Code; 9] = [
    Code::RequestUnusable,
    Code::AnswersRequired,
    Code::InvalidAnswers,
    Code::SessionNotWaiting,
    Code::PromptNotRendered,
    Code::UnknownToolChoice,
    Code::UnsupportedToolChoice,
    Code::ResponseFormatInvalid,
    Code::ModelRequestRefused,
];

/// An error in the words of these routes.
#[derive(Debug)]
pub(super) struct Failure<'a> {
    pub(super) status: StatusCode,
    pub(super) code: &'a str,
    pub(super) message: &'a str,
}

impl<'a> Failure<'a> {
    const UNFINISHED: Self = Self {
        status: StatusCode::INTERNAL_SERVER_ERROR,
        code: "run_continues",
        message: "the service shuts down, and another process continues the run",
    };

    /// Returns the failure of a run; `None` if it has not failed, or if its response is incomplete.
    pub(super) fn of(run: &'a RunRecord) -> Option<Self> {
        let failed = run.summary.status == RunStatus::Failed && !is_cut(run);
        failed.then(|| Self::of_error(run.summary.error.as_ref(), run.summary.step_count))
    }

    /// Returns the failure of a run whose end a caller has awaited.
    pub(super) fn of_awaited(run: &'a RunRecord) -> Option<Self> {
        let has_ended = run.summary.status.is_terminal();
        if has_ended {
            Self::of(run)
        } else {
            Some(Self::UNFINISHED)
        }
    }

    /// Returns the failure of a run that has no completion in Chat Completions, which has neither a
    /// status nor calls that need an approval.
    pub(super) fn of_chat(run: &'a RunRecord) -> Option<Self> {
        let (status, code, message) = match run.summary.status {
            RunStatus::Failed => return Self::of(run),
            RunStatus::Cancelled => (StatusCode::INTERNAL_SERVER_ERROR, "cancelled", "the run was cancelled"),
            RunStatus::Queued | RunStatus::Running => return Some(Self::UNFINISHED),
            _ if run.open_calls.iter().any(|call| call.kind != OpenCallKind::Client) => (
                StatusCode::BAD_REQUEST,
                "answers_required",
                "a tool of the agent needs an approval or input, for which Chat Completions has no form: use \
                 /v1/responses",
            ),
            _ => return None,
        };
        Some(Self { status, code, message })
    }

    fn of_error(error: Option<&'a RunError>, step_count: u64) -> Self {
        let (code, message) = error.map_or(("internal_error", "the run failed"), |error| {
            (error.code.as_str(), error.message.as_str())
        });
        let is = |known: &Code| known.as_str() == code;
        // The tools of a step run after its completion.
        let has_done_nothing = step_count <= 1 && error.is_some_and(|error| error.phase == RunPhase::Execute);
        if is(&Code::ModelRateLimited) && has_done_nothing {
            return Self {
                status: StatusCode::TOO_MANY_REQUESTS,
                code: "rate_limit_exceeded",
                message,
            };
        }
        if is(&Code::ModelContextExceeded) {
            return Self {
                status: StatusCode::BAD_REQUEST,
                code: "context_length_exceeded",
                message,
            };
        }
        let status = if OF_REQUEST.iter().any(is) {
            StatusCode::BAD_REQUEST
        } else {
            StatusCode::INTERNAL_SERVER_ERROR
        };
        Self { status, code, message }
    }

    /// Responds with the error, which names the response that can be retrieved. No client repeats
    /// the request, since its run was accepted.
    pub(super) fn respond(&self, run: &RunRecord) -> Response {
        let mut body = self.body();
        body.error.response_id = Some(response_id(run.summary.run_id));
        error_response(self.status, &body)
    }

    /// Returns the body of the error.
    pub(super) fn body(&self) -> ErrorBody {
        ErrorBody {
            error: ErrorFields {
                message: self.message.to_owned(),
                kind: kind_of(self.status),
                param: None,
                code: self.code.to_owned(),
                response_id: None,
            },
        }
    }
}
