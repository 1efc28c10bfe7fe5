//! The storage traits. Names are `noun_verb`. A lookup returns `None` if the row does not exist or
//! belongs to another tenant.

use std::fmt;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::commands::CommandStore;
use super::contents::ContentStore;
use super::error::{CommitError, StoreError};
use super::key::ApiKeyRecord;
use super::outbox::OutboxStore;
use super::query::{AgentPage, Page, RunFilter, SessionFilter};
use super::queue::{AcceptanceStore, Lease, LeaseStore, MessageStore, ProgressStore};
use super::retention::{Ancestor, RetentionStore};
use super::threads::ThreadStore;
use agent::AgentDefinition;
use agent::record::{NewDelivery, RunEvent, RunRecord, RunSummary, StepRecord, ThreadName};
use values::clock::Timestamp;
use values::ids::{ApiKeyId, RunId, SessionId};
use values::message::Message;
use values::session::{BranchPosition, Bundle, BundleDraft, Hash, SessionHead};
use values::tenant::TenantId;

/// Everything that a backend does.
pub trait Store:
    SessionReader
    + SessionWriter
    + RunReader
    + RunWriter
    + AcceptanceStore
    + LeaseStore
    + ProgressStore
    + MessageStore
    + ThreadStore
    + OutboxStore
    + RetentionStore
    + CommandStore
    + ContentStore
    + AgentStore
    + KeyStore
    + StoreHealth
{
}

impl<T> Store for T where
    T: SessionReader
        + SessionWriter
        + RunReader
        + RunWriter
        + AcceptanceStore
        + LeaseStore
        + ProgressStore
        + MessageStore
        + ThreadStore
        + OutboxStore
        + RetentionStore
        + CommandStore
        + ContentStore
        + AgentStore
        + KeyStore
        + StoreHealth
{
}

/// Reads sessions.
#[async_trait]
pub trait SessionReader: Send + Sync + fmt::Debug {
    /// Loads a bundle with the messages needed to run it: those from `history_start` on. Takes at
    /// most two round trips at any depth.
    async fn bundle_load(&self, tenant: &TenantId, session_id: SessionId) -> Result<Option<Bundle>, StoreError>;

    /// Reads a session without its payloads.
    async fn session_lookup(&self, tenant: &TenantId, session_id: SessionId)
    -> Result<Option<SessionHead>, StoreError>;

    /// Lists sessions, newest first.
    async fn session_list(
        &self,
        tenant: &TenantId,
        filter: &SessionFilter,
        page: Page<SessionId>,
    ) -> Result<Vec<SessionHead>, StoreError>;

    /// Lists a session and its ancestors, including removed ones, itself first. `before` is the
    /// last session of the previous page.
    async fn session_lineage(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
        page: Page<SessionId>,
    ) -> Result<Option<Vec<Ancestor>>, StoreError>;

    /// Reads a session with its states and none of its messages.
    async fn states_load(&self, tenant: &TenantId, session_id: SessionId) -> Result<Option<Bundle>, StoreError>;

    /// Returns the size of a session's states as JSON in bytes, without reading them; 0 if the
    /// session does not exist.
    async fn states_size(&self, tenant: &TenantId, session_id: SessionId) -> Result<u64, StoreError>;

    /// Lists the first 256 segments that contain any of the `limit` messages from an index on,
    /// oldest first. Does not read the messages. Takes one round trip unless the list is empty.
    async fn segment_list(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
        from: u64,
        limit: u32,
    ) -> Result<Option<SegmentList>, StoreError>;

    /// Reads messages by their index in the whole history, oldest first. The history must have all
    /// of them. Takes one round trip and reads only the segments that contain them.
    async fn message_list(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
        indexes: Range<u64>,
    ) -> Result<Option<Vec<Arc<Message>>>, StoreError>;

    /// Reads the messages that the session itself added.
    async fn new_message_list(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
    ) -> Result<Option<Vec<Arc<Message>>>, StoreError>;

    /// Computes all hashes of the session and its ancestors again from the stored bytes.
    async fn session_verify(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
    ) -> Result<Option<VerifyReport>, StoreError>;
}

/// Publishes sessions.
#[async_trait]
pub trait SessionWriter: Send + Sync + fmt::Debug {
    /// Publishes a session with the record of its run and the sessions of its subagents, all or
    /// nothing.
    ///
    /// May be repeated after [`StoreError::Unavailable`]: if the
    /// first attempt took effect, the second one returns the same result.
    async fn session_commit(&self, commit: &Commit) -> Result<Committed, CommitError>;
}

