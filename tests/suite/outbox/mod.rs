//! The outbox, which delivers messages about the ends of runs over real sockets.

mod setup;

mod deliveries;
pub(crate) mod standard_webhooks;
mod workers;
