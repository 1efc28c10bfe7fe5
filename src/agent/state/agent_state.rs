//! The state of an agent: identity, context and messages, and the execution while there is one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::context::{AgentContext, MessageStore};
use super::error::ErrorList;
use super::execution::{ExecutionState, ExecutionStatus};
use super::step::{AgentStep, AgentStepType};
use super::stop::{StopReason, StopSignal};
use crate::clock::Timestamp;
use crate::ids::{AgentId, ExecutionId};
use crate::json::{Object, Unread, Value};
use crate::message::{Message, MessageTags, Section, joined_text};
use crate::model_ref::{ModelRef, ResponseFormat};
use crate::session::Overrides;
use crate::usage::Usage;

/// Everything about an agent (document 001, "`AgentState` Structure"). Transitions consume it and
/// return the next state; a copy costs the same at any length of the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    agent_id: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent_agent_id: Option<AgentId>,
    created_at: Timestamp,
    updated_at: Timestamp,
    #[serde(default)]
    execution_count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<ModelRef>,
    #[serde(default)]
    pub(super) context: AgentContext,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) execution: Option<Box<ExecutionState>>,
    /// What a later version stored with it, its messages and its execution apart.
    #[serde(skip)]
    pub(super) unread: Unread,
}

/// The state in a few figures, for logs and assertions (document 001, "Debugging").
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StateSummary {
    /// Where the execution stands.
    pub status: Option<ExecutionStatus>,
    /// How many executions the agent has had.
    pub execution_count: u64,
    /// Whether there is an execution.
    pub has_execution: bool,
    /// Names the execution.
    pub execution_id: Option<ExecutionId>,
    /// The number of completed steps.
    pub steps: usize,
    /// Stop signals and requests, in words.
    pub continuation: String,
    /// Whether anything failed.
    pub has_errors: bool,
    /// What failed.
    pub errors: ErrorList,
    /// The usage of the execution.
    pub usage: Usage,
}

/// Making, restoring and asking.
impl AgentState {
    /// Makes the state of a new agent.
    pub fn new(agent_id: AgentId, now: Timestamp) -> Self {
        Self {
            agent_id,
            parent_agent_id: None,
            created_at: now,
            updated_at: now,
            execution_count: 0,
            model: None,
            context: AgentContext::default(),
            execution: None,
            unread: Unread::default(),
        }
    }

    /// Restores the state between executions of an agent that has run before.
    #[must_use]
    pub fn restored(
        self,
        created_at: Timestamp,
        updated_at: Timestamp,
        execution_count: u64,
        context: AgentContext,
    ) -> Self {
        Self {
            created_at,
            updated_at,
            execution_count,
            context,
            ..self
        }
    }

    /// Returns the agent instance's id.
    pub fn agent_id(&self) -> AgentId {
        self.agent_id
    }

    /// Returns the agent that started this one; none for a root agent.
    pub fn parent_agent_id(&self) -> Option<AgentId> {
        self.parent_agent_id
    }

    /// Returns when the state was first created.
    pub fn created_at(&self) -> Timestamp {
        self.created_at
    }

    /// Returns when the state changed last.
    pub fn updated_at(&self) -> Timestamp {
        self.updated_at
    }

    /// Returns how many executions have begun.
    pub fn execution_count(&self) -> u64 {
        self.execution_count
    }

    /// Returns the model that is used instead of the definition's.
    pub fn model(&self) -> Option<&ModelRef> {
        self.model.as_ref()
    }

    /// Returns the context.
    pub fn context(&self) -> &AgentContext {
        &self.context
    }

    /// Returns the raw message store.
    pub fn store(&self) -> &MessageStore {
        &self.context.store
    }

    /// Returns the key-value pairs of the context.
    pub fn metadata(&self) -> &Object {
        &self.context.metadata
    }

    /// Iterates over the stored messages of the conversation, oldest first: also those that no
    /// compiler sends any more.
    pub fn stored_messages(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.context.store.section(Section::MESSAGES)
    }

    /// Returns the execution; none between executions.
    pub fn execution(&self) -> Option<&ExecutionState> {
        self.execution.as_deref()
    }

    /// Returns whether an execution is running.
    pub fn has_active_execution(&self) -> bool {
        self.execution()
            .is_some_and(|execution| !execution.status.is_terminal())
    }

    /// Returns where the execution stands; none between executions.
    pub fn status(&self) -> Option<ExecutionStatus> {
        self.execution().map(|execution| execution.status)
    }

    /// Returns the number of completed steps of the execution.
    pub fn step_count(&self) -> usize {
        self.execution().map_or(0, ExecutionState::step_count)
    }

