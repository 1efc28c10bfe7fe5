//! How a run ended.

use tokio_util::sync::CancellationToken;

use super::failure::{Failure, execution_error};
use super::live::LiveEvents;
use crate::agent::AgentEvent;
use crate::agent::state::{AgentState, ExecutionStatus, StopReason};
use crate::record::{RunEventPayload, RunRecord, RunStatus, RunSummary, StepRecord};
use crate::usage::Usage;

/// How this process is done with a run.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "made once a run and never kept")]
pub(super) enum Performed {
    /// The run has ended.
    Ended(Outcome),
    /// Another worker goes on with it, or begins it anew.
    Left,
}

/// The final record of a run.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) record: RunRecord,
    pub(super) steps: Vec<StepRecord>,
    /// Whether the commit has stored the record.
    pub(super) is_committed: bool,
}

/// What earlier workers have spent on steps that no attempt goes on with.
#[derive(Debug, Default)]
pub(super) struct Spent {
    usage: Usage,
    steps: u64,
}

impl Spent {
    /// Counts the step that an event reports.
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
        // An execution below that can't go on, or whose call is cut, has spent what stands in no
        // state.
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
    pub(super) fn failed(live: &LiveEvents, failure: Failure) -> Self {
        Self::without_output(live, live.summary()).failing(failure)
    }

    /// Records a run that was cancelled before its work began.
    pub(super) fn cancelled(live: &LiveEvents) -> Self {
        let mut summary = live.summary();
        summary.status = RunStatus::Cancelled;
        summary.stop_reason = Some(StopReason::UserRequested);
        Self::without_output(live, summary)
    }

    /// Counts the steps that were made before. What they have spent is counted already as far as it
    /// was persisted.
    pub(super) fn after(mut self, spent: &Spent) -> Self {
        let summary = &mut self.record.summary;
        summary.usage = summary.usage.at_least(spent.usage);
        summary.step_count += spent.steps;
        self
    }

    fn without_output(live: &LiveEvents, mut summary: RunSummary) -> Self {
        summary.end(live.now());
        Self {
            record: RunRecord::without_output(summary),
            steps: live.steps(),
            is_committed: false,
        }
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
    pub(super) fn failing(mut self, failure: Failure) -> Self {
        let summary = &mut self.record.summary;
        summary.status = RunStatus::Failed;
        summary.stop_reason = Some(StopReason::ErrorForbade);
        summary.error = Some(failure.into_error());
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
