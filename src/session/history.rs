//! The message history: an append-only list that shares its structure, so that a copy costs nothing at any length.

use std::sync::Arc;

use rpds::VectorSync;
use serde::{Deserialize, Serialize};

use crate::message::Message;

/// The messages of a conversation, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct History {
    messages: VectorSync<Arc<Message>>,
}

impl History {
    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Tells whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns the history with one more message at its end.
    #[must_use]
    pub fn with_message(mut self, message: Arc<Message>) -> Self {
        self.messages.push_back_mut(message);
        self
    }

    /// Returns the history with more messages at its end.
    #[must_use]
    pub fn with_messages(self, messages: impl IntoIterator<Item = Arc<Message>>) -> Self {
        messages.into_iter().fold(self, Self::with_message)
    }

    /// Returns the message at the index.
    pub fn get(&self, index: usize) -> Option<&Arc<Message>> {
        self.messages.get(index)
    }

    /// Returns the newest message.
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.messages.last()
    }

    /// Iterates over all messages, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.messages.iter()
    }

    /// Iterates over the messages from the index on, without walking those before it.
    pub fn iter_from(&self, index: usize) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        (index..self.len()).filter_map(|at| self.messages.get(at))
    }
}

impl FromIterator<Arc<Message>> for History {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        Self::default().with_messages(messages)
    }
}
