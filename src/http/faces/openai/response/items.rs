//! The items of an output, as they are written.

use serde::Serialize;

use crate::http::faces::openai::executed_calls::{McpCallItem, SERVER};
use crate::http::faces::openai::ids::ItemId;
use crate::http::faces::openai::parts::{ItemStatus, StoredPart};

/// An item of an output.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum OutputItem {
    /// Words of the model.
    Message(MessageItem),
    /// Reasoning of the model.
    Reasoning(ReasoningItem),
    /// A call that the caller executes.
    FunctionCall(FunctionCallItem),
    /// A call that the service has executed.
    McpCall(McpCallItem),
    /// A call that the service executes once the caller has approved it.
    McpApprovalRequest(ApprovalItem),
}

/// The use of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    /// Words before or beside calls. Clients do not parse them.
    Commentary,
    /// The final response.
    FinalAnswer,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct MessageItem {
    pub(super) id: ItemId,
    pub(super) status: ItemStatus,
    pub(super) role: &'static str,
    pub(super) content: Vec<StoredPart>,
    /// Unknown before the end of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) phase: Option<Phase>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ReasoningItem {
    pub(super) id: ItemId,
    pub(super) summary: Vec<StoredPart>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) encrypted_content: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct FunctionCallItem {
    pub(super) id: ItemId,
    pub(super) call_id: String,
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) status: ItemStatus,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct ApprovalItem {
    pub(super) id: ItemId,
    pub(super) server_label: &'static str,
    pub(super) name: String,
    pub(super) arguments: String,
}

impl OutputItem {
    /// Returns the id.
    pub(super) fn id(&self) -> ItemId {
        match self {
            Self::Message(item) => item.id,
            Self::Reasoning(item) => item.id,
            Self::FunctionCall(item) => item.id,
            Self::McpCall(item) => item.id,
            Self::McpApprovalRequest(item) => item.id,
        }
    }

    /// Returns the only part of a message, or of reasoning that can be read.
    pub(super) fn part(&self) -> Option<&StoredPart> {
        match self {
            Self::Message(item) => item.content.first(),
            Self::Reasoning(item) => item.summary.first(),
            _ => None,
        }
    }

    /// Returns the same item before its contents have arrived.
    pub(super) fn begun(&self) -> Self {
        let status = ItemStatus::InProgress;
        match self.clone() {
            Self::Message(item) => Self::Message(MessageItem {
                content: Vec::new(),
                status,
                ..item
            }),
            Self::Reasoning(item) => Self::Reasoning(ReasoningItem {
                summary: Vec::new(),
                encrypted_content: None,
                ..item
            }),
            Self::FunctionCall(item) => Self::FunctionCall(FunctionCallItem {
                arguments: String::new(),
                status,
                ..item
            }),
            Self::McpCall(item) => Self::McpCall(McpCallItem {
                arguments: String::new(),
                output: None,
                error: None,
                approval_request_id: None,
                status,
                ..item
            }),
            Self::McpApprovalRequest(item) => Self::McpApprovalRequest(item),
        }
    }

    /// Adds words to the part.
    pub(super) fn push(&mut self, words: &str) {
        let part = match self {
            Self::Message(item) => item.content.first_mut(),
            Self::Reasoning(item) => item.summary.first_mut(),
            _ => None,
        };
        if let Some(
            StoredPart::OutputText { text, .. }
            | StoredPart::Refusal { refusal: text }
            | StoredPart::SummaryText { text },
        ) = part
        {
            text.push_str(words);
        }
    }

    /// Returns the same item as one that another attempt of the run does not have.
    pub(super) fn abandoned(self) -> Self {
        match self {
            Self::Message(item) => Self::Message(MessageItem {
                status: ItemStatus::Incomplete,
                ..item
            }),
            item => item,
        }
    }
}

impl ApprovalItem {
    /// Makes a call that waits for an approval.
    pub(super) fn new(id: ItemId, name: String, arguments: String) -> Self {
        Self {
            id,
            server_label: SERVER,
            name,
            arguments,
        }
    }
}
