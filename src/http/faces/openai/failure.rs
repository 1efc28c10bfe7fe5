//! The errors of runs in the words of these protocols. An HTTP error and a failed response have the
//! same code and the same class.

use axum::http::StatusCode;

use crate::http::openai_errors::kind_of;
use agent::RunErrorCode as Code;
use agent::record::RunSummary;

/// An error in the words of these protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) struct Failure<'a> {
    /// The status of the HTTP error.
    pub(in crate::http) status: StatusCode,
    /// The class, such as `invalid_request_error`.
    pub(in crate::http) kind: &'static str,
    /// The code: OpenAI's, or that of the run error.
    pub(in crate::http) code: &'a str,
    /// The message for the caller.
    pub(in crate::http) message: &'a str,
}

impl<'a> Failure<'a> {
    /// Makes an error whose class is that of its status.
    pub(in crate::http) fn new(status: StatusCode, code: &'a str, message: &'a str) -> Self {
        Self {
            status,
            kind: kind_of(status),
            code,
            message,
        }
    }

    /// Returns the error of a run that has failed. Only a run that has done nothing yet may be
    /// repeated, so only its error has the status 429.
    pub(in crate::http) fn of_run(run: &'a RunSummary) -> Self {
        let Some(error) = &run.error else {
            let (status, code) = row(Code::InternalError);
            return Self::new(status, code, "the run failed");
        };
        let known = Code::ALL.iter().find(|known| known.as_str() == error.code);
        let (status, code) = known.map_or((StatusCode::INTERNAL_SERVER_ERROR, error.code.as_str()), |known| {
            row(*known)
        });
        let failure = Self::new(status, code, &error.message);
        // The tools of a step run after its completion.
        if status == StatusCode::TOO_MANY_REQUESTS && run.step_count > 1 {
            return Self {
                status: StatusCode::INTERNAL_SERVER_ERROR,
                ..failure
            };
        }
        failure
    }
}

/// Returns the HTTP status and the code of an error. Clients know what to do with OpenAI's codes.
/// Errors with the status 400 are those that another request of the caller may avoid.
fn row(code: Code) -> (StatusCode, &'static str) {
    match code {
        Code::ModelRateLimited => (StatusCode::TOO_MANY_REQUESTS, "rate_limit_exceeded"),
        Code::ModelContextExceeded => (StatusCode::BAD_REQUEST, "context_length_exceeded"),
        Code::ModelRequestRefused | Code::PromptNotRendered => (StatusCode::BAD_REQUEST, "invalid_prompt"),
        Code::RequestUnusable
        | Code::AnswersRequired
        | Code::InvalidAnswers
        | Code::SessionNotWaiting
        | Code::UnknownToolChoice
        | Code::UnsupportedToolChoice
        | Code::ResponseFormatInvalid => (StatusCode::BAD_REQUEST, code.as_str()),
        Code::ModelServerError | Code::InternalError => (StatusCode::INTERNAL_SERVER_ERROR, "server_error"),
        code => (StatusCode::INTERNAL_SERVER_ERROR, code.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11";

    fn failed(code: &str, step_count: u64) -> RunSummary {
        let run = json!({
            "run_id": ID, "session_id": ID, "base_session_id": null, "agent": "a", "agent_version": null, "model": "p/m",
            "mode": "sync", "status": "failed", "stop_reason": null, "usage": {}, "step_count": step_count, "metadata": {},
            "error": {"code": code, "message": "words", "phase": "execute"},
            "created_at": "2026-01-01T00:00:00Z", "started_at": null, "completed_at": null,
        });
        serde_json::from_value(run).unwrap()
    }

    #[test]
    fn errors_of_runs_have_the_codes_that_clients_know() {
        for (code, step_count, status, kind, expected) in [
            ("model_rate_limited", 1, 429, "rate_limit_error", "rate_limit_exceeded"),
            ("model_rate_limited", 2, 500, "rate_limit_error", "rate_limit_exceeded"),
            (
                "model_context_exceeded",
                1,
                400,
                "invalid_request_error",
                "context_length_exceeded",
            ),
            (
                "model_request_refused",
                3,
                400,
                "invalid_request_error",
                "invalid_prompt",
            ),
            (
                "unknown_tool_choice",
                1,
                400,
                "invalid_request_error",
                "unknown_tool_choice",
            ),
            ("model_server_error", 1, 500, "server_error", "server_error"),
            ("model_timeout", 1, 500, "server_error", "model_timeout"),
            ("of_a_hook", 1, 500, "server_error", "of_a_hook"),
        ] {
            let run = failed(code, step_count);
            let expected = Failure {
                status: StatusCode::from_u16(status).unwrap(),
                kind,
                code: expected,
                message: "words",
            };
            assert_eq!(Failure::of_run(&run), expected, "{code} {step_count}");
        }
        let run = RunSummary {
            error: None,
            ..failed("model_timeout", 1)
        };
        assert_eq!(Failure::of_run(&run).code, "server_error");
    }
}
