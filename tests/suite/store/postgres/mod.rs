//! What only PostgreSQL promises.

pub(crate) mod held;

mod batches;
mod commit;
mod connect;
mod cut_batches;
pub(crate) mod plans;
mod queue;
mod timeouts;
