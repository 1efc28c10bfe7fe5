//! Steering: messages that callers send to runs at work.

use serde::{Deserialize, Serialize};

use crate::message::Message;

/// The longest key of a message to a run at work, in bytes.
pub const MAX_MESSAGE_KEY_BYTES: usize = 128;
/// The most messages that a run takes from its callers, whatever becomes of them.
pub const MAX_RUN_MESSAGES: usize = 1_000;
/// The most bytes that these messages have together, as JSON.
pub const MAX_RUN_MESSAGES_BYTES: usize = 16 * 1024 * 1024;

/// A message to a run at work, under the sender's key, by which a repeated one is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SteeringMessage {
    /// The sender's name for it, unique in the run.
    pub key: String,
    /// The message; its id is given when it is received.
    pub message: Message,
}

impl SteeringMessage {
    /// Returns the bytes of the message as JSON.
    pub fn size(&self) -> usize {
        // What can't be written finds no room anywhere.
        serde_json::to_vec(&self.message).map_or(usize::MAX, |json| json.len())
    }
}

/// What has become of a message to a run at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SteeringStatus {
    /// It waits for the run's next step.
    Received,
    /// It is part of the conversation.
    Applied,
    /// The run ended before it could be applied.
    TooLate,
}

impl SteeringStatus {
    /// Returns the name that JSON and storage use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Applied => "applied",
            Self::TooLate => "too_late",
        }
    }
}

/// How a caller wants a run to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunControl {
    /// With what it has: its session is published.
    Stop,
    /// At once: nothing is published. It wins over a stop.
    Cancel,
}

impl RunControl {
    /// Returns the name that storage uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Cancel => "cancel",
        }
    }
}
