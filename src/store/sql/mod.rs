//! The statements that both engines share, and all the traits but the commit on top of them.
//!
//! An [`Engine`] sends a [`Statement`] to its database and returns rows. Statements that differ
//! stand in `postgres/` and `sqlite/`.

mod connection;
mod engine;
mod engine_row;
mod statement;
mod text;

mod columns;

mod session_lookup;
mod sessions;

mod row_batches;

mod history;
mod lists;
mod verify;

mod commit;

mod agents;
mod due;
mod keys;
mod new_version;
mod outbox;
mod queue;
mod retention;
mod runs;
mod threads;

mod schema;

pub(crate) use self::columns::{due_in_pair, segment_condition};
pub(crate) use self::commit::{Refusal, answer, settle, successor_statement};
pub(crate) use self::connection::{Connection, Ended};
pub(crate) use self::engine::{Engine, half_of};
pub(crate) use self::engine_row::{EngineRow, Tally};
pub(crate) use self::new_version::{NewVersion, VERSION_INSERT};
pub(crate) use self::queue::{
    Attempt, PlacedRun, ThreadState, accepted, key_claim_statement, leased_columns, next_turn, place_on_thread,
    stop_statement, waiting_statement,
};
pub(crate) use self::runs::run_insert_statement;
pub(crate) use self::schema::schema_version;
pub(crate) use self::statement::{Statement, insert_statement};
pub(crate) use self::text::{joined, length, sql};
