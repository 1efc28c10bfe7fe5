//! What a definition says of another agent that may work for it. Data only.

use serde::{Deserialize, Serialize};

use super::state::ExecutionBudget;

/// Lets an agent have another one work for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubagentConfig {
    /// The name of the other agent.
    #[schema(pattern = "^(?!\\.{1,2}$)[A-Za-z0-9._-]{1,64}$")]
    pub agent: String,
    /// The name of the tool; by default the agent's, with `_` for each `.`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9_-]{1,64}$")]
    pub tool: Option<String>,
    /// What the tool does, for the model; by default the agent's description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The tools that the other one is given, all of them this agent's; by default those that its own definition names as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Limits of each of its executions, beside its own.
    #[serde(default, skip_serializing_if = "ExecutionBudget::is_empty")]
    pub budget: ExecutionBudget,
}

impl SubagentConfig {
    /// Returns the name of the tool. Names of agents may have dots, names of tools may not.
    pub fn tool_name(&self) -> String {
        self.tool.clone().unwrap_or_else(|| self.agent.replace('.', "_"))
    }
}
