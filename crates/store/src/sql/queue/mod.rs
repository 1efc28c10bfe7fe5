//! The queue: leases, progress and control of runs that have not ended.

mod accept;
mod admission;

mod fence;
mod lease;
mod release;
mod unreadable;

mod ending;

mod messages;
mod progress;

pub(crate) use self::accept::{key_claim_statement, key_lookup};
pub(crate) use self::admission::{admit_in_txn, answer_in_txn, ended, next_turn};
pub(crate) use self::ending::{end_complete, events_insert, events_statement, lease_lock, queue_leave, run_insert};
pub(crate) use self::fence::is_leased_on_conn;
pub(crate) use self::lease::LEASE;
pub(crate) use self::progress::events_conflict;
