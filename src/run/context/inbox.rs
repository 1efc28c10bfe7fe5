//! The inbox of an active run: messages from callers that the model has not received yet.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

use agent::Inbox;
use agent::record::{MAX_RUN_MESSAGES, MAX_RUN_MESSAGES_BYTES, SteeringMessage, SteeringStatus};
use values::ids::MessageId;
use values::message::Message;

/// Holds messages until the loop takes them. Each key is accepted once.
#[derive(Debug, Default)]
pub(in crate::run) struct SteeringInbox(Mutex<Messages>);

#[derive(Debug, Default)]
struct Messages {
    known: BTreeMap<String, SteeringStatus>,
    /// The bytes of all known messages, as JSON.
    size: usize,
    waiting: Vec<SteeringMessage>,
    /// Keys of messages that are applied but not yet marked as applied in the store.
    unacknowledged: BTreeSet<String>,
    /// Whether all messages that are stored for the run are known.
    is_filled: bool,
    is_closed: bool,
}

impl SteeringInbox {
    /// Adds a message unless its key is known. Returns the status of the message with this key.
    /// Returns `None` if the inbox is full.
    pub(in crate::run) fn add(&self, message: SteeringMessage) -> Option<SteeringStatus> {
        let mut messages = self.0.lock();
        if let Some(status) = messages.known.get(&message.key) {
            return Some(*status);
        }
        if messages.is_closed {
            return Some(SteeringStatus::TooLate);
        }
        let size = messages.size.saturating_add(message.size());
        if messages.known.len() >= MAX_RUN_MESSAGES || size > MAX_RUN_MESSAGES_BYTES {
            return None;
        }
        messages.size = size;
        messages.known.insert(message.key.clone(), SteeringStatus::Received);
        messages.waiting.push(message);
        Some(SteeringStatus::Received)
    }

    /// Returns whether all stored messages of the run were added, so that only new ones must be
    /// read.
    pub(in crate::run) fn is_filled(&self) -> bool {
        self.0.lock().is_filled
    }

    /// Records that all stored messages were added.
    pub(in crate::run) fn filled(&self) {
        self.0.lock().is_filled = true;
    }

    /// Marks messages as applied if the conversation already contains them. Another worker may have
    /// applied them in a completed step.
    pub(in crate::run) fn apply_held(&self, is_held: impl Fn(MessageId) -> bool) {
        let mut messages = self.0.lock();
        let waiting = std::mem::take(&mut messages.waiting);
        let (held, waiting) = waiting.into_iter().partition(|waiting| is_held(waiting.message.id));
        messages.waiting = waiting;
        messages.apply(&held);
    }

    /// Returns the keys of applied messages that the store may not have marked yet.
    pub(in crate::run) fn unacknowledged(&self) -> Vec<String> {
        self.0.lock().unacknowledged.iter().cloned().collect()
    }

    /// Records that the store has marked these messages as applied.
    pub(in crate::run) fn acknowledged(&self, keys: &[String]) {
        let mut messages = self.0.lock();
        for key in keys {
            messages.unacknowledged.remove(key);
        }
    }

    /// Accepts no more messages. Waiting messages are too late.
    pub(in crate::run) fn close(&self) {
        let mut messages = self.0.lock();
        messages.is_closed = true;
        for message in std::mem::take(&mut messages.waiting) {
            messages.known.insert(message.key, SteeringStatus::TooLate);
        }
    }
}

impl Messages {
    fn apply(&mut self, taken: &[SteeringMessage]) {
        for message in taken {
            self.known.insert(message.key.clone(), SteeringStatus::Applied);
            self.unacknowledged.insert(message.key.clone());
        }
    }
}

impl Inbox for SteeringInbox {
    fn take(&self) -> Vec<Message> {
        let mut messages = self.0.lock();
        let taken = std::mem::take(&mut messages.waiting);
        messages.apply(&taken);
        taken.into_iter().map(|message| message.message).collect()
    }

    fn is_empty(&self) -> bool {
        self.0.lock().waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::clock::Timestamp;
    use values::ids::UuidV7Source;
    use values::message::Role;

    fn message(key: &str) -> SteeringMessage {
        let id = MessageId::generate(&UuidV7Source);
        SteeringMessage {
            key: key.to_owned(),
            message: Message::text(id, Role::User, key, Timestamp::UNIX_EPOCH),
        }
    }

    #[test]
    fn a_message_that_the_conversation_holds_is_applied_and_others_wait() {
        let inbox = SteeringInbox::default();
        let (held, other) = (message("held"), message("other"));
        for message in [&held, &other] {
            assert_eq!(inbox.add(message.clone()), Some(SteeringStatus::Received));
        }
        inbox.apply_held(|id| id == held.message.id);
        assert_eq!(inbox.unacknowledged(), ["held"]);
        inbox.acknowledged(&["held".to_owned()]);
        assert_eq!(inbox.unacknowledged(), Vec::<String>::new());
        inbox.close();
        assert_eq!(inbox.add(held), Some(SteeringStatus::Applied));
        assert_eq!(inbox.add(other), Some(SteeringStatus::TooLate));
        assert!(inbox.take().is_empty());
    }

    #[test]
    fn no_more_messages_are_taken_than_fit() {
        let inbox = SteeringInbox::default();
        for number in 0..MAX_RUN_MESSAGES {
            assert_eq!(inbox.add(message(&number.to_string())), Some(SteeringStatus::Received));
            // Messages that the loop has taken still count.
            inbox.take();
        }
        assert_eq!(inbox.add(message("more")), None);
        assert_eq!(inbox.add(message("7")), Some(SteeringStatus::Applied));

        let inbox = SteeringInbox::default();
        let mut long = message("long");
        let words = "a".repeat(MAX_RUN_MESSAGES_BYTES - long.size());
        long.message = Message::text(
            long.message.id,
            Role::User,
            format!("long{words}"),
            Timestamp::UNIX_EPOCH,
        );
        assert_eq!(long.size(), MAX_RUN_MESSAGES_BYTES);
        assert_eq!(inbox.add(long), Some(SteeringStatus::Received));
        assert_eq!(inbox.add(message("more")), None);
        inbox.close();
        assert_eq!(inbox.add(message("more")), Some(SteeringStatus::TooLate));
    }
}
