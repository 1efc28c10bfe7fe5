//! Storage as traits: sessions, runs, agents and keys.
//!
//! [`open()`] returns a store on PostgreSQL or on SQLite. One contract suite tests what both
//! promise. Contains no agent logic and no HTTP. No transaction is open across a call of another
//! module.
//!
//! | looking for | go to |
//! |---|---|
//! | what a store promises, and its errors | `traits.rs`, `queue.rs`, `retention.rs`, `error.rs` |
//! | how a store is opened, and the cache before it | `open.rs`, `cache.rs`, `weight.rs` |
//! | checks and encoding before a write | `draft.rs`, `publication.rs`, `new_end.rs` |
//! | the bytes of a payload | `codec/` |
//! | rows and their domain types | `rows/` |
//! | statements that both engines share | `sql/` |
//! | what each engine does in its own way | `postgres/`, `sqlite/` |
//!
//! # History
//!
//! History is append-only and stored by branch. `(branch, position)` names a segment: the messages
//! that one session added.
//!
//! - A commit whose parent is at `(B, p)` inserts `(B, p+1)`.
//! - If that position is taken, the parent was already continued. The commit then opens a new
//!   branch that points at `(B, p)`.
//!
//! So the primary key arbitrates between racing continuations. A fork copies nothing. A linear
//! conversation of any length is one range scan of an index, and a load takes at most two round
//! trips.
//!
//! The database rejects every update of sessions, segments, branches, states and agent versions.

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
mod open;
mod turns;
mod weight;

mod draft;
mod new_end;
mod new_queued_run;
mod new_run;
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

pub use self::cache::{Published, Sessions};
pub use self::codec::{
    DecodeError, EncodeError, EncodedSegment, Payload, PinnedAgents, QueuedEventOptions, QueuedKey, QueuedOverrides,
    QueuedRequest, QueuedRunRequest, StoredPayload,
};
pub use self::error::{CommitError, StoreError};
pub use self::key::{ApiKeyRecord, Scope};
pub use self::open::{OpenError, StoreSettings, migrate, missing_file, open};
pub use self::outage::Outage;
pub use self::outbox::{DeliveryFilter, DeliveryOutcome, DueDelivery, DueFilter, OutboxStore, Restarted};
pub use self::query::{AgentPage, Page, RunFilter, SessionFilter, TimeRange};
pub use self::queue::{
    Enqueued, IdempotencyKey, IfBusy, JournalRecord, KnownRequest, Lease, LeaseLimits, LeaseTerms, LeasedRun,
    MessagePut, NewQueuedRun, QueueStore, RenewedLease, SUSPECT_ATTEMPTS, SteeringRecord, StoredRequest, ThreadMove,
    UNREADABLE_ATTEMPTS, UnreadableRequest,
};
pub use self::retention::{
    Ancestor, RemovalFigures, RemovedSession, RetentionRules, RetentionStore, SessionRemoval, SweepPlace,
};
pub use self::threads::{ThreadExpectation, ThreadPage, ThreadPlace, ThreadPut, ThreadStore};
pub use self::traits::{
    AgentList, AgentRecord, AgentStore, Commit, Committed, ConflictPolicy, KeyStore, Recorded, RunEnd, RunReader,
    RunWriter, SegmentList, SegmentSize, SessionReader, SessionWriter, Store, StoreFuture, StoreHealth, VerifyFault,
    VerifyReport,
};
pub(crate) use self::weight::message_bytes;
