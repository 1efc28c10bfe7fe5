//! What happens inside an execution, told as it happens. Payloads hold what is new, never whole histories.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::state::{AgentStepType, FinishReason, StepExecution, StopReason};
use crate::clock::Timestamp;
use crate::ids::StepId;
use crate::message::ContentPart;
use crate::usage::Usage;

/// Takes events; it never waits and never fails.
pub trait EventSink: Send + Sync + fmt::Debug {
    /// Takes one event.
    fn emit(&self, event: AgentEvent);

    /// Takes a step that has just been archived; its number counts from 1.
    fn step_recorded(&self, step_number: usize, step: &Arc<StepExecution>) {
        self.emit(AgentEvent::step_completed(step_number, step));
    }
}

/// Whether the loop goes on after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContinuationDecision {
    /// Another step follows.
    Continue,
    /// The execution ends.
    Stop,
}

/// Something that happened. Steps are numbered from 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data")]
pub enum AgentEvent {
    /// A step begins.
    #[serde(rename = "step.started")]
    StepStarted {
        /// The step's number.
        step_number: usize,
        /// The step's id.
        step_id: StepId,
        /// When it began.
        started_at: Timestamp,
    },
    /// The model says more words.
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
        /// The call's place among the calls of the step, from 0.
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
        /// The call's place among the calls of the step, from 0.
        index: usize,
        /// The call's id.
        call_id: String,
        /// A piece of the arguments' text.
        arguments: String,
    },
    /// A tool answered or failed.
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
        /// What the model reads.
        content: Vec<ContentPart>,
        /// Whether it is an error.
        is_error: bool,
        /// How long the tool took, in milliseconds.
        duration_ms: i64,
    },
    /// A step ended and is archived.
    #[serde(rename = "step.completed")]
    StepCompleted {
        /// The step's number.
        step_number: usize,
        /// The step's id.
        step_id: StepId,
        /// What it was.
        step_type: AgentStepType,
        /// Why the model ended its answer.
        finish_reason: Option<FinishReason>,
        /// What its model call used.
        usage: Usage,
        /// How long it took, in milliseconds.
        duration_ms: i64,
    },
    /// It is decided whether the loop goes on.
    #[serde(rename = "continuation.evaluated")]
    ContinuationEvaluated {
        /// The step's number.
        step_number: usize,
        /// Whether another step follows.
        decision: ContinuationDecision,
        /// Why the execution ends.
        reason: Option<StopReason>,
        /// Who gave the deciding signal.
        source: Option<String>,
        /// The signal's words.
        message: Option<String>,
    },
}

impl AgentEvent {
    /// Tells of a step that is archived.
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
            usage: execution.step.usage(),
            duration_ms: execution.duration().num_milliseconds(),
        }
    }
}
