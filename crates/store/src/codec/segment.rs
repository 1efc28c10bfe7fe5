//! A segment in its stored form, for callers that measure or inspect it. The stores do not use it.

use std::sync::Arc;

use super::SEGMENT_VERSION;
use super::history::{HistoryBuilder, StoredSegment};
use super::messages::encode_messages;
use super::payload::Payload;
use crate::error::StoreError;
use values::message::Message;

/// The stored form of a session's new messages.
#[derive(Debug, Clone)]
pub struct EncodedSegment {
    message_count: i64,
    payload: Payload,
}

impl EncodedSegment {
    /// Encodes messages.
    pub fn encode(messages: &[Arc<Message>]) -> Result<Self, StoreError> {
        let bytes = encode_messages(messages).map_err(StoreError::failed("encode segment"))?;
        Ok(Self {
            message_count: i64::try_from(messages.len()).map_err(StoreError::failed("encode segment"))?,
            payload: Payload::encode(SEGMENT_VERSION, bytes).map_err(StoreError::failed("encode segment"))?,
        })
    }

    /// Creates a segment from the columns of a row: the number of its messages, and their payload.
    pub fn from_stored(message_count: i64, payload: Payload) -> Self {
        Self { message_count, payload }
    }

    /// Decodes the messages.
    pub fn decode(&self) -> Result<Vec<Arc<Message>>, StoreError> {
        let mut history = HistoryBuilder::default();
        let stored = StoredSegment {
            first_index: 0,
            message_count: self.message_count,
            payload: self.payload.as_stored(),
        };
        history.push(stored).map_err(StoreError::failed("decode segment"))?;
        Ok(history.into_messages())
    }
}
