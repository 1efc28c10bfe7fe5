//! Webhooks over real sockets: the sender by itself, the hook in whole runs, and the outbox that tells how runs ended.

mod cancellation;
mod changes;
mod failures;
mod outbox;
mod outbox_setup;
mod outbox_workers;
mod room;
mod sender;
mod setup;
mod signatures;
mod standard_webhooks;
