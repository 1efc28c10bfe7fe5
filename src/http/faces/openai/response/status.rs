//! The status of a response, and the reason of its end.

use serde::Serialize;

use crate::http::faces::openai::failure::Failure;
use agent::RunErrorCode as Code;
use agent::record::{RunRecord, RunStatus};
use agent::state::{FinishReason, StopReason};

/// The reason for a limit of tokens.
const MAX_TOKENS: &str = "max_output_tokens";

/// The status of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ResponseStatus {
    Queued,
    InProgress,
    Completed,
    /// The response was cut, or its run was stopped.
    Incomplete,
    Failed,
    Cancelled,
}

/// Why a response is not complete.
#[derive(Debug, Serialize)]
pub(super) struct IncompleteDetails {
    reason: &'static str,
}

/// The error that failed a response.
#[derive(Debug, Serialize)]
pub(super) struct ResponseError {
    code: String,
    message: String,
    #[serde(rename = "type")]
    kind: &'static str,
    param: Option<String>,
}

/// Returns the status of the response of a run. A run that waits for answers has a complete
/// response: the client finds the calls in its output.
pub(super) fn status_of(record: &RunRecord) -> ResponseStatus {
    match record.summary.status {
        RunStatus::Queued => ResponseStatus::Queued,
        RunStatus::Running => ResponseStatus::InProgress,
        RunStatus::Completed if cut_of(record).is_some() => ResponseStatus::Incomplete,
        RunStatus::Completed | RunStatus::Waiting | RunStatus::Answered => ResponseStatus::Completed,
        RunStatus::Stopped => ResponseStatus::Incomplete,
        RunStatus::Failed if is_cut(record) => ResponseStatus::Incomplete,
        RunStatus::Failed => ResponseStatus::Failed,
        RunStatus::Cancelled => ResponseStatus::Cancelled,
    }
}

/// Returns whether a run has failed only because its output, which had to be JSON, was cut. For
/// these clients, such a response is incomplete.
pub(in crate::http) fn is_cut(record: &RunRecord) -> bool {
    let error = record.summary.error.as_ref();
    let is_incomplete = error.is_some_and(|error| error.code == Code::AnswerIncomplete.as_str());
    is_incomplete && cut_of(record).is_some()
}

impl IncompleteDetails {
    /// Returns why the response of a run is not complete.
    pub(super) fn of_record(record: &RunRecord) -> Option<Self> {
        let is_incomplete = status_of(record) == ResponseStatus::Incomplete;
        let reason = match record.summary.stop_reason {
            Some(StopReason::TokenLimitReached | StopReason::SpendLimitReached) => MAX_TOKENS,
            Some(reason) if record.summary.status == RunStatus::Stopped => reason.as_str(),
            _ => cut_of(record).unwrap_or("stopped"),
        };
        is_incomplete.then_some(Self { reason })
    }
}

impl ResponseError {
    /// Returns the error of the response of a run.
    pub(super) fn of_record(record: &RunRecord) -> Option<Self> {
        if status_of(record) != ResponseStatus::Failed {
            return None;
        }
        Some(Self::of_failure(Failure::of_run(&record.summary)))
    }

    /// Returns an error as that of a response.
    pub(super) fn of_failure(failure: Failure<'_>) -> Self {
        let Failure {
            kind, code, message, ..
        } = failure;
        Self {
            code: code.to_owned(),
            message: message.to_owned(),
            kind,
            param: None,
        }
    }
}

/// Returns the reason why the last completion was cut.
fn cut_of(record: &RunRecord) -> Option<&'static str> {
    match record.finish_reason {
        Some(FinishReason::Length) => Some(MAX_TOKENS),
        Some(FinishReason::ContentFilter) => Some("content_filter"),
        _ => None,
    }
}
