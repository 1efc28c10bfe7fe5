//! The queue on SQLite: accepting runs and leasing them. Each is a transaction of the one writer,
//! so nothing is locked.

mod accept;
mod lease;

pub(super) use self::accept::accept_in_txn;
pub(super) use self::lease::{LEASE, lease_in_txn};
