//! The record of a step, as readers see it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::subagent::SubagentRecord;
use crate::state::{
    AgentStepType, ErrorList, FinishReason, ModelRequestTrace, StepExecution, ToolExecution, ToolVerdict,
};
use values::clock::Timestamp;
use values::ids::{StepId, ToolExecutionId};
use values::json::is_default;
use values::message::Message;
use values::model_ref::ModelRef;
use values::usage::Usage;

/// A completed step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StepRecord {
    /// The step's number, from 1.
    pub step_number: u64,
    /// Names the step.
    pub step_id: StepId,
    /// The type of the step.
    pub step_type: AgentStepType,
    /// The reason why the model ended its completion.
    #[schema(value_type = Option<String>)]
    pub finish_reason: Option<FinishReason>,
    /// The model of the chain that answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<ModelRef>,
    /// The name of the model that answered, in the provider's own words.
    pub model: Option<String>,
    /// The usage of its model call and of the models behind its tools.
    pub usage: Usage,
    /// The number of calls of tools that the provider executed itself, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub provider_tool_calls: BTreeMap<String, u64>,
    /// When it began.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    #[serde(serialize_with = "values::clock::write_time")]
    pub started_at: Timestamp,
    /// When it ended.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    #[serde(serialize_with = "values::clock::write_time")]
    pub completed_at: Timestamp,
    /// The duration, in milliseconds.
    pub duration_ms: i64,
    /// The requests to models, in order: one for each model that was asked, and another one if a
    /// model was asked again without a part that its provider refuses. Requests of hooks are left
    /// out.
    #[serde(default)]
    #[schema(required = true)]
    pub model_requests: Vec<ModelRequestTrace>,
    /// The tools that ran.
    pub tool_executions: Vec<ToolExecutionRecord>,
    /// The errors of the step.
    pub errors: ErrorList,
    /// The parts of the request that a provider refused and that later requests leave out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// The messages that it produced. A committed session contains them, so the store has them here
    /// only for runs without a session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Arc<Message>>,
}

/// The execution of a tool. Its arguments and its result are in the step's messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolExecutionRecord {
    /// Names the execution.
    pub id: ToolExecutionId,
    /// The tool call that it executes.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// Whether the model sees the result as an error.
    pub is_error: bool,
    /// The maker of the result, if not the tool.
    #[serde(default, skip_serializing_if = "is_default")]
    pub verdict: ToolVerdict,
    /// Whether the agent has no such tool: the caller executes it, or no tool has the name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_foreign: bool,
    /// When it began.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    #[serde(serialize_with = "values::clock::write_time")]
    pub started_at: Timestamp,
    /// When it ended.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    #[serde(serialize_with = "values::clock::write_time")]
    pub completed_at: Timestamp,
    /// The duration, in milliseconds.
    pub duration_ms: i64,
    /// The agent that worked on the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subagent: Option<Box<SubagentRecord>>,
}

impl StepRecord {
    /// Records a step with its messages.
    pub fn new(step_number: u64, execution: &StepExecution) -> Self {
        let step = &execution.step;
        Self {
            step_number,
            step_id: step.id,
            step_type: step.step_type(),
            finish_reason: step.response.as_ref().map(|response| response.finish_reason.clone()),
            answered_by: step.answered_by.clone(),
            model: step.response.as_ref().and_then(|response| response.model.clone()),
            usage: step.usage(),
            provider_tool_calls: step
                .response
                .as_ref()
                .map(|response| response.provider_tool_calls.clone())
                .unwrap_or_default(),
            started_at: execution.started_at,
            completed_at: execution.completed_at,
            duration_ms: execution.duration().num_milliseconds(),
            model_requests: step.model_requests.clone(),
            tool_executions: step.tool_executions.iter().map(ToolExecutionRecord::new).collect(),
            errors: step.all_errors(),
            left_out: step.left_out.clone(),
            messages: step.output_messages.clone(),
        }
    }

    /// Iterates over the subagents that executed its tool calls.
    pub fn subagents_mut(&mut self) -> impl Iterator<Item = &mut SubagentRecord> {
        let executions = self.tool_executions.iter_mut();
        executions.filter_map(|execution| execution.subagent.as_deref_mut())
    }
}

impl ToolExecutionRecord {
    fn new(execution: &ToolExecution) -> Self {
        Self {
            id: execution.id,
            call_id: execution.call.id.clone(),
            name: execution.call.name.clone(),
            is_error: execution.is_error_result(),
            verdict: execution.verdict,
            is_foreign: execution.is_foreign,
            started_at: execution.started_at,
            completed_at: execution.completed_at,
            duration_ms: execution.duration().num_milliseconds(),
            subagent: SubagentRecord::of(execution).map(Box::new),
        }
    }
}
