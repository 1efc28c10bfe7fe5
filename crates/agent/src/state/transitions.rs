//! The transitions of an execution, from its start over its steps to its end.
//!
//! Each transition consumes a state and returns the next. Except for the start, none has an effect
//! without an execution.

use std::sync::Arc;

use super::agent_state::AgentState;
use super::continuation::ExecutionContinuation;
use super::error::AgentError;
use super::execution::ExecutionState;
use super::step::{AgentStep, AgentStepType};
use super::stop::StopSignal;
use values::clock::Timestamp;
use values::ids::ExecutionId;
use values::message::{Message, MessageTags};
use values::session::WaitingStep;
use values::usage::Usage;

impl AgentState {
    /// Begins an execution, and drops an earlier one.
    #[must_use]
    pub fn start_execution(mut self, execution_id: ExecutionId, now: Timestamp) -> Self {
        self.execution_count = self.execution_count.saturating_add(1);
        self.execution = Some(Box::new(ExecutionState::start(execution_id, now)));
        self.updated(now)
    }

    /// Ends the execution; its status follows from the deciding stop signal. An unhandled error in
    /// the last step fails it.
    #[must_use]
    pub fn with_execution_ended(self, now: Timestamp) -> Self {
        self.with_execution(now, |execution| execution.end(now))
    }

    /// Begins a step. Signals from after the last step no longer count. A request to continue holds
    /// until this step is made, so that no guard before the step overrides it.
    #[must_use]
    pub fn with_step_started(self, now: Timestamp) -> Self {
        self.with_execution(now, |execution| {
            execution.current_step_started_at = Some(now);
            execution.current_step = None;
            execution.continuation.stop_signals.clear();
            execution.continuation.is_retry_wanted = false;
        })
    }

    /// Resumes a step that began at `started_at`. Requests for the next step stay.
    #[must_use]
    pub fn with_step_resumed(self, started_at: Timestamp, now: Timestamp) -> Self {
        self.with_execution(now, |execution| {
            execution.current_step_started_at = Some(started_at);
            execution.current_step = None;
        })
    }

    /// Marks the step as granted, right before the driver makes it. Clears earlier requests.
    #[must_use]
    pub fn with_step_granted(self, now: Timestamp) -> Self {
        self.with_execution(now, |execution| {
            execution.continuation = ExecutionContinuation::default();
        })
    }

    /// Sets the step that the driver made, tags its messages and adds them to the store. Called
    /// once for each step.
    #[must_use]
    pub fn with_current_step(self, mut step: AgentStep, now: Timestamp) -> Self {
        let Some(execution) = &self.execution else { return self };
        let tags = MessageTags {
            step_id: Some(step.id),
            execution_id: Some(execution.execution_id),
            agent_id: Some(self.agent_id()),
            is_trace: step.step_type() != AgentStepType::FinalResponse,
            ..MessageTags::default()
        };
        for message in &mut step.output_messages {
            let made = message.tags.clone();
            Arc::make_mut(message).tags = MessageTags {
                section: made.section,
                is_partial: made.is_partial,
                context_tokens: made.context_tokens,
                covers: made.covers,
                ..tags.clone()
            };
        }
        let step = Arc::new(step);
        self.with_messages(step.output_messages.iter().cloned())
            .with_execution(now, |execution| execution.current_step = Some(step))
    }

    /// Leaves a step with open calls, and ends the execution. The messages of the step join the
    /// history once all of its calls have results.
    #[must_use]
    pub fn with_step_left_open(
        mut self,
        step: AgentStep,
        waiting: WaitingStep,
        signal: StopSignal,
        now: Timestamp,
    ) -> Self {
        if self.execution.is_none() {
            return self;
        }
        self.context.waiting = Some(Arc::new(waiting));
        self.with_execution(now, |execution| {
            execution.current_step = Some(Arc::new(step));
            execution.continuation.stop_signals.push(signal);
        })
    }

    /// Holds input back until the step that answers open calls has ended.
    #[must_use]
    pub fn with_held_input(self, input: Vec<Message>, now: Timestamp) -> Self {
        self.with_execution(now, |execution| execution.held_input = input)
    }

    /// Adds the input that was held back.
    #[must_use]
    pub fn with_held_input_added(mut self, now: Timestamp) -> Self {
        let held = self
            .execution
            .as_mut()
            .map(|execution| std::mem::take(&mut execution.held_input));
        match held {
            Some(held) if !held.is_empty() => self.with_input(held, now),
            _ => self,
        }
    }

    /// Archives the step in progress with its timing. A completion is a trace if the loop continues
    /// after it.
    #[must_use]
    pub fn with_step_recorded(mut self, now: Timestamp) -> Self {
        let goes_on = !self.should_stop();
        if let Some(step) = self.current_step().filter(|_| goes_on)
            && step.step_type() == AgentStepType::FinalResponse
        {
            let step_id = step.id;
            self.context.store = self.context.store.with_step_as_trace(step_id);
        }
        self.with_execution(now, |execution| execution.record_step(now))
    }

    /// Adds a stop signal.
    #[must_use]
    pub fn with_stop_signal(self, signal: StopSignal, now: Timestamp) -> Self {
        self.with_execution(now, |execution| execution.continuation.stop_signals.push(signal))
    }

    /// Asks for one more step in spite of stop signals.
    #[must_use]
    pub fn with_continuation_requested(self, now: Timestamp) -> Self {
        self.with_execution(now, |execution| execution.continuation.is_continuation_requested = true)
    }

    /// Requests a retry of the failed step, unless there is a stop signal.
    #[must_use]
    pub fn with_retry_wanted(self, now: Timestamp) -> Self {
        self.with_execution(now, |execution| execution.continuation.is_retry_wanted = true)
    }

    /// Counts the usage of a hook's model call.
    #[must_use]
    pub fn with_hook_usage(self, usage: Usage, now: Timestamp) -> Self {
        self.with_execution(now, |execution| execution.hook_usage = execution.hook_usage + usage)
    }

    /// Adds an error that belongs to no step.
    #[must_use]
    pub fn with_error(self, error: AgentError, now: Timestamp) -> Self {
        self.with_execution(now, |execution| execution.errors.push(error))
    }

    /// Adds messages at the end of the history.
    pub(super) fn with_messages(mut self, messages: impl IntoIterator<Item = Arc<Message>>) -> Self {
        self.context.store = self.context.store.with_messages(messages);
        self
    }

    /// Sets the time of the last change.
    pub(crate) fn updated(mut self, now: Timestamp) -> Self {
        self.updated_at = now;
        self
    }

    fn with_execution(mut self, now: Timestamp, change: impl FnOnce(&mut ExecutionState)) -> Self {
        let Some(execution) = &mut self.execution else {
            return self;
        };
        change(execution);
        self.updated(now)
    }
}
