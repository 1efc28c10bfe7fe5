//! Turns the errors of lower modules into problems, for all handlers. Causes go to the log.

use std::time::Duration;

use super::codes::ProblemCode;
use super::file_problems::{change_problem, merge_conflict, tree_problem, unknown_blob};
use super::problem::Problem;
use crate::run::refusal::{AgentFilesError, Refusal};
use agent::hooks::HookConfigError;
use agent::ports::ModelLookupError;
use agent::record::RunStatus;
use store::StoreError;
use values::causes::with_causes;
use values::ids::{RunId, SessionId};

/// When to try again after the store was unavailable.
const STORE_RETRY_AFTER: Duration = Duration::from_secs(1);
/// When to retry while the service shuts down. By then another process should have taken over.
const SHUTDOWN_RETRY_AFTER: Duration = Duration::from_secs(5);

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        let unavailable =
            |detail: String| Self::new(ProblemCode::StoreUnavailable, detail).with_retry_after(STORE_RETRY_AFTER);
        match error {
            StoreError::Unavailable { reason, .. } => unavailable(reason.to_string()).with_cause(error),
            StoreError::Schema { .. } => {
                unavailable("the store has another schema than this version needs".to_owned()).with_cause(error)
            }
            StoreError::TenantFull { .. } => Self::new(ProblemCode::StorageQuotaExceeded, error.to_string()),
            StoreError::Failed { .. } | StoreError::Corrupt { .. } => Self::internal(error),
        }
    }
}

impl From<AgentFilesError> for Problem {
    /// Administrators get the operator's error text, since they may see these agents completely.
    fn from(error: AgentFilesError) -> Self {
        Self::new(ProblemCode::AgentFilesInvalid, with_causes(&error))
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let detail = refusal.to_string();
        match refusal {
            Refusal::UnknownAgent { .. } => Self::new(ProblemCode::AgentNotFound, detail),
            Refusal::UnknownSubagent { .. } => at_pointer(ProblemCode::AgentNotFound, "/agent", detail),
            Refusal::UnknownSession { .. } | Refusal::ThreadWithoutSession { .. } => {
                Self::new(ProblemCode::SessionNotFound, detail)
            }
            Refusal::SessionNotCommitted {
                session_id,
                run_id,
                run_status,
            } => session_not_committed(session_id, run_id, run_status),
            Refusal::Unpublished { run_id } => {
                Self::new(ProblemCode::SessionNotCommitted, detail).with_run(Some(run_id))
            }
            Refusal::Conflict { run_id } => Self::new(ProblemCode::BaseSessionConflict, detail).with_run(run_id),
            Refusal::AnswersRequired(open) => Self::new(ProblemCode::AnswersRequired, detail).with_open_calls(&open),
            Refusal::InvalidAnswers { open, faults } => {
                let problem = Self::new(ProblemCode::InvalidAnswers, detail).with_open_calls(&open);
                let faults = faults.into_iter();
                faults.fold(problem, |problem, (pointer, message)| {
                    problem.with_error(pointer, message)
                })
            }
            Refusal::SessionNotWaiting { session_id } | Refusal::ThreadMovedOn { session_id, .. } => {
                Self::new(ProblemCode::SessionNotWaiting, detail).with_session(session_id)
            }
            Refusal::Answered { by } => Self::new(ProblemCode::RunNotWaiting, detail).with_run(Some(by)),
            Refusal::RunNotWaiting { run_id, status } => Self::new(ProblemCode::RunNotWaiting, detail)
                .with_run(Some(run_id))
                .with_run_status(status),
            Refusal::Model(error) => model_problem(&error, detail),
            Refusal::Tool(_) => Self::new(ProblemCode::UnknownTool, detail),
            Refusal::Hook(error) => hook_problem(&error, detail),
            Refusal::Prompt(_) => Self::new(ProblemCode::InvalidPrompt, detail),
            Refusal::ResponseFormat(_) => Self::new(ProblemCode::InvalidResponseFormat, detail),
            Refusal::Invalid { field, message } => Self::invalid_field(pointer_to(&field), message),
            Refusal::NotAllowed { .. } | Refusal::Unpriced { .. } => Self::new(ProblemCode::NotAllowed, detail),
            Refusal::AboveCeiling { field, .. } => at_pointer(ProblemCode::AboveCeiling, pointer_to(field), detail),
            Refusal::History(_) => Self::new(ProblemCode::InvalidHistory, detail),
            Refusal::SessionTooLarge(_) => Self::new(ProblemCode::SessionTooLarge, detail),
            Refusal::AgentIsConfigured { .. } => Self::new(ProblemCode::AgentIsConfigured, detail),
            Refusal::ThreadBusy { run_id } | Refusal::ThreadAtWork { run_id, .. } => {
                Self::new(ProblemCode::ThreadBusy, detail).with_run(Some(run_id))
            }
            Refusal::ThreadExists { .. } => Self::new(ProblemCode::ThreadExists, detail),
            Refusal::UnknownThread { .. } => Self::new(ProblemCode::ThreadNotFound, detail),
            Refusal::ThreadMoved { .. } => Self::new(ProblemCode::ThreadMoved, detail),
            Refusal::OtherRequest { .. } => Self::new(ProblemCode::IdempotencyKeyReused, detail),
            Refusal::UnknownRun { .. } => Self::new(ProblemCode::RunNotFound, detail),
            Refusal::TooMuchSaid { run_id } => {
                Self::new(ProblemCode::TooManySteeringMessages, detail).with_run(Some(run_id))
            }
            Refusal::Unreachable { .. } => {
                Self::new(ProblemCode::RunUnreachable, detail).with_retry_after(STORE_RETRY_AFTER)
            }
            Refusal::QueueFull { retry_after, .. } | Refusal::TenantQueueFull { retry_after, .. } => {
                Self::new(ProblemCode::QueueFull, detail).with_retry_after(retry_after)
            }
            Refusal::TooManyRuns { retry_after, .. } | Refusal::TooManyTenantRuns { retry_after, .. } => {
                Self::new(ProblemCode::TooManyRuns, detail).with_retry_after(retry_after)
            }
            Refusal::SpendLimitReached(standing) => {
                Self::new(ProblemCode::SpendLimitReached, detail).with_reset(standing.limit.resets_at)
            }
            Refusal::ShuttingDown => {
                Self::new(ProblemCode::ShuttingDown, detail).with_retry_after(SHUTDOWN_RETRY_AFTER)
            }
            Refusal::Files(error) => tree_problem(error),
            Refusal::FileChange { index, error } => change_problem(index, error),
            Refusal::UnknownBlob { index, hash } => unknown_blob(index, hash),
            Refusal::NoCommonAncestor { .. } | Refusal::RemovedAncestor { .. } => {
                Self::new(ProblemCode::NoCommonAncestor, detail)
            }
            Refusal::MergeConflicts(conflicts) => merge_conflict(conflicts, detail),
            Refusal::Store(error) => error.into(),
        }
    }
}

