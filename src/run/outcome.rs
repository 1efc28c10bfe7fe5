//! The outcome of a run, and the errors of its phases.

use std::error::Error;

use tokio_util::sync::CancellationToken;

use super::error::Refusal;
use super::live::LiveEvents;
use crate::agent::AgentEvent;
use crate::agent::hooks::HookConfigError;
use crate::agent::ports::{EnvironmentError, ToolSetError};
use crate::agent::state::{AgentError, AgentState, ErrorKind, ExecutionStatus, StopReason, StopSignal};
use crate::ids::RunId;
use crate::record::{RunError, RunEventPayload, RunPhase, RunRecord, RunStatus, RunSummary, StepRecord};
use crate::session::PartTooLarge;
use crate::store::{CommitError, StoreError};
use crate::usage::Usage;

/// The final record of a run.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) record: RunRecord,
    pub(super) steps: Vec<StepRecord>,
    /// Whether the commit has stored the record.
    pub(super) is_committed: bool,
}

/// What workers have told of the steps that they made before, and nobody goes on with.
#[derive(Debug, Default)]
pub(super) struct Spent {
    usage: Usage,
    steps: u64,
}

impl Spent {
    /// Counts the step that an event tells of.
    pub(super) fn count(&mut self, event: &RunEventPayload) {
        if let RunEventPayload::Agent(AgentEvent::StepCompleted { usage, .. }) = event {
            self.usage = self.usage + **usage;
            self.steps += 1;
        }
    }
}

impl Outcome {
    /// Records an execution that has ended by itself.
    pub(super) fn of_execution(live: &LiveEvents, state: &AgentState) -> Self {
        let mut summary = live.summary();
        summary.status = run_status(state.status());
        summary.stop_reason = state.stop_reason();
        // An execution below that can't go on, or whose call is cut, has spent what stands in no state.
        summary.usage = (live.lost() + state.usage()).at_least(live.spent());
        summary.answered_by = state.answered_by().cloned();
        summary.step_count = state.step_count() as u64;
        let by_error =
            summary.status == RunStatus::Failed || summary.stop_reason == Some(StopReason::RetryLimitReached);
        summary.error = by_error.then(|| execution_error(state));
        summary.end(live.now());
        let output = state.current_response().to_vec();
        Self {
            record: RunRecord {
                summary,
                output,
                value: state.final_value().cloned(),
                stop_signal: state.stop_signal().cloned(),
            },
            steps: live.steps(),
            is_committed: false,
        }
    }

    /// Records a run that failed outside of its execution.
    pub(super) fn failed(live: &LiveEvents, failure: &Failure) -> Self {
        Self::without_output(live, live.summary()).failing(failure)
    }

    /// Records a run that was cancelled before its work began.
    pub(super) fn cancelled(live: &LiveEvents) -> Self {
        let mut summary = live.summary();
        summary.status = RunStatus::Cancelled;
        summary.stop_reason = Some(StopReason::UserRequested);
        Self::without_output(live, summary)
    }

    /// Counts the steps that were made before. What they have spent is counted already as far as it was persisted.
    pub(super) fn after(mut self, spent: &Spent) -> Self {
        let summary = &mut self.record.summary;
        summary.usage = summary.usage.at_least(spent.usage);
        summary.step_count += spent.steps;
        self
    }

    fn without_output(live: &LiveEvents, mut summary: RunSummary) -> Self {
        summary.end(live.now());
        let record = RunRecord {
            summary,
            output: Vec::new(),
            value: None,
            stop_signal: None,
        };
        Self {
            record,
            steps: live.steps(),
            is_committed: false,
        }
    }

    /// Notes that the commit has stored the record.
    pub(super) fn committed(self) -> Self {
        Self {
            is_committed: true,
            ..self
        }
    }

    /// Notes whether the commit has moved the run's thread.
    pub(super) fn with_thread_moved(mut self, thread_moved: Option<bool>) -> Self {
        self.record.summary.thread_moved = thread_moved;
        self
    }

    /// Replaces the record by the one that is stored.
    pub(super) fn with_record(self, record: RunRecord) -> Self {
        Self { record, ..self }
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
        self.record.stop_signal = None;
        self
    }
}

/// An execution that has not ended is a failure of ours.
fn run_status(status: Option<ExecutionStatus>) -> RunStatus {
    match status {
        Some(ExecutionStatus::Completed) => RunStatus::Completed,
        Some(ExecutionStatus::Stopped) => RunStatus::Stopped,
        Some(ExecutionStatus::Failed | ExecutionStatus::InProgress | ExecutionStatus::Unknown) | None => {
            RunStatus::Failed
        }
    }
}

