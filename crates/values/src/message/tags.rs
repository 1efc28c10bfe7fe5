//! Tags of a message: its origin. Compilers filter by them.

use serde::{Deserialize, Serialize};

use crate::ids::{AgentId, ExecutionId, StepId};

// Document 001, "Message Metadata Tagging".
/// Where a message came from.
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
    /// Whether the message is an answer that was cut off or failed midway.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_partial: bool,
    /// The tokens of the request and of this answer to it, as the provider counted them; in answers
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    /// The section of the message store.
    #[serde(default, skip_serializing_if = "Section::is_messages")]
    pub section: Section,
    /// The messages that this one stands for, in a message of the section `summary`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covers: Option<Coverage>,
}

/// A range of messages, by their indexes in the whole history, that a summary stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Coverage {
    /// The index of the first message covered.
    pub from: u64,
    /// The index of the first message after those covered; at most the summary's own.
    pub to: u64,
}

impl MessageTags {
    /// Returns whether there is nothing to store.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Names a section of the message store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = String, pattern = "^[A-Za-z0-9._-]{1,64}$")]
pub struct Section(String);

impl Section {
    /// The section of the conversation itself.
    pub const MESSAGES: &'static str = "messages";
    /// The section of summaries, each of which may stand for the messages before it.
    pub const SUMMARY: &'static str = "summary";
    /// The section of an agent's notes for later.
    pub const BUFFER: &'static str = "buffer";

    /// The rule for names of sections.
    pub const RULE: &'static str = "a section has a name of 1 to 64 letters, digits, `-`, `_` and `.`";

    /// Names a section.
    pub fn new(name: impl Into<String>) -> Self {
        Self(name.into())
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether callers may use the name: see [`Section::RULE`].
    pub fn is_valid(&self) -> bool {
        let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
        (1..=64).contains(&self.0.len()) && self.0.bytes().all(allowed)
    }

    /// Returns whether this is the section of summaries.
    pub fn is_summary(&self) -> bool {
        self.0 == Self::SUMMARY
    }

    /// Returns whether this is the section of the conversation itself.
    pub fn is_messages(&self) -> bool {
        self.0 == Self::MESSAGES
    }
}

impl Default for Section {
    fn default() -> Self {
        Self(Self::MESSAGES.to_owned())
    }
}
