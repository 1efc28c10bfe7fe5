//! The queue: leases, progress and control of runs that have not ended.

mod acceptance;
mod enqueue;

mod fence;
mod lease;
mod release;
mod unreadable;

mod ending;

mod messages;
mod progress;

pub(crate) use self::acceptance::{Attempt, admit_in_txn, answer_in_txn, ended, next_turn};
pub(crate) use self::ending::{end_insert, events_statement, lease_end};
pub(crate) use self::enqueue::{key_claim_statement, key_lookup};
pub(crate) use self::progress::events_conflict;
