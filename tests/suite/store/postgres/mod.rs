//! What only PostgreSQL promises.

pub(crate) mod held;

mod commit;
mod connect;
pub(crate) mod plans;
mod queue;
mod timeouts;
