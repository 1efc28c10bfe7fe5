//! The state of an agent: identity, context and messages, and the execution while there is one.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::context::{AgentContext, MessageStore};
use super::error::ErrorList;
use super::execution::{ExecutionState, ExecutionStatus};
use super::response::FinishReason;
use super::step::{AgentStep, AgentStepType};
use super::stop::{StopReason, StopSignal};
use values::clock::Timestamp;
use values::ids::AgentId;
use values::json::{Object, Unread, Value};
use values::message::{ContentPart, Message, Section};
use values::model_ref::{ModelRef, ResponseFormat};
use values::session::{Overrides, RememberedApproval, RequestPrefix, ToolPins};
use values::usage::Usage;

/// Everything about an agent (document 001, "`AgentState` Structure"). Transitions consume it and
/// return the next state; a copy costs the same at any length of the history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentState {
    agent_id: AgentId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent_agent_id: Option<AgentId>,
    created_at: Timestamp,
    pub(super) updated_at: Timestamp,
    #[serde(default)]
    pub(super) execution_count: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<ModelRef>,
    #[serde(default)]
    pub(super) context: AgentContext,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) execution: Option<Box<ExecutionState>>,
    /// Unknown fields that a later version stored, except those of the messages and the execution.
    #[serde(skip)]
    pub(super) unread: Unread,
}

/// Constructors and getters.
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

    /// Iterates over the stored messages of the conversation, oldest first. Includes messages that
    /// a summary has replaced.
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

    /// Returns the status of the execution; none between executions.
    pub fn status(&self) -> Option<ExecutionStatus> {
        self.execution().map(|execution| execution.status)
    }

    /// Returns the number of completed steps of the execution.
    pub fn step_count(&self) -> usize {
        self.execution().map_or(0, ExecutionState::step_count)
    }

    /// Iterates over the completed steps of the execution.
    pub fn steps(&self) -> impl DoubleEndedIterator<Item = &AgentStep> {
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

    /// Returns the model that made the newest completion of the execution.
    pub fn answered_by(&self) -> Option<&ModelRef> {
        let execution = self.execution()?;
        let steps = execution.step_executions.iter().rev();
        steps.into_iter().find_map(|done| done.step.answered_by.as_ref())
    }

    /// Returns why the newest completion of the execution ended.
    pub fn finish_reason(&self) -> Option<&FinishReason> {
        let steps = self.execution()?.step_executions.iter().rev();
        let mut responses = steps.into_iter().filter_map(|done| done.step.response.as_ref());
        responses.next().map(|response| &response.finish_reason)
    }

    /// Returns why the execution stops or stopped.
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.execution().and_then(ExecutionState::stop_reason)
    }

    /// Returns the deciding stop signal; none if there is no signal.
    pub fn stop_signal(&self) -> Option<&StopSignal> {
        self.execution()
            .and_then(|execution| execution.continuation.deciding_signal())
    }

    /// Returns the usage of the execution.
    pub fn usage(&self) -> Usage {
        self.execution().map_or(Usage::NOTHING, ExecutionState::usage)
    }

    /// Returns the usage of hooks' model calls in the execution.
    pub fn hook_usage(&self) -> Usage {
        let hook_usage = self.execution().map(|execution| execution.hook_usage);
        hook_usage.unwrap_or_default()
    }

    /// Returns all errors of the execution, oldest first.
    pub fn errors(&self) -> ErrorList {
        self.execution().map(ExecutionState::all_errors).unwrap_or_default()
    }

    /// Returns the newest completed step if it is a final response.
    fn final_step(&self) -> Option<&AgentStep> {
        self.last_step()
            .filter(|step| step.step_type() == AgentStepType::FinalResponse)
    }

    /// Returns the messages of the final response; empty when there is none.
    pub fn final_response(&self) -> &[Arc<Message>] {
        self.final_step().map_or(&[], |step| &step.output_messages)
    }

    /// Returns the messages of the final response or else of the latest step.
    pub fn current_response(&self) -> &[Arc<Message>] {
        self.last_step()
            .or_else(|| self.current_step())
            .map_or(&[], |step| &step.output_messages)
    }

    /// Returns the text of the final response, also of a refusal.
    pub fn final_text(&self) -> String {
        let parts = self.final_response().iter().flat_map(|message| &message.content);
        let texts = parts.filter_map(|part| match part {
            ContentPart::Refusal { text } => Some(text.as_str()),
            part => part.as_text(),
        });
        texts.collect()
    }

    /// Returns the value of the final response, if its format is JSON.
    pub fn final_value(&self) -> Option<&Value> {
        self.final_step().and_then(|step| step.value.as_ref())
    }

    /// Decides whether the loop ends after a step; true between executions.
    pub fn should_stop(&self) -> bool {
        self.execution().is_none_or(ExecutionState::should_stop)
    }
}

/// Settings. They do not change `updated_at`, since they are made before an execution begins or by
/// hooks, which have no clock: [`start_execution`](AgentState::start_execution) and
/// [`HookStack`](crate::hooks::HookStack) set it afterwards.
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

    /// Retains the messages with which requests begin, for the next request.
    #[must_use]
    pub(crate) fn retaining_request_prefix(mut self, prefix: Option<&Arc<RequestPrefix>>) -> Self {
        if let Some(prefix) = prefix {
            self.context.store = self.context.store.with_request_prefix(Arc::clone(prefix));
        }
        self
    }

    /// Sets the system prompt.
    #[must_use]
    pub fn with_system_prompt(mut self, system_prompt: impl Into<String>) -> Self {
        self.context.system_prompt = system_prompt.into();
        self
    }

    /// Sets the text after the system prompt, for this execution only.
    #[must_use]
    pub fn with_instructions(mut self, instructions: Option<Arc<str>>) -> Self {
        self.context.instructions = instructions;
        self
    }

    /// Sets the format of final completions.
    #[must_use]
    pub fn with_response_format(mut self, response_format: ResponseFormat) -> Self {
        self.context.response_format = response_format;
        self
    }

    /// Sets the overrides of the definition.
    #[must_use]
    pub fn with_overrides(mut self, overrides: Option<Arc<Overrides>>) -> Self {
        self.context.overrides = overrides.filter(|overrides| !overrides.is_empty());
        self
    }

    /// Sets the approvals that cover later calls.
    #[must_use]
    pub fn with_remembered_approvals(mut self, approvals: Vec<RememberedApproval>) -> Self {
        self.context.remembered_approvals = approvals;
        self
    }

    /// Sets the accepted definitions of tools of servers.
    #[must_use]
    pub fn with_tool_pins(mut self, pins: ToolPins) -> Self {
        self.context.tool_pins = pins;
        self
    }

    /// Sets key-value pairs of the context. Other pairs stay.
    #[must_use]
    pub fn with_metadata(mut self, changes: Object) -> Self {
        self.context.metadata.extend(changes);
        self
    }
}