/// Reads runs.
#[async_trait]
pub trait RunReader: Send + Sync + fmt::Debug {
    /// Reads a run with its output.
    async fn run_lookup(&self, tenant: &TenantId, run_id: RunId) -> Result<Option<RunRecord>, StoreError>;

    /// Finds the run that has reserved the session id.
    async fn run_lookup_by_session(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
    ) -> Result<Option<RunSummary>, StoreError>;

    /// Lists runs without their outputs, newest first.
    async fn run_list(
        &self,
        tenant: &TenantId,
        filter: &RunFilter,
        page: Page<RunId>,
    ) -> Result<Vec<RunSummary>, StoreError>;

    /// Returns the size as JSON in bytes of a run's steps, and of the messages that its session and
    /// its subagents' sessions added. Does not read them. Returns 0 if the run does not exist.
    async fn steps_size(&self, tenant: &TenantId, run_id: RunId) -> Result<u64, StoreError>;

    /// Reads the steps of a run as they were stored.
    async fn step_list(&self, tenant: &TenantId, run_id: RunId) -> Result<Option<Vec<StepRecord>>, StoreError>;
}

/// Writes runs that publish no session.
#[async_trait]
pub trait RunWriter: Send + Sync + fmt::Debug {
    /// Stores the end of a run that failed or was cancelled, with its events and webhooks. A run
    /// with a lease leaves the queue.
    ///
    /// A run whose end is recorded can't publish a session afterwards.
    async fn run_record(&self, tenant: &TenantId, end: &RunEnd) -> Result<Recorded, StoreError>;
}

/// Stores the definitions of agents as immutable versions.
#[async_trait]
pub trait AgentStore: Send + Sync + fmt::Debug {
    /// Makes the definition the current version of its name. Does not store an equal definition
    /// again.
    async fn agent_put(
        &self,
        tenant: &TenantId,
        definition: &AgentDefinition,
        now: Timestamp,
    ) -> Result<AgentRecord, StoreError>;

    /// Stores a version without making it current, for agents of configuration files. Idempotent.
    async fn agent_version_put(&self, tenant: &TenantId, agent: &AgentRecord) -> Result<(), StoreError>;

    /// Reads the current version.
    async fn agent_lookup(&self, tenant: &TenantId, name: &str) -> Result<Option<AgentRecord>, StoreError>;

    /// Reads a version, current or not.
    async fn agent_version_lookup(&self, tenant: &TenantId, version: Hash) -> Result<Option<AgentRecord>, StoreError>;

    /// Lists the current versions by name.
    async fn agent_list(&self, tenant: &TenantId, page: &AgentPage) -> Result<AgentList, StoreError>;

    /// Deletes the name; its versions stay readable. Returns whether it existed.
    async fn agent_delete(&self, tenant: &TenantId, name: &str) -> Result<bool, StoreError>;
}

/// Stores API keys by the hash of their secret.
#[async_trait]
pub trait KeyStore: Send + Sync + fmt::Debug {
    /// Stores a key.
    async fn key_insert(&self, key: &ApiKeyRecord) -> Result<(), StoreError>;

    /// Finds the key, revoked or not, whose secret has this hash.
    async fn key_lookup(&self, secret_hash: Hash) -> Result<Option<ApiKeyRecord>, StoreError>;

    /// Lists all keys, newest first.
    async fn key_list(&self) -> Result<Vec<ApiKeyRecord>, StoreError>;

    /// Revokes a key. Returns whether there was one in force.
    async fn key_revoke(&self, key_id: ApiKeyId, now: Timestamp) -> Result<bool, StoreError>;

    /// Returns whether any key exists, revoked or not. Once one exists, requests need a key.
    async fn key_exists(&self) -> Result<bool, StoreError>;
}

/// Checks the database and closes it.
#[async_trait]
pub trait StoreHealth: Send + Sync + fmt::Debug {
    /// Checks that the database responds and that its schema is current.
    async fn health_check(&self) -> Result<(), StoreError>;

    /// Checks that the database takes writes, with a small one. A standby of PostgreSQL may refuse
    /// it if it did so when the store was opened, since the process then serves readers only.
    async fn write_check(&self) -> Result<(), StoreError>;

