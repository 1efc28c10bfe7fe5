//! Runs that outlive their connection and their worker: accepted into the queue, leased by a
//! worker, renewed and released.
//!
//! ```text
//! accept    accept.rs    the run's record, its slot in the queue, its idempotency key: one transaction
//! take      worker.rs    leases runs while there are slots for them; quarantine.rs isolates those that may be poison
//! attempt   attempt.rs   one worker's work on one run: plan again ─ perform ─ conclude, as for every run
//! renew     renewal.rs   renews leases and passes on what callers want, beside the work
//! persist   progress.rs  persists events, usage and applied messages, beside the work
//! journal   journal.rs   persists the steps of executions, under the lease
//! ```

mod accept;
mod worker;

mod attempt;
mod earlier;
mod journal;
mod progress;
mod renewal;

mod leases;
mod quarantine;
mod request;

pub use self::accept::{QueueLength, RunQueue};
pub use self::attempt::Attempts;
pub(super) use self::journal::{RunJournal, read_journal};
pub use self::leases::Leases;
pub use self::progress::ProgressWriter;
pub use self::quarantine::Quarantine;
pub use self::renewal::LeaseRenewal;
pub(super) use self::request::{AcceptedRequest, PinnedAgents};
pub use self::worker::QueueWorker;
