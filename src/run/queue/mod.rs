//! Runs that survive their connection and their worker: accepted into the queue, leased, renewed,
//! released.
//!
//! ```text
//! accept    accept.rs      one transaction: the record, the row in the queue, the idempotency key
//! lease     worker.rs      leases runs while the worker has free slots
//!           quarantine.rs  isolates suspected poison runs
//! attempt   attempt.rs     one worker's work on one run: plan again ─ perform ─ conclude
//! renew     keeper.rs      renews leases, and persists events, usage and applied messages
//! journal   journal.rs     persists the steps of executions, under the lease
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
pub(super) use self::request::AcceptedRequest;
