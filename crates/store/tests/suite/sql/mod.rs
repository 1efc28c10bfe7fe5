//! The statements that both engines share.

pub(crate) mod agents;
mod commands;
pub(crate) mod commit;
mod connection;
pub(crate) mod console_sessions;
mod content_totals;
pub(crate) mod contents;
mod due;
mod history;
mod indexes;
mod keys;
mod object_servers;
mod objects;
mod outbox;
mod outputs;
pub(crate) mod queue;
mod retention;
mod row_batches;
mod runs;
mod sessions;
mod spend;
mod thread_details;
mod threads;
mod token_revocations;
mod verify;
mod verify_trees;
mod waiting;
