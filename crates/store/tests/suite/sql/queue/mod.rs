//! What the queue promises: how runs are accepted, leased, released and ended, and what is stored
//! of them meanwhile.

pub(crate) mod fixtures;

mod answers;
mod ending;
mod enqueue;
mod lease;
mod messages;
mod progress;
mod tenants;
mod threads;
mod unreadable;

mod fairness;
mod lease_protocol;

mod wake_ups;
