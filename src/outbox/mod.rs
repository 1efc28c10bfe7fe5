//! Sends webhook messages from the outbox until they are delivered.
//!
//! Runs write the messages in the transaction of their end. This module does not know their
//! content. Delivery is at least once: a worker that dies after it sent a message, and before it
//! recorded that, leaves the message to be sent again under the same id.

mod attempt;
mod backoff;
mod receivers;
mod worker;

pub use self::worker::{OutboxPorts, OutboxSettings, OutboxWorker};
