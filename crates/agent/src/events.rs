//! The events of an execution, emitted as it proceeds. Payloads contain new data only, never whole
//! histories.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::state::{
    AgentError, AgentStepType, ExecutionStatus, FinishReason, StepExecution, StopReason, ToolExecution, ToolVerdict,
};
use crate::hook_point::HookPoint;
use values::clock::Timestamp;
use values::ids::{AgentId, ExecutionId, MessageId, ModelRequestId, RunId, SessionId, StepId};
use values::json::{Object, Value, is_default};
use values::message::{ContentPart, ToolCall};
use values::model_ref::ModelRef;
use values::trace_context::TraceContext;
use values::usage::Usage;

/// Receives events. It never waits and never fails.
pub trait EventSink: Send + Sync + fmt::Debug {
    /// Receives one event.
    fn emit(&self, event: AgentEvent);

    /// Returns the span of some work, which what the work calls continues. `None` if the run is not
    /// recorded.
    fn span_of(&self, _work: TracedWork<'_>) -> Option<TraceContext> {
        None
    }

    /// Receives a step that was just archived. Steps are numbered from 1.
    fn step_recorded(&self, step_number: usize, step: &Arc<StepExecution>) {
        self.emit(AgentEvent::step_completed(step_number, step));
    }
}

/// Work of an execution that has a span of its own.
#[derive(Debug, Clone, Copy)]
pub enum TracedWork<'a> {
    /// The execution.
    Execution,
    /// A request to a model.
    ModelRequest(ModelRequestId),
    /// A tool call.
    ToolCall {
        /// The step's number.
        step_number: usize,
        /// The call's id.
        call_id: &'a str,
    },
}

/// A further attempt of a request to a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ModelRetry {
    /// The class of the failure of the attempt before.
    pub reason: String,
    /// When the attempt began.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    #[serde(serialize_with = "values::clock::write_time")]
    pub began_at: Timestamp,
}

/// Whether the loop continues after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ContinuationDecision {
    /// Another step follows.
    Continue,
    /// The execution ends.
    Stop,
}

/// A part of the state that has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatePart {
    /// The key-value pairs of the context.
    Metadata,
    /// The variables of the environment.
    Variables,
    /// The resources of the environment.
    Resources,
    /// The instructions above the conversation.
    SystemPrompt,
    /// The format of final completions.
    ResponseFormat,
    /// The messages of the history: some were added.
    Messages,
    /// The messages that the execution begins with.
    Input,
}

