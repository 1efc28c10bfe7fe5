//! Sends webhook messages from the outbox until they are delivered.
//!
//! Runs write the messages in the transaction of their end. This module does not know their
//! content. Delivery is at least once: if a worker crashes between sending a message and recording
//! the result, the message is sent again under the same id.

mod attempt;
mod backoff;
mod receivers;
mod worker;

pub use self::worker::{OutboxPorts, OutboxSettings, OutboxWorker};
