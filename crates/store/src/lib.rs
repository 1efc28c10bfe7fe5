//! Storage as traits: sessions, runs, agents and keys. [`open()`] opens one of two stores, on
//! PostgreSQL or on SQLite; one suite of contract tests checks both. Contains no agent logic and no
//! HTTP. A transaction calls nothing outside of the store while it is open.
//!
//! | looking for | go to |
//! |---|---|
//! | the promises of a store, and its errors | `traits.rs` and the public modules, `error.rs` |
//! | how a store is opened, and the cache before it | `open.rs`, `store_settings.rs`, `content_rules.rs`, `cache.rs` |
//! | checks and encoding before a write | `draft.rs`, `new_commit.rs`, `new_acceptance.rs`, `new_progress.rs`, `new_end.rs` |
//! | how stored hashes are verified | `verification.rs`, `inspection.rs` |
//! | how a session is carried to another store | `portable.rs` |
//! | large contents in an object store | `objects/` |
//! | the bytes in a payload | `codec/` |
//! | the columns of a table, and the values of a row | `rows/` |
//! | a statement that both engines run | `sql/` |
//! | what each engine does its own way: connect, migrate, commit, accept and lease runs, wake workers | `postgres/`, `sqlite/`, `wake_ups.rs` |

pub mod agents;
pub mod audit;
pub mod commands;
pub mod console_sessions;
pub mod contents;
mod error;
pub mod keys;
mod observer;
mod outage;
pub mod outbox;
mod query;
pub mod queue;
pub mod restore;
pub mod retention;
pub mod runs;
pub mod sessions;
pub mod spend;
pub mod threads;
pub mod token_revocations;
mod traits;

mod cache;
mod committer;
mod content_rules;
mod lease_clock;
pub mod objects;
mod open;
mod open_error;
mod store_settings;

mod draft;
mod inspection;
mod new_acceptance;
mod new_commit;
mod new_end;
mod new_progress;
pub mod portable;
mod verification;

pub mod codec;
mod rows;

mod sql;

mod wake_ups;

mod postgres;
mod sqlite;

mod driver_error;
mod migration;

pub use self::cache::Sessions;
pub use self::content_rules::ContentSettings;
pub use self::error::{CommitError, StoreError, Unavailability};
pub use self::lease_clock::LeaseClock;
pub use self::observer::{Connections, Outcome, StoreObserver};
pub use self::open::{migrate, missing_file, open, open_with};
pub use self::open_error::OpenError;
pub use self::outage::Outage;
pub use self::query::{Page, TimeRange};
pub use self::store_settings::StoreSettings;
pub use self::traits::{Store, StoreHealth};