/// The error that ended a failed execution: the newest one that its deciding signal speaks of. A signal that speaks of none, such as a
/// webhook's, speaks for itself; errors that the execution went on after are not why it failed.
pub(super) fn execution_error(state: &AgentState) -> RunError {
    let signal = state.stop_signal();
    let is_told = |error: &&AgentError| {
        let is_of_hook = |signal: &StopSignal| error.kind == ErrorKind::Hook && error.source_name == signal.source;
        signal.is_some_and(|signal| error.message == signal.message || is_of_hook(signal))
    };
    let errors = state.errors();
    let error = errors.iter().filter(is_told).last();
    let code = error.map_or("execution_failed", |error| error.code.as_str());
    let message = error
        .map(|error| &error.message)
        .or(signal.map(|signal| &signal.message));
    RunError {
        code: code.to_owned(),
        message: message.map_or_else(|| "the execution failed".to_owned(), Clone::clone),
        phase: RunPhase::Execute,
        conflicting_run_id: None,
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

    /// A hook of the agent can't be made any more.
    pub(super) fn hooks(error: &HookConfigError) -> Self {
        Self::logged(RunPhase::Load, "hooks_not_made", error.to_string(), error)
    }

    /// The agent's tools can't be made.
    pub(super) fn tools(error: &ToolSetError) -> Self {
        Self::logged(RunPhase::Load, "tools_not_made", error.to_string(), error)
    }

    /// What a run of the queue was accepted with can't be found again.
    pub(super) fn refused(refusal: &Refusal) -> Self {
        // It was there when the run was accepted.
        if let Refusal::UnknownSession { .. } | Refusal::SessionNotCommitted { .. } = refusal {
            return Self::base_removed(
                RunPhase::Load,
                "the session that the run continues was removed before it began",
            );
        }
        if let Refusal::SessionTooLarge(error) = refusal {
            return Self::too_large(RunPhase::Load, error);
        }
        Self::logged(RunPhase::Load, "request_unusable", refusal.to_string(), refusal)
    }

    /// What was asked of a run of the queue can't be read.
    pub(super) fn unusable(error: &(dyn Error + 'static)) -> Self {
        let message = "what was asked of the run can't be read";
        Self::logged(RunPhase::Load, "request_unusable", message, error)
    }

    /// What is kept of the run can't be read.
    pub(super) fn progress(error: &(dyn Error + 'static)) -> Self {
        let message = "what is kept of the run's progress can't be read";
        Self::logged(RunPhase::Load, "progress_unreadable", message, error)
    }

    /// Workers have begun the run again and again, and none has ended it.
    pub(super) fn exhausted(attempts: u32) -> Self {
        let message = format!("{attempts} workers have begun the run, and none has ended it");
        tracing::error!(attempts, "a run fails that its workers don't survive");
        Self {
            error: RunError {
                code: "attempts_exhausted".to_owned(),
                message,
                phase: RunPhase::Execute,
                conflicting_run_id: None,
            },
        }
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
            CommitError::ThreadMoved => return Self::thread_moved(),
            CommitError::TooLarge(error) => return Self::too_large(RunPhase::Commit, error),
            CommitError::MissingBase => {
                let message = "a session that the run continues was removed while it worked";
                return Self::base_removed(RunPhase::Commit, message);
            }
            CommitError::Exists | CommitError::LeaseLost | CommitError::Store(_) => {
                ("store_failed", "the session can't be published")
            }
        };
        Self::logged(RunPhase::Commit, code, message, error)
    }

    /// The session would be larger than allowed.
    fn too_large(phase: RunPhase, error: &PartTooLarge) -> Self {
        Self::logged(phase, "session_too_large", error.to_string(), error)
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

    fn thread_moved() -> Self {
        let error = RunError {
            code: "thread_moved".to_owned(),
            message: "the thread was moved elsewhere while the run worked".to_owned(),
            phase: RunPhase::Commit,
            conflicting_run_id: None,
        };
        Self { error }
    }

    fn base_removed(phase: RunPhase, message: &str) -> Self {
        let error = RunError {
            code: "base_session_removed".to_owned(),
            message: message.to_owned(),
            phase,
            conflicting_run_id: None,
        };
        Self { error }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_as_its_execution_does() {
        for (execution, run, has_session) in [
            (Some(ExecutionStatus::Completed), RunStatus::Completed, true),
            (Some(ExecutionStatus::Stopped), RunStatus::Stopped, true),
            (Some(ExecutionStatus::Failed), RunStatus::Failed, false),
            (Some(ExecutionStatus::InProgress), RunStatus::Failed, false),
            (Some(ExecutionStatus::Unknown), RunStatus::Failed, false),
            (None, RunStatus::Failed, false),
        ] {
            let status = run_status(execution);
            assert_eq!(
                (status, status.has_session(), status.is_terminal()),
                (run, has_session, true),
                "{execution:?}"
            );
        }
    }
}
