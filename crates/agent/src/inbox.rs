//! The port to messages that arrive while an execution is active.

use std::fmt;

use values::message::Message;

/// Holds messages for an execution until it takes them before a step.
pub trait Inbox: Send + Sync + fmt::Debug {
    /// Removes and returns all waiting messages, oldest first.
    fn take(&self) -> Vec<Message>;

    /// Returns whether the inbox is empty.
    fn is_empty(&self) -> bool;
}
