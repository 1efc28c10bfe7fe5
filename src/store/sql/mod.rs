//! What both engines run unchanged: each statement once, and all traits except the commit.
//!
//! An [`Engine`] sends a [`Statement`] to its database and returns rows. What an engine words in
//! its own way is in `postgres/` or `sqlite/`.

mod connection;
mod engine;
mod statement;

mod columns;

mod sessions;

mod row_batches;

mod history;
mod lists;
mod verify;

mod commit;

mod agents;
mod due;
mod keys;
mod outbox;
mod queue;
mod retention;
mod runs;
mod threads;

mod schema;

pub(crate) use self::agents::{NewVersion, VERSION_INSERT};
pub(crate) use self::columns::{due_in_pair, run_columns, segment_condition};
pub(crate) use self::commit::{Refusal, answer, settle, successor_statement};
pub(crate) use self::connection::{Connection, Ended};
pub(crate) use self::engine::{Engine, EngineRow, Tally, half_of};
pub(crate) use self::queue::{Attempt, enqueue_in_txn, leased_columns, rows_insert};
pub(crate) use self::runs::run_insert_statement;
pub(crate) use self::schema::schema_version;
pub(crate) use self::statement::Statement;