/// Makes a problem whose detail is also the fault of one value of the body.
fn at_pointer(code: ProblemCode, pointer: impl Into<String>, detail: String) -> Problem {
    Problem::new(code, detail.clone()).with_error(pointer, detail)
}

/// Returns the JSON pointer to a field of the body, whose parts are separated by dots.
fn pointer_to(field: &str) -> String {
    format!("/{}", field.replace('.', "/"))
}

/// Makes the problem of a session that a run has reserved and not committed. A run that ended
/// without a session never commits it.
fn session_not_committed(session_id: SessionId, run_id: RunId, run_status: RunStatus) -> Problem {
    let detail = if run_status.is_terminal() && !run_status.has_session() {
        let status = run_status.as_str();
        format!("the session {session_id} will never be committed: its run {run_id} ended with the status {status}")
    } else {
        format!("the session {session_id} is not committed; the run {run_id} has reserved it")
    };
    Problem::new(ProblemCode::SessionNotCommitted, detail)
        .with_run(Some(run_id))
        .with_run_status(run_status)
}

fn hook_problem(error: &HookConfigError, detail: String) -> Problem {
    match error {
        HookConfigError::Unknown { index, .. } => {
            Problem::new(ProblemCode::UnknownHook, detail.clone()).with_error(format!("/hooks/{index}/name"), detail)
        }
        HookConfigError::Config { index, .. } => {
            Problem::of_field(ProblemCode::InvalidHook, format!("/hooks/{index}/config"), detail)
        }
    }
}

fn model_problem(error: &ModelLookupError, detail: String) -> Problem {
    let code = match error {
        ModelLookupError::UnknownProvider { .. }
        | ModelLookupError::UnknownModel { .. }
        | ModelLookupError::NotBuilt { .. } => ProblemCode::UnknownModel,
        ModelLookupError::MissingKey { .. } => ProblemCode::ModelNotConfigured,
    };
    Problem::new(code, detail)
}

#[cfg(test)]
mod tests {
    use axum::http::{StatusCode, header};
    use axum::response::IntoResponse as _;

    use super::*;

    #[test]
    fn temporary_errors_have_retry_after() {
        let run_id = RunId::from_uuid(uuid::Uuid::from_u128(7));
        let queue_full = Refusal::QueueFull {
            limit: 3,
            retry_after: Duration::from_millis(1_500),
        };
        for (refusal, code, status, retry_after) in [
            (queue_full, "queue_full", StatusCode::TOO_MANY_REQUESTS, "2"),
            (
                Refusal::Unreachable { run_id },
                "run_unreachable",
                StatusCode::SERVICE_UNAVAILABLE,
                "1",
            ),
        ] {
            let problem = Problem::from(refusal);
            assert_eq!(problem.code().as_str(), code);
            let response = problem.into_response();
            assert_eq!(response.status(), status);
            assert_eq!(response.headers()[header::RETRY_AFTER], retry_after);
        }
    }
}
