//! The definition of an agent: what an operator or a caller writes down. Data only.

use serde::{Deserialize, Serialize};

use super::state::ExecutionBudget;
use crate::json::Object;
use crate::model_ref::{ModelRef, ResponseFormat};

/// How an agent works. Stored as immutable versions, named by their hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentDefinition {
    /// Names the agent: 1 to 64 letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// What it is for.
    #[serde(default)]
    pub description: String,
    /// Instructions above the conversation: a template over `variables` and `metadata`.
    #[serde(default)]
    pub system_prompt: String,
    /// Makes the steps.
    #[serde(default)]
    pub driver: DriverKind,
    /// The model.
    pub model: ModelRef,
    /// Names of the tools that it may call.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Limits of each execution.
    #[serde(default)]
    pub budget: ExecutionBudget,
    /// The shape of final answers.
    #[serde(default)]
    pub response_format: ResponseFormat,
    /// Hooks, by name.
    #[serde(default)]
    pub hooks: Vec<HookConfig>,
    /// What errors do to an execution.
    #[serde(default)]
    pub error_policy: ErrorPolicy,
    /// Key-value pairs that every session of the agent begins with.
    #[serde(default)]
    pub metadata: Object,
}

/// Which driver makes the steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriverKind {
    /// The model asks for tools by the provider's own tool calls.
    #[default]
    ToolCalling,
}

/// Attaches a hook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HookConfig {
    /// The name that the hook is registered by.
    pub name: String,
    /// Hooks of higher priority run first.
    #[serde(default)]
    pub priority: i32,
    /// The hook's own configuration.
    #[serde(default)]
    pub config: Object,
}

/// What the errors of tools do to an execution. A failed model call always ends it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorPolicy {
    /// The model reads the error and goes on.
    #[default]
    IgnoreToolErrors,
    /// As above, until three steps in a row had one.
    RetryToolErrors,
    /// The first error ends the execution.
    StopOnAnyError,
}

impl AgentDefinition {
    /// The longest name, in bytes.
    pub const MAX_NAME_LENGTH: usize = 64;

    /// Tells whether the text can name an agent.
    pub fn is_valid_name(name: &str) -> bool {
        let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
        (1..=Self::MAX_NAME_LENGTH).contains(&name.len()) && name.bytes().all(allowed)
    }
}
