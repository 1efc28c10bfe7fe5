//! The state of one execution, from its start to its end. It is never part of a bundle.

use std::sync::Arc;

use chrono::TimeDelta;
use rpds::VectorSync;
use serde::{Deserialize, Serialize};

use super::continuation::ExecutionContinuation;
use super::error::ErrorList;
use super::step::{AgentStep, StepExecution};
use super::stop::{StopReason, StopSignal};
use values::clock::Timestamp;
use values::ids::ExecutionId;
use values::json::Unread;
use values::message::Message;
use values::usage::Usage;

// Document 001, "`ExecutionStatus` Lifecycle". Its `Pending` is a state without an execution.
/// The status of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExecutionStatus {
    /// Running.
    InProgress,
    /// Ended with its work done.
    Completed,
    /// Ended before its work was done: a budget, a guard, a request.
    Stopped,
    /// Ended by an error.
    Failed,
    /// Ended with calls that wait for answers of the caller.
    Waiting,
    /// A status that this version does not know.
    #[serde(other)]
    Unknown,
}

impl ExecutionStatus {
    /// Returns whether the status is final.
    pub fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Stopped | Self::Failed | Self::Waiting)
    }

    /// Returns whether an execution with this status publishes a session.
    pub fn has_session(self) -> bool {
        matches!(self, Self::Completed | Self::Stopped | Self::Waiting)
    }
}

/// One execution: identity, completed steps, the step in progress, and whether another step
/// follows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExecutionState {
    /// Names the execution.
    pub execution_id: ExecutionId,
    /// The status.
    pub status: ExecutionStatus,
    /// When it began.
    #[serde(serialize_with = "values::clock::write_time")]
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "values::clock::write_some_time")]
    pub completed_at: Option<Timestamp>,
    /// Completed steps, oldest first.
    #[serde(default)]
    pub step_executions: VectorSync<Arc<StepExecution>>,
    /// The stop signals and requests of hooks and guards about the next step.
    #[serde(default)]
    pub continuation: ExecutionContinuation,
    /// Errors outside of any step.
    #[serde(default, skip_serializing_if = "ErrorList::is_empty")]
    pub errors: ErrorList,
    /// The usage of hooks' model calls, which steps do not include.
    #[serde(default, skip_serializing_if = "Usage::is_nothing")]
    pub hook_usage: Usage,
    /// Input that joins the conversation after the step in progress, which answers open calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_input: Vec<Message>,
    /// When the step in progress began; transient.
    #[serde(skip)]
    pub current_step_started_at: Option<Timestamp>,
    /// The step in progress, or after its end the last one; transient.
    #[serde(skip)]
    pub current_step: Option<Arc<AgentStep>>,
    /// Unknown fields that a later version stored, except those of the steps; see [`Unread`].
    #[serde(skip)]
    pub unread: Unread,
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
            hook_usage: Usage::default(),
            held_input: Vec::new(),
            current_step_started_at: None,
            current_step: None,
            unread: Unread::default(),
        }
    }

    /// Returns the number of completed steps.
    pub fn step_count(&self) -> usize {
        self.step_executions.len()
    }

    /// Returns the number of the step in progress or of the next one, from 1.
    pub fn step_number(&self) -> usize {
        self.step_count() + 1
    }

    /// Returns the newest completed step.
    pub fn last_step(&self) -> Option<&AgentStep> {
        self.step_executions.last().map(|execution| &execution.step)
    }

    /// Returns the usage of all steps, the one in progress included, and of the hooks.
    pub fn usage(&self) -> Usage {
        let completed = self.step_executions.iter().map(|execution| execution.step.usage());
        let step_usage: Usage = completed.chain(self.pending_step().map(AgentStep::usage)).sum();
        step_usage + self.hook_usage
    }

    /// Returns all errors, oldest first.
    pub fn all_errors(&self) -> ErrorList {
        let steps = self
            .step_executions
            .iter()
            .map(|execution| &execution.step)
            .chain(self.pending_step());
        steps
            .flat_map(AgentStep::iter_errors)
            .chain(self.errors.iter())
            .cloned()
            .collect()
    }

    /// Returns why the execution stopped or, with no signal, that it completed; `None` while it
    /// runs.
    pub fn stop_reason(&self) -> Option<StopReason> {
        let signalled = self.continuation.deciding_signal().map(|signal| signal.reason);
        if self.status.is_terminal() {
            Some(signalled.unwrap_or(StopReason::Completed))
        } else {
            signalled
        }
    }

    /// Returns whether the execution ends before its work is done.
    pub fn was_force_stopped(&self) -> bool {
        self.stop_reason().is_some_and(StopReason::was_force_stopped)
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
        let continuation = &self.continuation;
        !continuation.is_continuation_requested && !continuation.is_retry_wanted && !self.goes_on()
    }

    /// Archives the step in progress with its timing. Without such a step, nothing changes.
    pub(super) fn record_step(&mut self, now: Timestamp) {
        if let (Some(started_at), Some(step)) = (self.current_step_started_at.take(), &self.current_step) {
            self.step_executions.push_back_mut(Arc::new(StepExecution {
                step: (**step).clone(),
                continuation: self.continuation.clone(),
                started_at,
                completed_at: now,
                unread: Unread::default(),
            }));
        }
    }

    /// Ends the execution. The deciding signal determines the status. An unhandled error in the
    /// last step counts as a signal.
    pub(super) fn end(&mut self, now: Timestamp) {
        if let Some(signal) = self.unhandled_error() {
            self.continuation.stop_signals.push(signal);
        }
        self.status = match self.continuation.deciding_signal().map(|signal| signal.reason) {
            Some(StopReason::ErrorForbade) => ExecutionStatus::Failed,
            Some(StopReason::AnswerRequired) => ExecutionStatus::Waiting,
            Some(reason) if reason.was_force_stopped() => ExecutionStatus::Stopped,
            _ => ExecutionStatus::Completed,
        };
        self.completed_at = Some(now);
        self.current_step_started_at = None;
    }

    fn goes_on(&self) -> bool {
        let newest = self.current_step.as_deref().or_else(|| self.last_step());
        newest.is_some_and(|step| step.has_tool_calls() || step.is_paused())
    }

    fn unhandled_error(&self) -> Option<StopSignal> {
        let error = self.last_step()?.errors.last()?;
        let source = error.source_name.clone().unwrap_or_else(|| "execution".to_owned());
        let signal = StopSignal::new(StopReason::ErrorForbade, source, error.message.clone());
        self.continuation.stop_signals.is_empty().then_some(signal)
    }

    /// Returns the step in progress, unless it is archived already.
    fn pending_step(&self) -> Option<&AgentStep> {
        self.current_step_started_at.and(self.current_step.as_deref())
    }
}
