//! How a run ended, and how its parts fail.

use std::error::Error;

use tokio_util::sync::CancellationToken;

use super::live::LiveEvents;
use crate::agent::ports::EnvironmentError;
use crate::agent::state::{AgentState, ExecutionStatus, StopReason};
use crate::ids::RunId;
use crate::record::{RunError, RunPhase, RunRecord, RunStatus, StepRecord};
use crate::store::{CommitError, StoreError};

/// The final record of a run.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) record: RunRecord,
    pub(super) steps: Vec<StepRecord>,
    /// Whether the commit has stored the record.
    pub(super) committed: bool,
}

impl Outcome {
    /// Records an execution that has ended by itself.
    pub(super) fn of_execution(live: &LiveEvents, state: &AgentState) -> Self {
        let mut summary = live.summary();
        summary.status = match state.status() {
            Some(ExecutionStatus::Completed) => RunStatus::Completed,
            Some(ExecutionStatus::Stopped) => RunStatus::Stopped,
            _ => RunStatus::Failed,
        };
        summary.stop_reason = state.stop_reason();
        summary.usage = state.usage();
        summary.step_count = state.step_count() as u64;
        summary.error = (summary.status == RunStatus::Failed).then(|| execution_error(state));
        summary.completed_at = Some(live.now());
        let output = state.current_response().to_vec();
        Self {
            record: RunRecord { summary, output },
            steps: live.steps(),
            committed: false,
        }
    }

    /// Records a run that failed outside of its execution.
    pub(super) fn failed(live: &LiveEvents, failure: &Failure) -> Self {
        let mut summary = live.summary();
        summary.completed_at = Some(live.now());
        let record = RunRecord {
            summary,
            output: Vec::new(),
        };
        Self {
            record,
            steps: live.steps(),
            committed: false,
        }
        .failing(failure)
    }

    /// Tells whether a session is to be published.
    pub(super) fn publishes(&self, cancellation: &CancellationToken) -> bool {
        self.record.summary.status.has_session() && !cancellation.is_cancelled()
    }

    /// Ends a run that publishes nothing: it was cancelled, or it failed.
    pub(super) fn unpublished(mut self, cancellation: &CancellationToken) -> Self {
        let summary = &mut self.record.summary;
        if cancellation.is_cancelled() && summary.status != RunStatus::Failed {
            summary.status = RunStatus::Cancelled;
            summary.stop_reason = Some(StopReason::UserRequested);
        }
        self
    }

    /// Ends a run that fails after its execution.
    pub(super) fn failing(mut self, failure: &Failure) -> Self {
        let summary = &mut self.record.summary;
        summary.status = RunStatus::Failed;
        summary.stop_reason = Some(StopReason::ErrorForbade);
        summary.error = Some(failure.error.clone());
        self
    }
}

/// The last error of a failed execution; its deciding signal speaks where there is none.
fn execution_error(state: &AgentState) -> RunError {
    let signal = state.stop_signal().map(|signal| signal.message.clone());
    match state.errors().last() {
        Some(error) => RunError {
            code: error.code.clone(),
            message: error.message.clone(),
            phase: RunPhase::Execute,
            conflicting_run_id: None,
        },
        None => RunError {
            code: "execution_failed".to_owned(),
            message: signal.unwrap_or_else(|| "the execution failed".to_owned()),
            phase: RunPhase::Execute,
            conflicting_run_id: None,
        },
    }
}

/// A part of a run that failed. The caller reads the error; the operator's side is logged when the failure is made.
#[derive(Debug)]
pub(super) struct Failure {
    error: RunError,
}

impl Failure {
    /// The base session can't be read.
    pub(super) fn load(error: &StoreError) -> Self {
        let (code, message) = match error {
            StoreError::Unavailable { .. } => (
                "store_unavailable",
                "the base session can't be loaded: the store is unavailable",
            ),
            StoreError::Corrupt { .. } => (
                "session_unreadable",
                "the base session can't be loaded: what is stored of it can't be read",
            ),
            StoreError::Failed { .. } | StoreError::Schema { .. } => {
                ("store_failed", "the base session can't be loaded")
            }
        };
        Self::logged(RunPhase::Load, code, message, error)
    }

    /// The environment can't be restored.
    pub(super) fn restore(error: &EnvironmentError) -> Self {
        Self::logged(RunPhase::Load, "environment_not_restored", error.to_string(), error)
    }

    /// The environment can't be exported.
    pub(super) fn export(error: &EnvironmentError) -> Self {
        Self::logged(RunPhase::Commit, "environment_not_exported", error.to_string(), error)
    }

    /// The session can't be published.
    pub(super) fn commit(error: &CommitError) -> Self {
        let (code, message) = match error {
            CommitError::Conflict { run_id } => return Self::conflict(*run_id),
            CommitError::Store(StoreError::Unavailable { .. }) => (
                "store_unavailable",
                "the store is unavailable, so the session is most likely not published; read the run once the store is back",
            ),
            CommitError::Exists | CommitError::Store(_) => ("store_failed", "the session can't be published"),
        };
        Self::logged(RunPhase::Commit, code, message, error)
    }

    /// The run's task met a fault of ours.
    pub(super) fn panicked() -> Self {
        let message = "the service met an internal error".to_owned();
        let error = RunError {
            code: "internal_error".to_owned(),
            message,
            phase: RunPhase::Execute,
            conflicting_run_id: None,
        };
        Self { error }
    }

    /// Returns what the caller reads.
    pub(super) fn into_error(self) -> RunError {
        self.error
    }

    fn conflict(run_id: Option<RunId>) -> Self {
        let message = "another run has continued the base session first".to_owned();
        let code = "base_session_conflict".to_owned();
        Self {
            error: RunError {
                code,
                message,
                phase: RunPhase::Commit,
                conflicting_run_id: run_id,
            },
        }
    }

    fn logged(phase: RunPhase, code: &str, message: impl Into<String>, error: &(dyn Error + 'static)) -> Self {
        tracing::error!(%phase, code, error, "a run fails");
        Self {
            error: RunError {
                code: code.to_owned(),
                message: message.into(),
                phase,
                conflicting_run_id: None,
            },
        }
    }
}
