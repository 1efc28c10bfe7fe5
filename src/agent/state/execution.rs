//! The state of one execution. It exists from the execution's start to its end and is never part of a bundle.

use std::sync::Arc;

use chrono::TimeDelta;
use rpds::VectorSync;
use serde::{Deserialize, Serialize};

use super::continuation::ExecutionContinuation;
use super::error::ErrorList;
use super::step::{AgentStep, StepExecution};
use super::stop::{StopReason, StopSignal};
use crate::clock::Timestamp;
use crate::ids::ExecutionId;
use crate::usage::Usage;

/// Where an execution stands (document 001, "`ExecutionStatus` Lifecycle").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionStatus {
    /// Not begun.
    Pending,
    /// Running.
    InProgress,
    /// Ended with its work done.
    Completed,
    /// Ended before its work was done: a budget, a guard, a request.
    Stopped,
    /// Ended by an error.
    Failed,
}

impl ExecutionStatus {
    /// Tells whether nothing can follow.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Stopped | Self::Failed)
    }
}

/// One execution: identity, completed steps, the step in progress, and what is to follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutionState {
    /// Names the execution.
    pub execution_id: ExecutionId,
    /// Where it stands.
    pub status: ExecutionStatus,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Completed steps, oldest first.
    #[serde(default)]
    pub step_executions: VectorSync<Arc<StepExecution>>,
    /// What hooks and guards want of the next step.
    #[serde(default)]
    pub continuation: ExecutionContinuation,
    /// Errors outside of any step.
    #[serde(default, skip_serializing_if = "ErrorList::is_empty")]
    pub errors: ErrorList,
    /// When the step in progress began; transient.
    #[serde(skip)]
    pub current_step_started_at: Option<Timestamp>,
    /// The step in progress, or after its end the last one; transient.
    #[serde(skip)]
    pub current_step: Option<Arc<AgentStep>>,
}

impl ExecutionState {
    /// Makes an execution that begins now.
    pub fn start(execution_id: ExecutionId, now: Timestamp) -> Self {
        Self {
            execution_id,
            status: ExecutionStatus::InProgress,
            started_at: now,
            completed_at: None,
            step_executions: VectorSync::new_sync(),
            continuation: ExecutionContinuation::default(),
            errors: ErrorList::default(),
            current_step_started_at: None,
            current_step: None,
        }
    }

    /// Returns the number of completed steps.
    pub fn step_count(&self) -> usize {
        self.step_executions.len()
    }

    /// Returns the number of the step that is or would be in progress, from 1.
    pub fn step_number(&self) -> usize {
        self.step_count() + 1
    }

    /// Returns the newest completed step.
    pub fn last_step(&self) -> Option<&AgentStep> {
        self.step_executions.last().map(|execution| &execution.step)
    }

    /// Returns the usage of all steps, the one in progress included.
    pub fn usage(&self) -> Usage {
        let completed = self.step_executions.iter().map(|execution| execution.step.usage());
        completed.chain(self.pending_step().map(AgentStep::usage)).sum()
    }

    /// Returns all errors, oldest first.
    pub fn all_errors(&self) -> ErrorList {
        let steps = self
            .step_executions
            .iter()
            .map(|execution| &execution.step)
            .chain(self.pending_step());
        let of_steps = steps.flat_map(|step| step.all_errors().iter().cloned().collect::<Vec<_>>());
        of_steps.chain(self.errors.iter().cloned()).collect()
    }

    /// Returns why the execution stopped or, with no signal, that it completed; `None` while it runs.
    pub fn stop_reason(&self) -> Option<StopReason> {
        let signalled = self.continuation.stop_signals.deciding().map(|signal| signal.reason);
        if self.status.is_terminal() {
            Some(signalled.unwrap_or(StopReason::Completed))
        } else {
            signalled
        }
    }

    /// Returns the time from the start to the end or to now.
    pub fn duration(&self, now: Timestamp) -> TimeDelta {
        self.completed_at.unwrap_or(now) - self.started_at
    }

    /// Decides whether the loop ends after a step (document 001, `shouldStop`).
    pub fn should_stop(&self) -> bool {
        if self.continuation.should_stop() {
            return true;
        }
        let goes_on = self.continuation.is_continuation_requested || self.has_tool_calls();
        !goes_on
    }

    /// Begins a step: what hooks wanted of the last one no longer counts.
    #[must_use]
    pub fn with_step_started(self, now: Timestamp) -> Self {
        Self {
            current_step_started_at: Some(now),
            current_step: None,
            continuation: ExecutionContinuation::default(),
            ..self
        }
    }

    /// Holds the step that the driver made.
    #[must_use]
    pub fn with_current_step(self, step: Arc<AgentStep>) -> Self {
        Self {
            current_step: Some(step),
            ..self
        }
    }

    /// Archives the step in progress with its timing; without one, nothing changes.
    #[must_use]
    pub fn with_step_recorded(mut self, now: Timestamp) -> Self {
        if let (Some(started_at), Some(step)) = (self.current_step_started_at.take(), &self.current_step) {
            self.step_executions.push_back_mut(Arc::new(StepExecution {
                step: (**step).clone(),
                continuation: self.continuation.clone(),
                started_at,
                completed_at: now,
            }));
        }
        self
    }

    /// Adds a wish to stop.
    #[must_use]
    pub fn with_stop_signal(self, signal: StopSignal) -> Self {
        Self {
            continuation: self.continuation.with_stop_signal(signal),
            ..self
        }
    }

    /// Asks for one more step.
    #[must_use]
    pub fn with_continuation_requested(self) -> Self {
        Self {
            continuation: self.continuation.with_continuation_requested(),
            ..self
        }
    }

    /// Ends the execution; the deciding signal gives its status.
    #[must_use]
    pub fn with_ended(self, now: Timestamp) -> Self {
        let status = match self.continuation.stop_signals.deciding().map(|signal| signal.reason) {
            Some(StopReason::ErrorForbade) => ExecutionStatus::Failed,
            Some(reason) if reason.was_force_stopped() => ExecutionStatus::Stopped,
            _ => ExecutionStatus::Completed,
        };
        Self {
            status,
            completed_at: Some(now),
            current_step_started_at: None,
            ..self
        }
    }

    fn has_tool_calls(&self) -> bool {
        let newest = self.current_step.as_deref().or_else(|| self.last_step());
        newest.is_some_and(AgentStep::has_tool_calls)
    }

    /// The step in progress, unless it is archived already.
    fn pending_step(&self) -> Option<&AgentStep> {
        self.current_step_started_at.and(self.current_step.as_deref())
    }
}
