//! What the queue promises: on which terms runs are accepted, leased, kept, given back and ended, and what is kept of them meanwhile.

pub(crate) mod fixtures;

mod accepting;
mod controlling;
mod ending;
mod leasing;
mod progress;
mod tenants;
mod threads;
mod unreadable;

mod beside;
mod fairness;
mod lease_protocol;

mod cuts;
mod statements;
mod wake_ups;
