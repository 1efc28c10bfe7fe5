//! The context of an agent: message store, metadata, system prompt and response format.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::json::Object;
use crate::message::Message;
use crate::model_ref::ResponseFormat;
use crate::session::History;

/// All messages of an agent, in one order; a section is a filter on it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MessageStore {
    history: History,
}

impl MessageStore {
    /// Holds the history.
    pub fn new(history: History) -> Self {
        Self { history }
    }

    /// Returns all messages of all sections.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Iterates over the messages of the named section.
    pub fn section<'a>(&'a self, name: &'a str) -> impl DoubleEndedIterator<Item = &'a Arc<Message>> {
        self.history
            .iter()
            .filter(move |message| message.tags.section.as_str() == name)
    }

    /// Returns the store with more messages at its end.
    #[must_use]
    pub fn with_messages(self, messages: impl IntoIterator<Item = Arc<Message>>) -> Self {
        Self {
            history: self.history.with_messages(messages),
        }
    }
}

/// What an agent knows and how it shall answer; it lasts across executions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentContext {
    /// All messages.
    pub store: MessageStore,
    /// Key-value pairs.
    pub metadata: Object,
    /// Instructions above the conversation: a template over variables and metadata.
    pub system_prompt: String,
    /// The shape of final answers.
    pub response_format: ResponseFormat,
}
