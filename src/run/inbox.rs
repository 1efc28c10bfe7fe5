//! Messages to a run at work, on their way to its model.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::agent::Inbox;
use crate::ids::MessageId;
use crate::message::Message;
use crate::record::{SteeringMessage, SteeringStatus};

/// Keeps messages, each key once, until the loop takes them.
#[derive(Debug, Default)]
pub(super) struct SteeringInbox(Mutex<Messages>);

#[derive(Debug, Default)]
struct Messages {
    known: BTreeMap<String, SteeringStatus>,
    waiting: Vec<SteeringMessage>,
    /// Keys of messages that are applied, and of which the store has not heard.
    untold: Vec<String>,
    is_closed: bool,
}

impl SteeringInbox {
    /// Adds a message unless one of its key is known; returns what has become of that one.
    pub(super) fn add(&self, message: SteeringMessage) -> SteeringStatus {
        let mut messages = self.messages();
        if let Some(status) = messages.known.get(&message.key) {
            return *status;
        }
        let status = if messages.is_closed {
            SteeringStatus::TooLate
        } else {
            SteeringStatus::Received
        };
        messages.known.insert(message.key.clone(), status);
        if status == SteeringStatus::Received {
            messages.waiting.push(message);
        }
        status
    }

    /// Notes that messages are applied which the conversation holds already: another worker may have added them, and the step that would
    /// have told of it is completed.
    pub(super) fn settle(&self, is_held: impl Fn(MessageId) -> bool) {
        let mut messages = self.messages();
        let waiting = std::mem::take(&mut messages.waiting);
        let (held, waiting) = waiting.into_iter().partition(|waiting| is_held(waiting.message.id));
        messages.waiting = waiting;
        messages.apply(&held);
    }

    /// Returns the keys of messages that are applied and not told yet.
    pub(super) fn take_untold(&self) -> Vec<String> {
        std::mem::take(&mut self.messages().untold)
    }

    /// Puts keys back that could not be told.
    pub(super) fn put_back(&self, keys: Vec<String>) {
        self.messages().untold.extend(keys);
    }

    /// Takes no more messages: what waits comes too late.
    pub(super) fn close(&self) {
        let mut messages = self.messages();
        messages.is_closed = true;
        for message in std::mem::take(&mut messages.waiting) {
            messages.known.insert(message.key, SteeringStatus::TooLate);
        }
    }

    fn messages(&self) -> MutexGuard<'_, Messages> {
        // A panic elsewhere can at most leave a message twice known, which is once too little told.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Messages {
    fn apply(&mut self, taken: &[SteeringMessage]) {
        for message in taken {
            self.known.insert(message.key.clone(), SteeringStatus::Applied);
            self.untold.push(message.key.clone());
        }
    }
}

impl Inbox for SteeringInbox {
    fn take(&self) -> Vec<Message> {
        let mut messages = self.messages();
        let taken = std::mem::take(&mut messages.waiting);
        messages.apply(&taken);
        taken.into_iter().map(|message| message.message).collect()
    }

    fn is_empty(&self) -> bool {
        self.messages().waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::ids::UuidV7Source;
    use crate::message::Role;

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
            assert_eq!(inbox.add(message.clone()), SteeringStatus::Received);
        }
        inbox.settle(|id| id == held.message.id);
        assert_eq!(inbox.take_untold(), ["held"]);
        inbox.close();
        assert_eq!(inbox.add(held), SteeringStatus::Applied);
        assert_eq!(inbox.add(other), SteeringStatus::TooLate);
        assert!(inbox.take().is_empty());
    }
}
