//! The statements that both engines share. They implement all storage traits.
//!
//! An [`Engine`] sends a [`Statement`] to its database and returns rows. Statements that differ
//! between the engines are in `postgres/` and `sqlite/`.

mod attempt;
mod connection;
mod engine;
mod engine_row;
mod observed;
mod removal_act;
mod reservation;
mod statement;
mod text;

mod columns;

mod session_lookup;
mod sessions;

mod row_batches;

mod history;
mod lineage;
mod trees;
mod verify;
mod verify_trees;

mod commands;
mod commit;
mod contents;
mod objects;
mod refusal;

mod agents;
mod audit;
mod console_sessions;
mod due;
mod keys;
mod outbox;
mod queue;
mod restore;
mod retention;
mod runs;
mod spend;
mod threads;
mod token_revocations;
mod usage;
mod waiting;

mod schema;

pub(crate) use self::attempt::Attempt;
pub(crate) use self::audit::record;
pub(crate) use self::columns::{
    due_in_pair, first_threads, leased_columns, newest_of_tree, oldest_of_tree, segment_condition,
};
pub(crate) use self::commit::commit_write_alone;
pub(crate) use self::connection::{Connection, Ended};
pub(crate) use self::contents::{FIND_MISSING, PUT};
pub(crate) use self::engine::{Engine, half_of};
pub(crate) use self::engine_row::{EngineRow, Tally};
pub(crate) use self::observed::Observed;
pub(crate) use self::queue::{
    LEASE, admit_in_txn, answer_in_txn, ended, events_conflict, events_insert, events_statement, is_leased_on_conn,
    key_claim_statement, next_turn, queue_leave, run_insert,
};
pub(crate) use self::refusal::{CommitOutcome, Refusal};
pub(crate) use self::removal_act::RemovalAct;
pub(crate) use self::reservation::{Decided, NewReservation, RESERVE};
pub(crate) use self::runs::run_insert_statement;
pub(crate) use self::schema::{CHECK_WRITE, check_schema, migrate_in_txn};
pub(crate) use self::spend::settle_on_conn;
pub(crate) use self::statement::{Statement, insert_statement};
pub(crate) use self::text::{joined, length, sql};
