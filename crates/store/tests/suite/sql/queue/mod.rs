//! The promises of the queue: accepting, leasing, releasing and ending runs, and their stored state
//! meanwhile.

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