    /// Iterates over the completed steps of the execution.
    pub fn steps(&self) -> impl Iterator<Item = &AgentStep> {
        self.execution
            .iter()
            .flat_map(|execution| execution.step_executions.iter().map(|done| &done.step))
    }

    /// Returns the step in progress or, after its end, the last one.
    pub fn current_step(&self) -> Option<&AgentStep> {
        self.execution().and_then(|execution| execution.current_step.as_deref())
    }

    /// Returns the newest completed step.
    pub fn last_step(&self) -> Option<&AgentStep> {
        self.execution().and_then(ExecutionState::last_step)
    }

    /// Returns what the newest completed step was.
    pub fn last_step_type(&self) -> Option<AgentStepType> {
        self.last_step().map(AgentStep::step_type)
    }

    /// Returns the model that answered last in the execution.
    pub fn answered_by(&self) -> Option<&ModelRef> {
        let execution = self.execution()?;
        let steps = execution.step_executions.iter().rev();
        steps.into_iter().find_map(|done| done.step.answered_by.as_ref())
    }

    /// Returns why the execution stops or stopped.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.execution().and_then(ExecutionState::stop_reason)
    }

    /// Returns the signal that decides; none when nobody wants to stop.
    pub fn stop_signal(&self) -> Option<&StopSignal> {
        self.execution()
            .and_then(|execution| execution.continuation.stop_signals.deciding())
    }

    /// Returns the usage of the execution.
    pub fn usage(&self) -> Usage {
        self.execution().map_or(Usage::NOTHING, ExecutionState::usage)
    }

    /// Returns what hooks had models use in the execution.
    pub fn hook_usage(&self) -> Usage {
        let of_hooks = self.execution().map(|execution| execution.hook_usage);
        of_hooks.unwrap_or_default()
    }

    /// Returns whether anything failed; none between executions.
    pub fn has_errors(&self) -> Option<bool> {
        self.execution().map(|execution| !execution.all_errors().is_empty())
    }

    /// Returns all errors of the execution, oldest first.
    pub fn errors(&self) -> ErrorList {
        self.execution().map(ExecutionState::all_errors).unwrap_or_default()
    }

    /// Returns whether the newest completed step is a final response.
    pub fn has_final_response(&self) -> bool {
        self.last_step_type() == Some(AgentStepType::FinalResponse)
    }

    /// Returns the messages of the final response; empty when there is none.
    pub fn final_response(&self) -> &[Arc<Message>] {
        if self.has_final_response() {
            self.current_response()
        } else {
            &[]
        }
    }

    /// Returns the messages of the final response or else of the latest step.
    pub fn current_response(&self) -> &[Arc<Message>] {
        self.last_step()
            .or_else(|| self.current_step())
            .map_or(&[], |step| &step.output_messages)
    }

    /// Returns the words of the final response.
    pub fn final_text(&self) -> String {
        self.final_response()
            .iter()
            .map(|message| joined_text(&message.content))
            .collect()
    }

    /// Returns what the final response says, where a shape was demanded of it.
    pub fn final_value(&self) -> Option<&Value> {
        self.last_step()
            .filter(|_| self.has_final_response())
            .and_then(|step| step.value.as_ref())
    }

    /// Decides whether the loop ends after a step; true between executions.
    pub fn should_stop(&self) -> bool {
        self.execution().is_none_or(ExecutionState::should_stop)
    }

    /// Summarises the state.
    pub fn debug(&self) -> StateSummary {
        StateSummary {
            status: self.status(),
            execution_count: self.execution_count,
            has_execution: self.execution.is_some(),
            execution_id: self.execution().map(|execution| execution.execution_id),
            steps: self.step_count(),
            continuation: self
                .execution
                .as_ref()
                .map(|execution| execution.continuation.to_string())
                .unwrap_or_default(),
            has_errors: self.has_errors().unwrap_or_default(),
            errors: self.errors(),
            usage: self.usage(),
        }
    }
}

/// Settings. They do not change `updated_at`, since they are made before an execution begins or by
/// hooks, which have no clock: [`start_execution`](AgentState::start_execution) and
/// [`HookStack`](crate::agent::hooks::HookStack) set it afterwards.
impl AgentState {
    /// Sets the agent that started this one.
    #[must_use]
    pub fn with_parent_agent_id(self, parent: Option<AgentId>) -> Self {
        Self {
            parent_agent_id: parent,
            ..self
        }
    }

