//! Queued runs at their worker: leased, renewed and released. They outlive their connection and
//! their worker. `accept.rs`, one folder above, puts them into the queue.
//!
//! ```text
//! take      worker.rs    leases runs while there are slots for them; isolates those that may be poison
//! attempt   attempt.rs   one worker's work on one run: plan again ─ execute ─ conclude, as for every run
//! renew     renewal.rs   renews leases and passes on what callers want, beside the work
//! persist   progress.rs  persists events, usage and applied messages, beside the work
//! ```

mod worker;

mod attempt;
mod earlier;

mod progress;
mod renewal;

pub(super) use self::attempt::{AcceptedHere, attempt};
pub(super) use self::progress::persist_progress;
pub(super) use self::renewal::{deliver_messages, renew, renew_leases, watch_leases};
pub(super) use self::worker::take_runs;
