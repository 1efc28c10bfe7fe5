//! One execution of a tool: the call, its outcome and its timing.

use std::sync::Arc;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use super::error::AgentError;
use super::execution::ExecutionStatus;
use super::step::StepExecution;
use super::stop::StopReason;
use values::clock::Timestamp;
use values::ids::{AgentId, ExecutionId, SessionId, ToolExecutionId};
use values::json::{Value, is_default};
use values::message::{ContentPart, ToolCall, ToolResult};
use values::usage::Usage;

/// A call with its outcome. Every call that the model requests has one, also a call that could not
/// run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolExecution {
    /// Names the execution.
    pub id: ToolExecutionId,
    /// The call, as the model made it.
    pub call: ToolCall,
    /// The result that the model reads.
    pub content: Vec<ContentPart>,
    /// The error; none when it worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AgentError>,
    /// When it began.
    #[serde(serialize_with = "values::clock::write_time")]
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(serialize_with = "values::clock::write_time")]
    pub completed_at: Timestamp,
    /// The maker of the result.
    #[serde(default, skip_serializing_if = "is_default")]
    pub verdict: ToolVerdict,
    /// Whether the agent has no such tool: the caller executes it, or no tool has the name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_foreign: bool,
    /// The effects of the call besides its result.
    #[serde(default, skip_serializing_if = "is_default")]
    pub trace: ToolTrace,
}

/// The maker of the result of a call.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema, strum::IntoStaticStr,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ToolVerdict {
    /// The tool.
    #[default]
    Executed,
    /// A hook blocked the call, or the execution ended before it; the model reads why.
    Blocked,
    /// The caller denied the call.
    Denied,
    /// Nobody answered the call in time, which counts as denied.
    Expired,
    /// A hook or the caller supplied the result.
    Supplied,
    /// A verdict that this version does not know.
    #[serde(other)]
    Unknown,
}

impl ToolVerdict {
    /// Returns the name that JSON and storage use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The effects of a call besides its result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolTrace {
    /// The usage of models on behalf of the call.
    pub usage: Usage,
    /// The agent that worked on it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent: Option<Arc<SubagentExecution>>,
    /// Whether the execution stops after this step, at the request of the tool.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ends_run: bool,
    /// The input without which the tool can't go on. The call is left open for it, so the trace of
    /// a call that has ended has none.
    #[serde(skip)]
    pub needs_input: Option<Box<NeededInput>>,
}

/// The input that a tool asks the caller for during a call.
#[derive(Debug, Clone, PartialEq)]
pub struct NeededInput {
    /// The question, for the caller.
    pub message: String,
    /// The JSON Schema of the input.
    pub schema: Value,
    /// The state that the tool needs to continue the call, besides the input.
    pub state: Value,
}

/// An execution of another agent on behalf of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SubagentExecution {
    /// The agent's name.
    pub agent: String,
    /// The agent instance.
    pub agent_id: AgentId,
    /// The session; committed with its parent's unless it failed.
    pub session_id: SessionId,
    /// The execution.
    pub execution_id: ExecutionId,
    /// The status at its end.
    pub status: ExecutionStatus,
    /// The reason of the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<StopReason>,
    /// The steps, oldest first.
    #[serde(default)]
    pub steps: Vec<Arc<StepExecution>>,
}

impl ToolExecution {
    /// Returns whether the call failed.
    pub fn has_error(&self) -> bool {
        self.error.is_some()
    }

    /// Returns whether the model reads the result as an error: the call failed or was blocked.
    pub fn is_error_result(&self) -> bool {
        use ToolVerdict::{Blocked, Denied, Expired};
        self.has_error() || matches!(self.verdict, Blocked | Denied | Expired)
    }

    /// Replaces the result with a notice, since a hook that must check it first was not called.
    pub fn withhold(&mut self, notice: &str) {
        self.content = vec![ContentPart::text(notice)];
        if let Some(error) = &mut self.error {
            notice.clone_into(&mut error.message);
        }
    }

    /// Returns its duration.
    pub fn duration(&self) -> TimeDelta {
        self.completed_at - self.started_at
    }

    /// Returns the result that the model reads.
    pub fn to_result(&self) -> ToolResult {
        ToolResult {
            call_id: self.call.id.clone(),
            name: self.call.name.clone(),
            content: self.content.clone(),
            is_error: self.is_error_result(),
        }
    }
}
