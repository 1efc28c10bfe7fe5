//! The message history: an append-only list with shared structure. A copy costs the same at any
//! length.
//!
//! The history of a compacted session may contain only its end. Indexes always count the messages
//! of the whole history. Readers that show all messages ask the store for `Sessions::whole_bundle`.

use std::fmt;
use std::sync::Arc;

use rpds::VectorSync;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error as _, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::request_prefix::RequestPrefix;
use crate::json::json_length;
use crate::message::Message;

/// The messages of a conversation, oldest first, from some index on.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The number of messages before the held ones.
    first_index: usize,
    messages: VectorSync<Arc<Message>>,
    /// How many of the held messages are counted, from the first on.
    counted: usize,
    /// The bytes of the counted messages, as JSON.
    counted_bytes: usize,
    /// The messages with which requests begin, if a request was made.
    request_prefix: Option<Arc<RequestPrefix>>,
}

impl History {
    /// Makes a history that holds its messages from the index on.
    pub fn starting_at(first_index: usize, messages: impl IntoIterator<Item = Arc<Message>>) -> Self {
        Self {
            first_index,
            ..Self::default()
        }
        .with_messages(messages)
    }

    /// Makes a history that holds its messages from the index on. Their JSON has `bytes` bytes.
    pub fn of_bytes(first_index: usize, messages: impl IntoIterator<Item = Arc<Message>>, bytes: usize) -> Self {
        let messages: VectorSync<_> = messages.into_iter().collect();
        Self {
            first_index,
            counted: messages.len(),
            counted_bytes: bytes,
            messages,
            request_prefix: None,
        }
    }

    fn uncounted(first_index: usize, messages: VectorSync<Arc<Message>>) -> Self {
        Self {
            first_index,
            messages,
            ..Self::default()
        }
    }

    /// Returns the index of the first message that is held; 0 when the history is whole.
    pub fn first_index(&self) -> usize {
        self.first_index
    }

    /// Returns the number of messages of the whole history.
    pub fn len(&self) -> usize {
        self.first_index + self.messages.len()
    }

    /// Returns the bytes of the messages that are held, as JSON. Serializes the messages that were
    /// added since the last [`counted`](Self::counted).
    pub fn bytes(&self) -> usize {
        let added = self.iter_from(self.first_index + self.counted);
        self.counted_bytes + added.map(|message| json_length(&**message)).sum::<usize>()
    }

    /// Returns the history with its bytes counted.
    #[must_use]
    pub fn counted(self) -> Self {
        Self {
            counted_bytes: self.bytes(),
            counted: self.messages.len(),
            ..self
        }
    }

    /// Returns the messages with which the requests of earlier turns began.
    pub fn request_prefix(&self) -> Option<&Arc<RequestPrefix>> {
        self.request_prefix.as_ref()
    }

    /// Sets the messages with which requests begin. They must be messages of this history.
    #[must_use]
    pub fn with_request_prefix(self, prefix: Arc<RequestPrefix>) -> Self {
        let request_prefix = Some(prefix);
        Self { request_prefix, ..self }
    }

    /// Returns whether the whole history has no message.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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

    /// Returns the history with the message at the index replaced. Without a held message there,
    /// nothing changes.
    ///
    /// Only for messages that are not committed yet.
    #[must_use]
    pub fn with_message_at(mut self, index: usize, message: Arc<Message>) -> Self {
        if let Some(at) = index.checked_sub(self.first_index)
            && let Some(replaced) = self.messages.get(at)
        {
            if at < self.counted {
                self.counted_bytes = self.counted_bytes + json_length(&*message) - json_length(&**replaced);
            }
            self.messages.set_mut(at, message);
            self.request_prefix = self.request_prefix.filter(|prefix| prefix.end() <= index);
        }
        self
    }

    /// Returns the history without holding the messages before the index.
    #[must_use]
    pub fn held_from(&self, index: usize) -> Self {
        if index <= self.first_index {
            return self.clone();
        }
        Self::starting_at(index.min(self.len()), self.iter_from(index).map(Arc::clone))
    }

    /// Returns the message at the index; `None` when there is none or it is not held.
    pub fn get(&self, index: usize) -> Option<&Arc<Message>> {
        self.messages.get(index.checked_sub(self.first_index)?)
    }

    /// Returns the newest message.
    pub fn last(&self) -> Option<&Arc<Message>> {
        self.messages.last()
    }

    /// Iterates over all messages that are held, oldest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.messages.iter()
    }

    /// Iterates over the held messages from the index on, without visiting earlier ones.
    pub fn iter_from(&self, index: usize) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        let skipped = index.saturating_sub(self.first_index);
        (skipped..self.messages.len()).filter_map(|at| self.messages.get(at))
    }
}

impl PartialEq for History {
    /// Compares the messages, and nothing that was computed from them.
    fn eq(&self, other: &Self) -> bool {
        self.first_index == other.first_index && self.messages == other.messages
    }
}

