//! The outcomes of runs.

use tokio_util::sync::CancellationToken;

use super::failure::{Failure, execution_error};
use super::live::LiveEvents;
use agent::AgentEvent;
use agent::record::{RunEventPayload, RunRecord, RunStatus, RunSummary, StepRecord};
use agent::state::{AgentState, ExecutionStatus, StopReason};
use values::session::{OpenCall, OpenCallKind};
use values::usage::Usage;

/// The end of the work of this process on a run.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "made once a run and never kept")]
pub(in crate::run) enum Executed {
    /// The run has ended.
    Ended(Outcome),
    /// Another worker continues or restarts the run.
    Left,
}

/// The final record of a run.
#[derive(Debug)]
pub(in crate::run) struct Outcome {
    pub(in crate::run) record: RunRecord,
    pub(in crate::run) steps: Vec<StepRecord>,
    /// Whether the commit already stored the record.
    pub(in crate::run) is_committed: bool,
}

/// The usage of earlier workers on steps from which no attempt continues.
#[derive(Debug, Default)]
pub(in crate::run) struct Spent {
    usage: Usage,
    steps: u64,
}

impl Spent {
    /// Counts the step that an event reports.
    pub(in crate::run) fn count(&mut self, event: &RunEventPayload) {
        if let RunEventPayload::Agent(AgentEvent::StepCompleted { usage, .. }) = event {
            self.usage = self.usage + **usage;
            self.steps += 1;
        }
    }
}

impl Outcome {
    /// Returns the outcome of an execution that has ended.
    pub(in crate::run) fn of_execution(live: &LiveEvents, state: &AgentState) -> Self {
        let mut summary = live.summary();
        summary.status = run_status(state.status());
        summary.stop_reason = state.stop_reason();
        // If a subagent can't continue, or its call is aborted, its usage is in no state.
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
                output,
                value: state.final_value().cloned(),
                finish_reason: state.finish_reason().cloned(),
                stop_signal: state.stop_signal().cloned(),
                open_calls: open_calls(state),
                ..live.record_without_output(summary)
            },
            steps: live.steps(),
            is_committed: false,
        }
    }

    /// Returns the outcome of a run that failed outside of its execution.
    pub(in crate::run) fn failed(live: &LiveEvents, failure: Failure) -> Self {
        Self::without_output(live, live.summary()).failing(failure)
    }

    /// Returns the outcome of a run that was cancelled before its work began.
    pub(in crate::run) fn cancelled(live: &LiveEvents) -> Self {
        let mut summary = live.summary();
        summary.status = RunStatus::Cancelled;
        summary.stop_reason = Some(StopReason::UserRequested);
        Self::without_output(live, summary)
    }

    /// Adds the steps of earlier attempts. Their usage is already counted if it was persisted.
    pub(in crate::run) fn after(mut self, spent: &Spent) -> Self {
        let summary = &mut self.record.summary;
        summary.usage = summary.usage.at_least(spent.usage);
        summary.step_count += spent.steps;
        self
    }

    fn without_output(live: &LiveEvents, mut summary: RunSummary) -> Self {
        summary.end(live.now());
        Self {
            record: live.record_without_output(summary),
            steps: live.steps(),
            is_committed: false,
        }
    }

    /// Returns whether to publish a session.
    pub(in crate::run) fn publishes(&self, cancellation: &CancellationToken) -> bool {
        self.record.summary.has_session() && !cancellation.is_cancelled()
    }

    /// Converts the outcome to an outcome without a session, since the run was cancelled or failed,
    /// or publishes nothing. A run that publishes nothing fails if a call needs a decision or
    /// input, which nobody could send.
    pub(in crate::run) fn unpublished(mut self, cancellation: &CancellationToken) -> Self {
        let summary = &mut self.record.summary;
        if cancellation.is_cancelled() && summary.status != RunStatus::Failed {
            summary.status = RunStatus::Cancelled;
            summary.stop_reason = Some(StopReason::UserRequested);
        }
        if !summary.status.has_session() {
            self.record.open_calls = Vec::new();
        }
        let mut open_calls = self.record.open_calls.iter();
        let undecided = open_calls.find(|call| call.kind != OpenCallKind::Client);
        match undecided.map(Failure::undecided) {
            Some(failure) => self.failing(failure),
            None => self,
        }
    }

    /// Converts the outcome to a failure after the execution.
    pub(in crate::run) fn failing(mut self, failure: Failure) -> Self {
        let summary = &mut self.record.summary;
        summary.status = RunStatus::Failed;
        summary.stop_reason = Some(StopReason::ErrorForbade);
        summary.error = Some(failure.into_error());
        self.record.stop_signal = None;
        self.record.open_calls = Vec::new();
        self
    }
}

fn open_calls(state: &AgentState) -> Vec<OpenCall> {
    let waiting = state.context().waiting.as_ref();
    waiting.map(|waiting| waiting.open_calls.clone()).unwrap_or_default()
}

/// Returns the status of a run. An execution that has not ended is an internal error.
fn run_status(status: Option<ExecutionStatus>) -> RunStatus {
    match status {
        Some(ExecutionStatus::Completed) => RunStatus::Completed,
        Some(ExecutionStatus::Stopped) => RunStatus::Stopped,
        Some(ExecutionStatus::Waiting) => RunStatus::Waiting,
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
            (Some(ExecutionStatus::Waiting), RunStatus::Waiting, true),
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