    /// Waits for open operations and closes all connections.
    async fn close(&self);
}

/// A session to publish, with the record of the run that made it.
#[derive(Debug, Clone)]
#[must_use = "a commit is nothing until a store publishes it"]
pub struct Commit {
    /// The tenant of the session.
    pub tenant: TenantId,
    /// The bundle.
    pub draft: BundleDraft,
    /// The end of the run; `None` for an import.
    pub run: Option<RunEnd>,
    /// The thread to move to the session. If it no longer points to the base, it does not move;
    /// with the conflict policy `reject`, nothing is published.
    pub thread: Option<ThreadName>,
    /// What to do if another session has continued the base.
    pub conflict: ConflictPolicy,
    /// The sessions of the run's subagents, at any depth. A session opens a branch if another one
    /// already continues its parent.
    pub children: Vec<BundleDraft>,
    /// Another session from which the draft has its environment, or parts of it. If it was removed,
    /// nothing is published: its files may be gone.
    pub environment_from: Option<SessionId>,
}

impl Commit {
    /// Iterates over the sessions that it publishes, the run's own first.
    pub(super) fn drafts(&self) -> impl Iterator<Item = &BundleDraft> {
        iter::once(&self.draft).chain(&self.children)
    }
}

/// The end of a run: everything that its last transaction writes.
#[derive(Debug, Clone)]
pub struct RunEnd {
    /// The final record.
    pub record: RunRecord,
    /// The steps.
    pub steps: Vec<StepRecord>,
    /// The lease under which it ended; `None` for a run that was never in the queue.
    pub lease: Option<Lease>,
    /// The events that are not stored yet. Excludes the last ones, which readers derive from the
    /// record and the session.
    pub events: Vec<Arc<RunEvent>>,
    /// The keys of the messages that were applied but are not marked yet. All other waiting
    /// messages are too late.
    pub applied: Vec<String>,
    /// The webhooks to send.
    pub deliveries: Vec<NewDelivery>,
}

/// The result of recording the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It is stored.
    Now,
    /// The run had already ended: an earlier call recorded it, or a commit whose response was lost.
    Before,
    /// Another worker has the lease. Nothing is stored.
    LeaseLost,
}

/// The sessions that a commit published.
#[derive(Debug, Clone, PartialEq)]
pub struct Committed {
    /// The run's own session.
    pub session: Bundle,
    /// The sessions of its subagents, in the order of [`Commit::children`].
    pub children: Vec<Bundle>,
}

/// What to do when another run has continued the same base.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConflictPolicy {
    /// Open a new branch.
    #[default]
    Fork,
    /// Publish nothing and name the other run.
    Reject,
}

/// Some segments of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentList {
    /// The segments, oldest first.
    pub segments: Vec<SegmentSize>,
    /// The number of messages in the whole history.
    pub total: u64,
}

/// The size of a segment: the messages that one session added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentSize {
    /// Its position, which identifies it.
    pub position: BranchPosition,
    /// The index of its first message in the whole history.
    pub first_index: u64,
    /// The number of its messages.
    pub message_count: u64,
    /// Their bytes as JSON.
    pub bytes: u64,
}

impl SegmentSize {
    /// Returns the index after its last message.
    pub fn end(&self) -> u64 {
        self.first_index + self.message_count
    }
}

/// What a verification found.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct VerifyReport {
    /// The number of sessions checked: the session and its ancestors.
    pub sessions: u64,
    /// The number of removed ancestors. Only their messages are checked.
    pub removed: u64,
    /// The number of messages checked.
    pub messages: u64,
    /// Every part that differs from its hash; empty if there is none.
    pub faults: Vec<VerifyFault>,
}

/// A part that differs from its hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct VerifyFault {
    /// The session.
    pub session_id: SessionId,
    /// `environment_state`, `context_state`, `message_history_state`, `root_hash` or `workspace`.
    pub part: &'static str,
    /// What is wrong.
    pub detail: String,
}

/// A page of agents.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentList {
    /// The agents, by name.
    pub agents: Vec<AgentRecord>,
    /// Whether this is the last page.
    pub is_last: bool,
}

/// A stored version of an agent's definition.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRecord {
    /// The definition.
    pub definition: Arc<AgentDefinition>,
    /// Its hash, which names the version.
    pub version: Hash,
    /// When the version was stored first.
    pub created_at: Timestamp,
}
