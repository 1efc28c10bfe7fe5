//! Tags of a message: where it came from. Compilers filter by them; nothing else may change their meaning.

use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, ExecutionId, StepId};

/// Where a message came from (document 001, "Message Metadata Tagging").
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct MessageTags {
    /// The step that produced the message; none for input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_id: Option<StepId>,
    /// The execution in which the message entered the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_id: Option<ExecutionId>,
    /// The agent that the execution belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<AgentId>,
    /// Whether the message is a trace of work: set for all output but a final response.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_trace: bool,
    /// The section of the message store.
    #[serde(default, skip_serializing_if = "Section::is_messages")]
    pub section: Section,
}

impl MessageTags {
    /// Tells whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Names a section of the message store.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = String)]
pub struct Section(String);

impl Section {
    /// The section of the conversation itself.
    pub const MESSAGES: &'static str = "messages";

    /// Names a section.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Tells whether this is the section of the conversation itself.
    pub fn is_messages(&self) -> bool {
        self.0 == Self::MESSAGES
    }
}

impl Default for Section {
    fn default() -> Self {
        Self(Self::MESSAGES.to_owned())
    }
}
