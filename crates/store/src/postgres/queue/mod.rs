//! The queue on PostgreSQL: accepts and leases runs.

mod accept;
mod lease;

pub(super) use self::accept::run_insert;
pub(super) use self::lease::run_lease;
