//! One execution of a tool: the call, its outcome and its timing.

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use super::error::AgentError;
use crate::clock::Timestamp;
use crate::ids::ToolExecutionId;
use crate::message::{ContentPart, ToolCall, ToolResult};

/// A call with its outcome. There is one for every call that the model asks for, also for those that could not run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolExecution {
    /// Names the execution.
    pub id: ToolExecutionId,
    /// What the model asked for.
    pub call: ToolCall,
    /// What the model reads.
    pub content: Vec<ContentPart>,
    /// Why it failed; none when it worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<AgentError>,
    /// When it began.
    pub started_at: Timestamp,
    /// When it ended.
    pub completed_at: Timestamp,
}

impl ToolExecution {
    /// Tells whether the call failed.
    pub fn has_error(&self) -> bool {
        self.error.is_some()
    }

    /// Returns the time it took.
    pub fn duration(&self) -> TimeDelta {
        self.completed_at - self.started_at
    }

    /// Returns the result that the model reads.
    pub fn to_result(&self) -> ToolResult {
        ToolResult {
            call_id: self.call.id.clone(),
            name: self.call.name.clone(),
            content: self.content.clone(),
            is_error: self.has_error(),
        }
    }
}
