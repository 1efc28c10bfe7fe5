//! The context in a bundle: all session data of an agent except its messages (model A of document
//! 000).

use std::sync::Arc;

use chrono::SubsecRound as _;
use serde::{Deserialize, Serialize};

use super::overrides::{Overrides, stored_overrides};
use super::tool_pins::ToolPins;
use super::waiting::{RememberedApproval, WaitingStep};
use crate::clock::Timestamp;
use crate::ids::AgentId;
use crate::json::{Object, Unread};
use crate::model_ref::{ModelRef, ResponseFormat, stored_format};

/// The context as callers see it and as sessions are imported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ContextState {
    /// The part that seldom changes.
    #[serde(flatten)]
    pub stored: StoredContext,
    /// Key-value pairs that last across executions.
    #[serde(default)]
    pub metadata: Object,
    /// How many executions the agent has had.
    #[serde(default)]
    #[schema(maximum = 9_007_199_254_740_992_u64)]
    pub execution_count: u64,
    /// When the agent's state changed last.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    pub updated_at: Timestamp,
}

/// The part of the context that is stored by its hash; a turn that leaves it alone does not write
/// it again.
///
/// Metadata, execution count and time of change differ from turn to turn and stand in the session's
/// own row. The [agent instance](AgentInstance) stands there, too. It differs from conversation to
/// conversation, and without it they share one stored context.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StoredContext {
    /// Names the agent instance.
    pub agent_id: AgentId,
    /// The agent that started this one, for subagents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_agent_id: Option<AgentId>,
    /// When the agent's state was first created.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    pub created_at: Timestamp,
    /// The model that this session uses instead of its agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Instructions above the conversation.
    #[serde(default)]
    pub system_prompt: String,
    /// The shape of final answers.
    #[serde(default, deserialize_with = "stored_format")]
    pub response_format: ResponseFormat,
    /// The settings of this session that override its agent's definition; absent if there are none.
    #[serde(
        default,
        deserialize_with = "stored_overrides",
        skip_serializing_if = "Option::is_none"
    )]
    #[schema(value_type = Overrides)]
    pub overrides: Option<Arc<Overrides>>,
    /// The step that waits for answers; absent if the session does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = WaitingStep)]
    pub waiting: Option<Arc<WaitingStep>>,
    /// The approvals that cover later calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub remembered_approvals: Vec<RememberedApproval>,
    /// The definitions of tools of MCP servers that the session has accepted.
    #[serde(default, skip_serializing_if = "ToolPins::is_empty")]
    #[schema(required = false)]
    pub tool_pins: ToolPins,
    /// Keys that this version does not know.
    #[serde(flatten)]
    pub other: Object,
    /// The values of known keys that this version can't read; see [`Unread`].
    #[serde(skip)]
    pub unread: Unread,
}

/// The part of the context that differs between two conversations with the same agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentInstance {
    /// Names the agent instance.
    pub agent_id: AgentId,
    /// When the agent's state was first created, in whole microseconds.
    pub created_at: Timestamp,
}

impl StoredContext {
    /// Returns the agent instance.
    pub fn agent_instance(&self) -> AgentInstance {
        AgentInstance {
            agent_id: self.agent_id,
            created_at: self.created_at.trunc_subsecs(6),
        }
    }
}
