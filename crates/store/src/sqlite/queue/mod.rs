//! The queue on SQLite: accepts and leases runs. Each operation is a transaction of the single
//! writer, so it needs no locks.

mod accept;
mod lease;

pub(super) use self::accept::accept_in_txn;
pub(super) use self::lease::lease_in_txn;
