//! The queue on PostgreSQL: accepts and leases runs.

mod accept;
mod admission;
mod lease;

pub(super) use self::accept::run_accept;
pub(super) use self::lease::run_lease;
