//! A segment in its stored form, for callers that measure or inspect it. The stores do not use it.

use std::sync::Arc;

use super::SEGMENT_VERSION;
use super::history::{HistoryBuilder, StoredSegment};
use super::messages::encode_messages;
use super::payload::{DecodeError, EncodeError, Payload};
use values::message::Message;

/// The stored form of a session's new messages.
#[derive(Debug, Clone)]
pub struct EncodedSegment {
    message_count: i64,
    payload: Payload,
}

impl EncodedSegment {
    /// Encodes messages.
    pub fn encode(messages: &[Arc<Message>]) -> Result<Self, EncodeError> {
        let bytes = encode_messages(messages)?;
        Ok(Self {
            message_count: i64::try_from(messages.len()).unwrap_or(i64::MAX),
            payload: Payload::encode(SEGMENT_VERSION, bytes)?,
        })
    }

    /// Creates a segment from the columns of a row: the number of its messages, and their payload.
    pub fn from_stored(message_count: i64, payload: Payload) -> Self {
        Self { message_count, payload }
    }

    /// Decodes the messages.
    pub fn decode(&self) -> Result<Vec<Arc<Message>>, DecodeError> {
        let mut history = HistoryBuilder::default();
        let stored = StoredSegment {
            first_index: 0,
            message_count: self.message_count,
            payload: self.payload.as_stored(),
        };
        history.push(stored)?;
        Ok(history.into_messages())
    }
}
