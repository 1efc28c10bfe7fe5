//! What both engines run to the letter: each statement once, and all the traits but the commit made of them.
//!
//! An [`Engine`] carries a [`Statement`] to its database and answers with rows. Every engine thereby reads sessions and keeps
//! runs, agents and keys; what it must say in words of its own stands in `postgres/` or `sqlite/`.

mod engine;
mod statement;

mod columns;

mod sessions;

mod history;
mod lists;
mod verify;

mod commit;

mod agents;
mod keys;
mod runs;

mod schema;

pub(crate) use self::agents::{NewVersion, VERSION_INSERT};
pub(crate) use self::columns::segment_condition;
pub(crate) use self::commit::{Refusal, answer, successor_statement};
pub(crate) use self::engine::{Engine, EngineRow};
pub(crate) use self::runs::run_insert_statement;
pub(crate) use self::schema::schema_version;
pub(crate) use self::statement::Statement;