/// Something that happened. Steps are numbered from 1.
///
/// Most events are small deltas, so large and rare fields are boxed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "type", content = "data")]
pub enum AgentEvent {
    /// An execution begins.
    #[serde(rename = "execution.started")]
    ExecutionStarted {
        /// The execution.
        execution_id: ExecutionId,
        /// The agent instance.
        agent_id: AgentId,
        /// The agent instance that it works for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_agent_id: Option<AgentId>,
        /// The number of executions of the agent instance, this one included.
        execution_count: u64,
    },
    /// A step begins.
    #[serde(rename = "step.started")]
    StepStarted {
        /// The step's number.
        step_number: usize,
        /// The step's id.
        step_id: StepId,
        /// When it began.
        #[schema(value_type = chrono::DateTime<chrono::Utc>)]
        #[serde(serialize_with = "values::clock::write_time")]
        started_at: Timestamp,
        /// The run that has left the step open, if the execution begins with answers to its calls.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        left_open_by: Option<RunId>,
    },
    /// A message that came while the execution was at work has joined its conversation.
    #[serde(rename = "message.applied")]
    MessageApplied {
        /// The number of the step that follows.
        step_number: usize,
        /// The message.
        message_id: MessageId,
    },
    /// A model is asked.
    #[serde(rename = "model.requested")]
    ModelRequested {
        /// The step's number.
        step_number: usize,
        /// Names the request.
        request_id: ModelRequestId,
        /// The model.
        model: ModelRef,
        /// The number of messages that it is sent.
        message_count: usize,
        /// The number of tools that it may ask for.
        tool_count: usize,
        /// The most output tokens.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_output_tokens: Option<u64>,
    },
    /// A completion ended: complete, cut or failed.
    #[serde(rename = "model.responded")]
    ModelResponded {
        /// The step's number.
        step_number: usize,
        /// Names the request.
        request_id: ModelRequestId,
        /// The model.
        model: ModelRef,
        /// The reason of its end; none when there was no completion.
        #[schema(value_type = Option<String>)]
        finish_reason: Option<FinishReason>,
        /// The usage of the request.
        usage: Box<Usage>,
        /// The error, if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<Box<AgentError>>,
        /// The parts of the request that the provider refused and that later requests leave out.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        left_out: Vec<String>,
        /// The number of attempts that have begun: more than 1 after retries.
        attempts: u32,
        /// The attempts after the first one.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        retries: Vec<ModelRetry>,
        /// The duration, in milliseconds.
        duration_ms: i64,
    },
    /// More text of the model.
    #[serde(rename = "message.delta")]
    MessageDelta {
        /// The step's number.
        step_number: usize,
        /// The words.
        text: String,
        /// Whether the words decline the request.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        refusal: bool,
    },
    /// The model reasons on.
    #[serde(rename = "reasoning.delta")]
    ReasoningDelta {
        /// The step's number.
        step_number: usize,
        /// The words.
        text: String,
    },
    /// The model asks for a tool.
    #[serde(rename = "tool_call.started")]
    ToolCallStarted {
        /// The step's number.
        step_number: usize,
        /// The index of the call in the step, from 0.
        index: usize,
        /// The call's id.
        call_id: String,
        /// The tool's name.
        name: String,
    },
    /// The model writes more of a call's arguments.
    #[serde(rename = "tool_call.delta")]
    ToolCallDelta {
        /// The step's number.
        step_number: usize,
        /// The index of the call in the step, from 0.
        index: usize,
        /// The call's id.
        call_id: String,
        /// A piece of the arguments' text.
        arguments: String,
    },
    /// A call is executed or left open next: its arguments are whole, and neither they nor the
    /// hooks before it prevent it. Comes again for an open call that was approved.
    #[serde(rename = "tool_call.requested")]
    ToolCallRequested {
        /// The step's number.
        step_number: usize,
        /// The call's id.
        call_id: String,
        /// The tool's name.
        name: String,
        /// The arguments, with the changes of hooks.
        arguments: String,
    },
    /// A call that runs has more output. Its result has all of it.
    #[serde(rename = "tool_call.output")]
    ToolCallOutput {
        /// The step's number.
        step_number: usize,
        /// The call's id.
        call_id: String,
        /// A piece of the output.
        text: String,
    },
    /// A tool call ended.
    #[serde(rename = "tool_call.completed")]
    ToolCallCompleted {
        /// The step's number.
        step_number: usize,
        /// The call's id.
        call_id: String,
        /// The tool's name.
        name: String,
        /// The call's arguments, as the model wrote them.
        arguments: String,
        /// The result that the model reads.
        content: Vec<ContentPart>,
        /// Whether it is an error.
        is_error: bool,
        /// The maker of the result, if not the tool.
        #[serde(default, skip_serializing_if = "is_default")]
        verdict: ToolVerdict,
        /// Whether the agent has no such tool: the caller executes it, or no tool has the name.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_foreign: bool,
        /// The duration of the call, in milliseconds.
        duration_ms: i64,
    },
    /// A hook has changed the state, or something has during the calls of a step.
    #[serde(rename = "state.changed")]
    StateChanged {
        /// The number of the step that is in progress or would be next.
        step_number: usize,
        /// The hook's name; absent for changes during the calls of the step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hook: Option<String>,
        /// The point at which the hook was called.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        point: Option<HookPoint>,
        /// The parts that have changed.
        changes: Vec<StatePart>,
        /// The key-value pairs of the metadata that are new or have changed.
        #[serde(default, skip_serializing_if = "Object::is_empty")]
        metadata: Object,
        /// The variables that are new or have changed; null for each one that was removed.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        variables: BTreeMap<String, Value>,
    },
    /// Another agent begins to work on a call.
    #[serde(rename = "subagent.started")]
    SubagentStarted {
        /// The step's number.
        step_number: usize,
        /// The call's id.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        call_id: String,
        /// The other agent's name.
        agent: String,
        /// The other agent instance.
        agent_id: AgentId,
        /// The session that it will publish with this run's.
        session_id: SessionId,
    },
    /// Something happened in the execution of an agent below, where the caller asks for it.
    #[serde(rename = "subagent.event")]
    SubagentEvent {
        /// The number of the step of the agent right above, to which the call belongs.
        step_number: usize,
        /// The call that the agent works on.
        call_id: String,
        /// The agent instance.
        agent_id: AgentId,
        /// The number of levels below the run's own agent, from 1.
        depth: u32,
        /// The event of the subagent.
        #[schema(no_recursion)]
        event: Box<AgentEvent>,
    },
    /// Another agent's work on a call ended; the run's steps have its trace.
    #[serde(rename = "subagent.completed")]
    SubagentCompleted {
        /// The step's number.
        step_number: usize,
        /// The call's id.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        call_id: String,
        /// The other agent's name.
        agent: String,
        /// The other agent instance.
        agent_id: AgentId,
        /// The session that it publishes with this run's, unless it failed.
        session_id: SessionId,
        /// The status at its end.
        status: ExecutionStatus,
        /// The reason of the end.
        stop_reason: Option<StopReason>,
        /// The reason of the end of its last completion.
        #[serde(default)]
        #[schema(value_type = Option<String>)]
        finish_reason: Option<FinishReason>,
        /// The number of its steps.
        step_count: usize,
        /// The usage.
        usage: Box<Usage>,
    },
    /// Older messages are summarised; they stay in the history.
    #[serde(rename = "history.compacted")]
    HistoryCompacted {
        /// The number of the step that follows.
        step_number: usize,
        /// The summary.
        message_id: MessageId,
        /// The index of the first message that it covers.
        from: u64,
        /// The index after the last message that it covers.
        to: u64,
        /// The usage of writing it.
        usage: Box<Usage>,
    },
    /// A server lists tools that can't be used.
    #[serde(rename = "server.warned")]
    ServerWarned {
        /// The name of the MCP server.
        server: String,
        /// The parts of its list, with the reasons.
        problems: Vec<String>,
    },
    /// A hook failed, and the execution continues without it.
    #[serde(rename = "hook.warned")]
    HookWarned {
        /// The step's number.
        step_number: usize,
        /// The hook's name.
        hook: String,
        /// The message.
        message: String,
    },
    /// A step ended and is archived.
    #[serde(rename = "step.completed")]
    StepCompleted {
        /// The step's number.
        step_number: usize,
        /// The step's id.
        step_id: StepId,
        /// The type of the step.
        step_type: AgentStepType,
        /// The reason why the model ended its completion.
        #[schema(value_type = Option<String>)]
        finish_reason: Option<FinishReason>,
        /// The usage of its model call.
        usage: Box<Usage>,
        /// The duration, in milliseconds.
        duration_ms: i64,
    },
    /// The loop has decided whether to continue.
    #[serde(rename = "continuation.evaluated")]
    ContinuationEvaluated {
        /// The step's number.
        step_number: usize,
        /// Whether another step follows.
        decision: ContinuationDecision,
        /// The reason of the end of the execution.
        reason: Option<StopReason>,
        /// The source of the deciding signal.
        source: Option<String>,
        /// The signal's words.
        message: Option<String>,
        /// The signal's figures, such as the limit that is reached.
        #[serde(default, skip_serializing_if = "Object::is_empty")]
        context: Object,
    },
    /// An execution ended; the last event of every one. A loop that is dropped ends as failed.
    #[serde(rename = "execution.ended")]
    ExecutionEnded {
        /// The execution.
        execution_id: ExecutionId,
        /// The status at its end.
        status: ExecutionStatus,
        /// The reason of the end.
        reason: StopReason,
        /// Whether it ended before its work was done.
        was_force_stopped: bool,
        /// The source of the deciding signal.
        source: Option<String>,
        /// The signal's words.
        message: Option<String>,
        /// The signal's figures, such as the limit that is reached.
        #[serde(default, skip_serializing_if = "Object::is_empty")]
        context: Object,
        /// The number of its steps.
        step_count: usize,
        /// The usage.
        usage: Box<Usage>,
        /// The duration, in milliseconds.
        duration_ms: i64,
    },
}

impl AgentEvent {
    /// Makes the event of a tool call whose arguments are whole.
    pub fn tool_call_requested(step_number: usize, call: &ToolCall) -> Self {
        Self::ToolCallRequested {
            step_number,
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
        }
    }

    /// Makes the event of a tool call that ended.
    pub fn tool_call_completed(step_number: usize, execution: &ToolExecution) -> Self {
        Self::ToolCallCompleted {
            step_number,
            call_id: execution.call.id.clone(),
            name: execution.call.name.clone(),
            arguments: execution.call.arguments.clone(),
            content: execution.content.clone(),
            is_error: execution.is_error_result(),
            verdict: execution.verdict,
            is_foreign: execution.is_foreign,
            duration_ms: execution.duration().num_milliseconds(),
        }
    }

    /// Makes the event of a step that is archived.
    pub fn step_completed(step_number: usize, execution: &StepExecution) -> Self {
        Self::StepCompleted {
            step_number,
            step_id: execution.id(),
            step_type: execution.step.step_type(),
            finish_reason: execution
                .step
                .response
                .as_ref()
                .map(|response| response.finish_reason.clone()),
            usage: Box::new(execution.step.usage()),
            duration_ms: execution.duration().num_milliseconds(),
        }
    }
}