impl FromIterator<Arc<Message>> for History {
    fn from_iter<I: IntoIterator<Item = Arc<Message>>>(messages: I) -> Self {
        Self::default().with_messages(messages)
    }
}

impl Serialize for History {
    /// Writes a whole history as an array of messages. A partial one also has the index of its
    /// first message.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.first_index == 0 {
            return self.messages.serialize(serializer);
        }
        let mut fields = serializer.serialize_struct("History", 2)?;
        fields.serialize_field("first_index", &self.first_index)?;
        fields.serialize_field("messages", &self.messages)?;
        fields.end()
    }
}

impl<'de> Deserialize<'de> for History {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HistoryVisitor)
    }
}

/// Reads both forms without an intermediate copy of the messages.
struct HistoryVisitor;

#[derive(Deserialize)]
struct Window {
    first_index: usize,
    messages: VectorSync<Arc<Message>>,
}

impl<'de> Visitor<'de> for HistoryVisitor {
    type Value = History;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of messages, or an object with `first_index` and `messages`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, messages: A) -> Result<History, A::Error> {
        let messages = VectorSync::deserialize(SeqAccessDeserializer::new(messages))?;
        Ok(History::uncounted(0, messages))
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<History, A::Error> {
        let Window { first_index, messages } = Window::deserialize(MapAccessDeserializer::new(fields))?;
        if first_index.checked_add(messages.len()).is_none() {
            return Err(A::Error::custom("`first_index` is too large"));
        }
        Ok(History::uncounted(first_index, messages))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clock::Timestamp;
    use crate::ids::{MessageId, UuidV7Source};
    use crate::message::Role;

    fn messages(count: usize) -> Vec<Arc<Message>> {
        let message = |index: usize| {
            let id = MessageId::generate(&UuidV7Source);
            Arc::new(Message::text(id, Role::User, index.to_string(), Timestamp::UNIX_EPOCH))
        };
        (0..count).map(message).collect()
    }

    #[test]
    fn a_window_counts_the_messages_of_the_whole_history() {
        let all = messages(6);
        let whole: History = all.iter().cloned().collect();
        for first in 0..=7 {
            let window = whole.held_from(first);
            assert_eq!(window.first_index(), first.min(6), "{first}");
            assert_eq!((window.len(), window.is_empty()), (6, false), "{first}");
            assert_eq!(window.last(), all[first.min(6)..].last(), "{first}");
            assert!(window.iter().eq(&all[first.min(6)..]), "{first}");
            let bytes = |history: &History| history.iter().map(|message| json_length(&**message)).sum::<usize>();
            assert_eq!(window.bytes(), bytes(&window), "{first}");
            let window = if first % 2 == 0 { window.counted() } else { window };
            for index in 0..8 {
                let held = all.get(index).filter(|_| index >= first);
                assert_eq!(window.get(index), held, "{first}, {index}");
                assert!(
                    window.iter_from(index).eq(&all[index.max(first).min(6)..]),
                    "{first}, {index}"
                );
            }
            let other = &messages(1)[0];
            for index in 0..8 {
                let replaced = window.clone().with_message_at(index, Arc::clone(other));
                let expected = all.iter().enumerate().skip(first);
                let expected = expected.map(|(at, message)| if at == index { other } else { message });
                assert!(replaced.iter().eq(expected), "{first}, {index}");
                assert_eq!(replaced.bytes(), bytes(&replaced), "{first}, {index}");
            }
            let longer = window.clone().with_messages(messages(2));
            assert_eq!((longer.first_index(), longer.len()), (first.min(6), 8), "{first}");
            assert_eq!(
                longer.counted, window.counted,
                "{first}: what is added is not counted at once"
            );
            assert_eq!(longer.bytes(), bytes(&longer), "{first}");
            let counted = longer.clone().counted();
            assert_eq!(
                (counted.counted, counted.bytes()),
                (8 - first.min(6), longer.bytes()),
                "{first}"
            );
            assert_eq!(window.held_from(0), window, "what is not held does not come back");
        }
        assert!(History::default().is_empty());
    }

    #[test]
    fn both_forms_survive_a_round_trip() {
        let whole: History = messages(3).into_iter().collect();
        let text = serde_json::to_value(&whole).unwrap();
        assert!(text.is_array());
        assert_eq!(serde_json::from_value::<History>(text).unwrap(), whole);
        let window = whole.held_from(2);
        let text = serde_json::to_string(&window).unwrap();
        assert!(text.starts_with(r#"{"first_index":2,"messages":[{"#), "{text}");
        assert_eq!(serde_json::from_str::<History>(&text).unwrap(), window);
    }

    #[test]
    fn what_is_no_history_is_refused() {
        let message = serde_json::to_value(&messages(1)[0]).unwrap();
        for bad in [
            json!(null),
            json!("x"),
            json!({}),
            json!({"first_index": -1, "messages": []}),
            json!({"first_index": usize::MAX, "messages": [message]}),
            json!([1]),
        ] {
            assert!(serde_json::from_value::<History>(bad.clone()).is_err(), "{bad}");
        }
    }
}
