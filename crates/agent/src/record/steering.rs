//! Steering: messages that callers send to active runs.

use serde::{Deserialize, Serialize};

use super::named::named_values;
use values::ids::{MessageId, RunId};
use values::message::Message;

/// The domain of these hashes, which separates them from all others.
const DOMAIN: &str = "agent-runtime 2026-11 id of a message to a run";

/// The longest key of a message to an active run, in bytes.
pub const MAX_MESSAGE_KEY_BYTES: usize = 128;
/// The most messages that a run accepts from its callers, including late ones.
pub const MAX_RUN_MESSAGES: usize = 1_000;
/// The most bytes of all these messages together, as JSON.
pub const MAX_RUN_MESSAGES_BYTES: usize = 16 * 1024 * 1024;

/// A message to an active run. The sender's key identifies a repeated message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SteeringMessage {
    /// The sender's name for it, unique in the run.
    pub key: String,
    /// The message; its id is [`SteeringMessage::id`].
    pub message: Message,
}

impl SteeringMessage {
    /// Returns the id of the message with this key to a run. It depends on nothing else, so that
    /// any process can find the message in the run's session.
    pub fn id(run_id: RunId, key: &str) -> MessageId {
        let mut hasher = blake3::Hasher::new_derive_key(DOMAIN);
        // The id of the run has a fixed length, so different pairs never give the same bytes.
        hasher.update(run_id.as_uuid().as_bytes());
        hasher.update(key.as_bytes());
        let mut bytes = [0; 16];
        hasher.finalize_xof().fill(&mut bytes);
        MessageId::from_uuid(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }

    /// Returns the bytes of the message as JSON.
    pub fn size(&self) -> usize {
        // A message that can't be encoded counts as too large.
        serde_json::to_vec(&self.message).map_or(usize::MAX, |json| json.len())
    }
}

named_values! {
    /// The status of a message to an active run.
    SteeringStatus {
        /// The message waits for the run's next step.
        Received = "received",
        /// The message is part of the conversation.
        Applied = "applied",
        /// The run ended before it could be applied.
        TooLate = "too_late",
    }
}

impl SteeringStatus {
    /// Returns the status after the end of the run.
    #[must_use]
    pub fn after_end(self) -> Self {
        match self {
            Self::Received | Self::TooLate => Self::TooLate,
            Self::Applied => Self::Applied,
        }
    }
}

named_values! {
    /// The ways in which a caller ends a run.
    RunControl {
        /// The run ends early, and its session so far is published.
        Stop = "stop",
        /// The run ends at once and publishes nothing. A cancellation takes precedence over a stop.
        Cancel = "cancel",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_message_is_derived_from_its_run_and_its_key() {
        let [run, other] = [1, 2].map(|id| RunId::from_uuid(uuid::Uuid::from_u128(id)));
        let id = SteeringMessage::id(run, "m-1");
        assert_eq!(id, SteeringMessage::id(run, "m-1"));
        assert_ne!(id, SteeringMessage::id(other, "m-1"));
        assert_ne!(id, SteeringMessage::id(run, "m-2"));
        assert_eq!(id.to_string().parse(), Ok(id));
    }
}
