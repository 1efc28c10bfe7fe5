//! Runs that outlive their connection and their worker: accepted into the queue, leased by a worker, kept, handed back.
//!
//! ```text
//! accept    accept.rs    the run's record, its place in the queue, its idempotency key: one transaction
//! take      worker.rs    leases runs while there are places for them; quarantine.rs keeps those apart that may end it
//! attempt   attempt.rs   one worker's work on one run: plan again ─ perform ─ conclude, as for every run
//! keep      keeper.rs    renews leases, and keeps events and applied messages, beside the work
//! journal   journal.rs   keeps the steps of executions, under the lease
//! ```

mod accept;
mod attempt;
mod journal;
mod keeper;
mod lease_clock;
mod quarantine;
mod request;
mod worker;

pub(super) use self::accept::WaitingCount;
pub(super) use self::journal::read_journal;
pub(super) use self::lease_clock::LeaseClock;
pub(super) use self::quarantine::Quarantine;
pub(super) use self::request::{AcceptedRequest, Pinned};
