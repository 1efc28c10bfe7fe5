//! The statements that both engines share.

pub(crate) mod agents;
pub(crate) mod commit;
mod connection;
pub(crate) mod contents;
mod due;
mod history;
mod keys;
mod outbox;
pub(crate) mod queue;
mod retention;
mod row_batches;
mod runs;
mod sessions;
mod threads;
mod verify;
mod verify_trees;
