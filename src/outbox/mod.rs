//! Sends the messages of the outbox to webhooks until they are delivered. Runs write them, in the transaction of their end; nothing
//! here knows what they say.
//!
//! A message is sent at least once: a worker that is killed after it has sent one, and before it has noted so, leaves it to be sent
//! again, under the same id.

mod attempt;
mod backoff;
mod receivers;
mod worker;

pub use self::worker::{OutboxPorts, OutboxSettings, OutboxWorker};
