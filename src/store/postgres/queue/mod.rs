//! The queue on PostgreSQL: accepting runs and leasing them.

mod accept;
mod lease;

pub(super) use self::accept::run_insert;
pub(super) use self::lease::run_lease;
