//! A call on its way to its tool, with the decisions about it. Journals store it.

use serde::{Deserialize, Serialize};

use super::tool::Continuation;
use values::json::is_default;
use values::message::{ContentPart, ToolCall};

/// A call before it reaches its tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    /// The call. A hook may change its arguments; the history retains the original.
    pub call: ToolCall,
    /// The decision about the call.
    pub decision: ToolDecision,
    /// The approval of the caller, if the call needed one and has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Approved>,
    /// The call that this one continues, if the tool has asked for input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continuation: Option<Box<Continuation>>,
}

/// The approval of a call by the caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approved {
    /// The caller approved the call as it is.
    AsAsked,
    /// The caller changed the arguments.
    Edited {
        /// The arguments of the caller.
        arguments: String,
    },
}

impl ToolUse {
    /// Makes the use of a call that no hook has decided about.
    pub fn undecided(call: ToolCall) -> Self {
        Self {
            call,
            decision: ToolDecision::Execute,
            approved: None,
            continuation: None,
        }
    }
}

/// The decision about a call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolDecision {
    /// The tool executes it.
    #[default]
    Execute,
    /// The call is not executed.
    Block {
        /// The reason, for the model.
        reason: String,
        /// Who blocks it.
        #[serde(default, skip_serializing_if = "is_default")]
        by: Blocker,
    },
    /// The call is not executed; the model reads this result.
    Supply {
        /// The result.
        content: Vec<ContentPart>,
        /// Whether the model reads the result as an error.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

/// Who blocks a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Blocker {
    /// A hook, or the end of the execution.
    #[default]
    Hook,
    /// The caller, who denied it.
    Caller,
    /// The time in which nobody answered it.
    Expiry,
}

impl ToolDecision {
    /// Blocks a call for a hook.
    pub fn block(reason: impl Into<String>) -> Self {
        Self::Block {
            reason: reason.into(),
            by: Blocker::Hook,
        }
    }
}