    /// Sets the model that is used instead of the definition's.
    #[must_use]
    pub fn with_model(self, model: Option<ModelRef>) -> Self {
        Self { model, ..self }
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn with_system_prompt(mut self, system_prompt: impl Into<String>) -> Self {
        self.context.system_prompt = system_prompt.into();
        self
    }

    /// Sets the shape of final completions.
    #[must_use]
    pub fn with_response_format(mut self, response_format: ResponseFormat) -> Self {
        self.context.response_format = response_format;
        self
    }

    /// Sets what stands instead of the definition.
    #[must_use]
    pub fn with_overrides(mut self, overrides: Option<Arc<Overrides>>) -> Self {
        self.context.overrides = overrides.filter(|overrides| !overrides.is_empty());
        self
    }

    /// Sets key-value pairs of the context; others stay.
    #[must_use]
    pub fn with_metadata(mut self, changes: Object) -> Self {
        self.context.metadata.extend(changes);
        self
    }
}

/// What changes are made of.
impl AgentState {
    /// Adds messages at the end of the history.
    pub(super) fn with_messages(mut self, messages: impl IntoIterator<Item = Arc<Message>>) -> Self {
        self.context.store = self.context.store.with_messages(messages);
        self
    }

    /// Notes the time of a change.
    pub(in crate::agent) fn updated(self, now: Timestamp) -> Self {
        Self {
            updated_at: now,
            ..self
        }
    }
}

/// Changes of what passes. Without an execution they change nothing.
impl AgentState {
    /// Begins an execution; an earlier one is forgotten.
    #[must_use]
    pub fn start_execution(self, execution_id: ExecutionId, now: Timestamp) -> Self {
        let execution = Some(Box::new(ExecutionState::start(execution_id, now)));
        Self {
            execution_count: self.execution_count.saturating_add(1),
            execution,
            ..self
        }
        .updated(now)
    }

    /// Ends the execution; its status follows from the deciding stop signal.
    #[must_use]
    pub fn with_execution_ended(self, now: Timestamp) -> Self {
        self.map_execution(now, |execution| execution.with_ended(now))
    }

    /// Removes the execution and leaves the data of the session, ready for the next execution.
    #[must_use]
    pub fn for_next_execution(self) -> Self {
        Self {
            execution: None,
            ..self
        }
    }

    /// Begins a step.
    #[must_use]
    pub fn with_step_started(self, now: Timestamp) -> Self {
        self.map_execution(now, |execution| execution.with_step_started(now))
    }

    /// Resumes a step that began then.
    #[must_use]
    pub fn with_step_resumed(self, started_at: Timestamp, now: Timestamp) -> Self {
        self.map_execution(now, |execution| execution.with_step_resumed(started_at))
    }

    /// Holds the step that the driver made, tags its messages and adds them to the store; once for
    /// each step.
    #[must_use]
    pub fn with_current_step(self, mut step: AgentStep, now: Timestamp) -> Self {
        let Some(execution) = &self.execution else { return self };
        let tags = MessageTags {
            step_id: Some(step.id),
            execution_id: Some(execution.execution_id),
            agent_id: Some(self.agent_id),
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
            .map_execution(now, |execution| execution.with_current_step(step))
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
        self.map_execution(now, |execution| execution.with_step_recorded(now))
    }

    /// Adds a wish to stop.
    #[must_use]
    pub fn with_stop_signal(self, signal: StopSignal, now: Timestamp) -> Self {
        self.map_execution(now, |execution| execution.with_stop_signal(signal))
    }

    /// Asks for one more step in spite of stop signals.
    #[must_use]
    pub fn with_continuation_requested(self, now: Timestamp) -> Self {
        self.map_execution(now, ExecutionState::with_continuation_requested)
    }

    /// Has the failed step tried again, unless somebody wants to stop.
    #[must_use]
    pub fn with_retry_wanted(self, now: Timestamp) -> Self {
        self.map_execution(now, ExecutionState::with_retry_wanted)
    }

    /// Lets the driver make the step. Requests from before it are settled.
    #[must_use]
    pub fn with_step_granted(self, now: Timestamp) -> Self {
        self.map_execution(now, ExecutionState::with_step_granted)
    }

    /// Counts what a hook has had a model use.
    #[must_use]
    pub fn with_hook_usage(self, usage: Usage, now: Timestamp) -> Self {
        self.map_execution(now, |execution| execution.with_hook_usage(usage))
    }

    /// Adds an error that belongs to no step.
    #[must_use]
    pub fn with_error(self, error: super::error::AgentError, now: Timestamp) -> Self {
        self.map_execution(now, |execution| {
            let errors = execution.errors.clone().with_error(error);
            ExecutionState { errors, ..execution }
        })
    }

    fn map_execution(self, now: Timestamp, change: impl FnOnce(ExecutionState) -> ExecutionState) -> Self {
        let Some(execution) = self.execution else { return self };
        Self {
            execution: Some(Box::new(change(*execution))),
            ..self
        }
        .updated(now)
    }
}
