//! The script of an agent without a model: its texts and tool calls, step by step. Data only.

use serde::{Deserialize, Serialize};

use crate::state::ErrorKind;
use values::json::{Object, is_default};
use values::usage::Usage;

/// One step of a script: text, tool calls, or an error after them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScriptStep {
    /// The text. The text of a step without calls is the final completion.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The tools that it calls.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ScriptedCall>,
    /// The error of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ScriptedError>,
    /// The usage of the step.
    #[serde(skip_serializing_if = "is_default")]
    pub usage: Usage,
}

/// A call of a tool in a script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The tool.
    pub name: String,
    /// The arguments of the call.
    #[serde(default)]
    pub arguments: Object,
}

/// An error in a script.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedError {
    /// The kind of the error.
    #[serde(default = "model")]
    pub kind: ErrorKind,
    /// The message.
    pub message: String,
}

fn model() -> ErrorKind {
    ErrorKind::Model
}

impl ScriptStep {
    /// Checks that the step can be played. The error names the part that can't be played.
    pub fn check(&self) -> Result<(), &'static str> {
        let has_calls = !self.tool_calls.is_empty();
        if self.text.is_empty() && !has_calls && self.error.is_none() {
            return Err("a step has text, tool_calls or an error");
        }
        if has_calls && self.error.is_some() {
            return Err("a step with an error calls no tools");
        }
        Ok(())
    }
}
