//! The promises of PostgreSQL alone.

pub(crate) mod held;

mod batches;
mod batches_of_all_kinds;
mod commit;
mod connect;
mod cut_batches;
pub(crate) mod plans;
mod queue;
mod timeouts;
