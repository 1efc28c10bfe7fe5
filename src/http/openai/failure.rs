//! Failed runs as errors. A client that waits for a response often reads no status in it, so an
//! error is safer than a response that has failed.

use axum::http::StatusCode;
use axum::response::Response;

use crate::http::faces::openai::failure::Failure;
use crate::http::faces::openai::ids::response_id;
use crate::http::faces::openai::response::is_cut;
use crate::http::openai_errors::{ErrorBody, ErrorFields, error_response};
use agent::record::{RunRecord, RunStatus};
use values::session::OpenCallKind;

impl<'a> Failure<'a> {
    /// Returns the failure of a run; `None` if it has not failed, or if its response is incomplete.
    pub(super) fn of(run: &'a RunRecord) -> Option<Self> {
        let failed = run.summary.status == RunStatus::Failed && !is_cut(run);
        failed.then(|| Self::of_run(&run.summary))
    }

    /// Returns the failure of a run whose end a caller has awaited.
    pub(super) fn of_awaited(run: &'a RunRecord) -> Option<Self> {
        let has_ended = run.summary.status.is_terminal();
        if has_ended {
            Self::of(run)
        } else {
            Some(Self::unfinished())
        }
    }

    /// Returns the failure of a run that has no completion in Chat Completions, which has neither a
    /// status nor calls that need an approval.
    pub(super) fn of_chat(run: &'a RunRecord) -> Option<Self> {
        let failed = StatusCode::INTERNAL_SERVER_ERROR;
        match run.summary.status {
            RunStatus::Failed => Self::of(run),
            RunStatus::Cancelled => Some(Self::new(failed, "cancelled", "the run was cancelled")),
            RunStatus::Queued | RunStatus::Running => Some(Self::unfinished()),
            _ if run.open_calls.iter().any(|call| call.kind != OpenCallKind::Client) => Some(Self::new(
                StatusCode::BAD_REQUEST,
                "answers_required",
                "a tool of the agent needs an approval or input, for which Chat Completions has no form: use \
                 /v1/responses",
            )),
            _ => None,
        }
    }

    /// Returns the failure of a stream whose reader is dropped.
    pub(super) fn of_dropped(message: &'a str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "stream_dropped", message)
    }

    fn unfinished() -> Self {
        let words = "the service shuts down, and another process continues the run";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "run_continues", words)
    }

    /// Responds with the error, which names the response of the run. No client repeats the request,
    /// since its run was accepted.
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
                kind: self.kind,
                param: None,
                code: self.code.to_owned(),
                response_id: None,
            },
        }
    }
}
