//! Webhooks over real sockets: the sender by itself, and the hook in whole runs.

mod cancellation;
mod changes;
mod failures;
mod sender;
mod setup;
mod signatures;
