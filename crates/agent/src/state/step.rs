//! One step of an execution: its content (`AgentStep`), and its times and consequences
//! (`StepExecution`).

use std::sync::Arc;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use super::continuation::ExecutionContinuation;
use super::error::{AgentError, ErrorList};
use super::messages::Messages;
use super::model_request::ModelRequestTrace;
use super::response::{FinishReason, ModelResponse};
use super::tool_execution::ToolExecution;
use values::clock::Timestamp;
use values::ids::StepId;
use values::json::{Unread, Value, present};
use values::message::{Message, ToolCall};
use values::model_ref::ModelRef;
use values::usage::Usage;

/// The type of a step, derived from its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AgentStepType {
    /// The model asked for tools.
    ToolExecution,
    /// The model has ended its completion.
    FinalResponse,
    /// Something failed.
    Error,
    /// A type that this version does not know, in a record that a later one wrote.
    #[serde(other)]
    Unknown,
}

/// The result of one call of the driver.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentStep {
    /// Names the step.
    pub id: StepId,
    /// The messages sent to the model. Not stored: they are the history's own, and storing them
    /// with every step would grow with the square of the conversation.
    #[serde(skip)]
    pub input_messages: Messages,
    /// The messages that the step produced, in order.
    pub output_messages: Vec<Arc<Message>>,
    /// The completion; none when the call failed before one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<ModelResponse>,
    /// The model of the chain that made the completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<ModelRef>,
    /// One execution for every tool call, in the order of the calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_executions: Vec<ToolExecution>,
    /// The value of a final completion, if a format was required and the completion fits it.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Errors other than those of tools.
    #[serde(default, skip_serializing_if = "ErrorList::is_empty")]
    pub errors: ErrorList,
    /// The parts of the request that a provider refused and that later requests leave out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The requests to models that the driver sent, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub model_requests: Vec<ModelRequestTrace>,
}

impl AgentStep {
    /// Makes an empty step.
    pub fn new(id: StepId, input_messages: Messages) -> Self {
        Self {
            id,
            input_messages,
            output_messages: Vec::new(),
            response: None,
            answered_by: None,
            tool_executions: Vec::new(),
            value: None,
            errors: ErrorList::default(),
            left_out: Vec::new(),
            model_requests: Vec::new(),
        }
    }

    /// Derives the type. Errors take precedence, then requested tool calls, including the
    /// provider's own, then a final response.
    pub fn step_type(&self) -> AgentStepType {
        if self.has_errors() {
            AgentStepType::Error
        } else if self.has_tool_calls() || self.is_paused() {
            AgentStepType::ToolExecution
        } else {
            AgentStepType::FinalResponse
        }
    }

    /// Iterates over the calls that the model asked for.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.output_messages.iter().flat_map(|message| message.tool_calls())
    }

    /// Returns whether the model asked for tools.
    pub fn has_tool_calls(&self) -> bool {
        self.tool_calls().next().is_some()
    }

    /// Returns whether the provider paused in the middle of its own tools and must be called again.
    pub fn is_paused(&self) -> bool {
        let reason = self.response.as_ref().map(|response| &response.finish_reason);
        reason == Some(&FinishReason::PauseTurn)
    }

    /// Returns the reason why the completion was cut; `None` if it is whole.
    pub fn cut(&self) -> Option<String> {
        self.response.as_ref()?.finish_reason.cut()
    }

    /// Returns whether anything failed, including tools.
    pub fn has_errors(&self) -> bool {
        self.iter_errors().next().is_some()
    }

    /// Returns all errors, errors of tools last.
    pub fn all_errors(&self) -> ErrorList {
        self.iter_errors().cloned().collect()
    }

    /// Returns the usage of the model call and of the models that its tools called.
    pub fn usage(&self) -> Usage {
        let tool_usage = self.tool_executions.iter().map(|execution| execution.trace.usage);
        self.response
            .iter()
            .map(|response| response.usage)
            .chain(tool_usage)
            .sum()
    }

    /// Iterates over all errors, errors of tools last.
    pub(super) fn iter_errors(&self) -> impl Iterator<Item = &AgentError> {
        let tool_errors = self
            .tool_executions
            .iter()
            .filter_map(|execution| execution.error.as_ref());
        self.errors.iter().chain(tool_errors)
    }
}

/// A completed step with its timing and continuation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepExecution {
    /// The content of the step.
    pub step: AgentStep,
    /// Stop signals and requests at its end.
    #[serde(default)]
    pub continuation: ExecutionContinuation,
    /// When it began.
    #[serde(serialize_with = "values::clock::write_time")]
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(serialize_with = "values::clock::write_time")]
    pub completed_at: Timestamp,
    /// Unknown fields that a later version stored in it and its parts; see [`Unread`].
    #[serde(skip)]
    pub unread: Unread,
}

impl StepExecution {
    /// Returns the step's id.
    pub fn id(&self) -> StepId {
        self.step.id
    }

    /// Returns its duration.
    pub fn duration(&self) -> TimeDelta {
        self.completed_at - self.started_at
    }
}
