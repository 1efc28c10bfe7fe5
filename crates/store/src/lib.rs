//! Storage as traits: sessions, runs, agents and keys. [`open()`] opens one of two stores, on
//! PostgreSQL or on SQLite; one suite of contract tests checks both. Contains no agent logic and no
//! HTTP. A transaction calls nothing outside of the store while it is open.
//!
//! | looking for | go to |
//! |---|---|
//! | what a store promises, and its errors | `traits.rs`, `queue.rs`, `commands.rs`, `contents.rs`, `retention.rs`, `error.rs` |
//! | how a store is opened, and the cache before it | `open.rs`, `cache.rs` |
//! | what is checked and encoded before a write | `draft.rs`, `publication.rs`, `new_end.rs`, `new_queued_run.rs` |
//! | how stored hashes are verified | `verification.rs`, `inspection.rs` |
//! | how a session is carried to another store | `portable.rs` |
//! | large contents in an object store | `objects/` |
//! | the bytes in a payload | `codec/` |
//! | the columns of a table, and what a row becomes | `rows/` |
//! | a statement that both engines run | `sql/` |
//! | what each engine does its own way: connect, migrate, commit, accept and lease runs, wake workers | `postgres/`, `sqlite/`, `wake_ups.rs` |

mod commands;
mod contents;
mod error;
mod key;
mod outage;
mod outbox;
mod query;
mod queue;
mod retention;
mod threads;
mod traits;

mod cache;
mod committer;
mod content_settings;
mod lease_clock;
mod objects;
mod open;
mod patient_contents;
mod tenant_contents;

mod draft;
mod inspection;
mod new_end;
mod new_progress;
mod new_queued_run;
mod portable;
mod publication;
mod verification;

mod codec;
mod rows;

mod sql;

mod wake_ups;

mod postgres;
mod sqlite;

mod driver_error;
mod migration;

pub use self::cache::Sessions;
pub use self::codec::{DecodeError, EncodeError, EncodedSegment, Payload, StoredPayload};
pub use self::commands::{
    CommandKey, CommandLease, CommandProgress, CommandStore, CommandTerms, CommandWakeUp, MAX_COMMAND_TEXT_BYTES,
    MAX_OUTPUT_PIECE_BYTES, NewCommand, OutputPiece, RenewedCommand, TakenCommand,
};
pub use self::content_settings::ContentSettings;
pub use self::contents::{ContentStore, MAX_CONTENT_BYTES};
pub use self::error::{CommitError, StoreError, Unavailability};
pub use self::key::{ApiKeyRecord, Scope};
pub use self::lease_clock::LeaseClock;
pub use self::objects::{ObjectSettings, ObjectStoreKind, OpenObjectsError};
pub use self::open::{OpenError, StoreSettings, migrate, missing_file, open, open_with};
pub use self::outage::Outage;
pub use self::outbox::{DeliveryFilter, DeliveryOutcome, DueDelivery, DueFilter, OutboxStore, Restarted};
pub use self::patient_contents::PatientContents;
pub use self::portable::{PortableError, PortableSession};
pub use self::query::{AgentPage, Page, RunFilter, SessionFilter, TimeRange};
pub use self::queue::{
    AcceptanceStore, Enqueued, IdempotencyKey, IfBusy, JournalRecord, KnownRequest, Lease, LeaseLimits, LeaseStore,
    LeaseTerms, LeasedRun, MessagePut, MessageStore, NewAnswer, NewQueuedRun, ProgressStore, RenewedLease,
    SUSPECT_ATTEMPTS, SteeringRecord, StoredRequest, UNREADABLE_ATTEMPTS, UnreadableRequest,
};
pub use self::retention::{
    Ancestor, RemovalFigures, RemovedSession, RetentionRules, RetentionStore, SessionRemoval, SweepCursor,
};
pub use self::tenant_contents::TenantContents;
pub use self::threads::{ThreadDelete, ThreadExpectation, ThreadPage, ThreadPut, ThreadStart, ThreadStore};
pub use self::traits::{
    AgentList, AgentRecord, AgentStore, Commit, Committed, ConflictPolicy, KeyStore, Recorded, RunEnd, RunReader,
    RunWriter, SegmentList, SegmentSize, SessionReader, SessionWriter, Store, StoreHealth, VerifyFault, VerifyReport,
};
