//! The storage traits. Names are `noun_verb`. A lookup returns `None` if the row does not exist or
//! belongs to another tenant.

use std::fmt;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use super::error::{CommitError, StoreFuture};
use super::key::ApiKeyRecord;
use super::outbox::OutboxStore;
use super::query::{AgentPage, Page, RunFilter, SessionFilter};
use super::queue::{Lease, QueueStore, ThreadMove};
use super::retention::{Ancestor, RetentionStore};
use super::threads::ThreadStore;
use crate::agent::AgentDefinition;
use crate::clock::Timestamp;
use crate::ids::{ApiKeyId, RunId, SessionId};
use crate::message::Message;
use crate::record::{NewDelivery, RunEvent, RunRecord, RunSummary, StepRecord};
use crate::session::{BranchPosition, Bundle, BundleDraft, Hash, SessionHead};
use crate::tenant::TenantId;

/// Everything that a backend does.
pub trait Store:
    SessionReader
    + SessionWriter
    + RunReader
    + RunWriter
    + QueueStore
    + ThreadStore
    + OutboxStore
    + RetentionStore
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
        + QueueStore
        + ThreadStore
        + OutboxStore
        + RetentionStore
        + AgentStore
        + KeyStore
        + StoreHealth
{
}

/// Reads sessions.
pub trait SessionReader: Send + Sync + fmt::Debug {
    /// Loads a bundle with the messages that running it needs: those from `history_start` on. Takes
    /// at most two round trips at any depth.
    fn bundle_load<'a>(&'a self, tenant: &'a TenantId, session_id: SessionId) -> StoreFuture<'a, Option<Bundle>>;

    /// Reads a session without its payloads.
    fn session_lookup<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: SessionId,
    ) -> StoreFuture<'a, Option<SessionHead>>;

    /// Lists sessions, newest first.
    fn session_list<'a>(
        &'a self,
        tenant: &'a TenantId,
        filter: &'a SessionFilter,
        page: Page<SessionId>,
    ) -> StoreFuture<'a, Vec<SessionHead>>;

    /// Lists a session and its ancestors, removed ones included, itself first. `before` names the
    /// last one seen.
    fn session_lineage<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: SessionId,
        page: Page<SessionId>,
    ) -> StoreFuture<'a, Option<Vec<Ancestor>>>;

    /// Reads a session with its states and none of its messages.
    fn states_load<'a>(&'a self, tenant: &'a TenantId, session_id: SessionId) -> StoreFuture<'a, Option<Bundle>>;

    /// Returns the bytes of a session's states as JSON, without reading them; 0 when there is no
    /// such session.
    fn states_size<'a>(&'a self, tenant: &'a TenantId, session_id: SessionId) -> StoreFuture<'a, u64>;

    /// Lists the segments that hold any of `limit` messages from an index on, oldest first, without
    /// reading them: the first 256. Takes one round trip where there are any.
    fn segment_list<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: SessionId,
        from: u64,
        limit: u32,
    ) -> StoreFuture<'a, Option<SegmentList>>;

    /// Reads messages by their index in the whole history, which has all of them, oldest first and
    /// in one round trip, touching only the segments that hold them.
    fn message_list<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: SessionId,
        indexes: Range<u64>,
    ) -> StoreFuture<'a, Option<Vec<Arc<Message>>>>;

    /// Reads the messages that the session itself added.
    fn new_message_list<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: SessionId,
    ) -> StoreFuture<'a, Option<Vec<Arc<Message>>>>;

    /// Computes all hashes of the session and its ancestors again from what is stored.
    fn session_verify<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: SessionId,
    ) -> StoreFuture<'a, Option<VerifyReport>>;
}

/// Publishes sessions.
pub trait SessionWriter: Send + Sync + fmt::Debug {
    /// Publishes a session with the record of its run and the sessions of its subagents, all or
    /// nothing.
    ///
    /// May be repeated after [`StoreError::Unavailable`](super::StoreError::Unavailable): a second attempt that finds the first one
    /// done returns the result of the first.
    fn session_commit<'a>(&'a self, commit: &'a Commit) -> BoxFuture<'a, Result<Committed, CommitError>>;
}

/// Reads runs.
pub trait RunReader: Send + Sync + fmt::Debug {
    /// Reads a run with its output.
    fn run_lookup<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> StoreFuture<'a, Option<RunRecord>>;

    /// Finds the run that has reserved the session id.
    fn run_lookup_by_session<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: SessionId,
    ) -> StoreFuture<'a, Option<RunSummary>>;

    /// Lists runs without their outputs, newest first.
    fn run_list<'a>(
        &'a self,
        tenant: &'a TenantId,
        filter: &'a RunFilter,
        page: Page<RunId>,
    ) -> StoreFuture<'a, Vec<RunSummary>>;

    /// Returns the bytes of a run's steps, and of the messages that its session and those of its
    /// subagents have added, as JSON and without reading them; 0 when there is no such run.
    fn steps_size<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> StoreFuture<'a, u64>;

    /// Reads the steps of a run as they were stored.
    fn step_list<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> StoreFuture<'a, Option<Vec<StepRecord>>>;
}

/// Writes runs that publish no session.
pub trait RunWriter: Send + Sync + fmt::Debug {
    /// Stores the end of a run that failed or was cancelled, with its events and webhooks. A run
    /// with a lease leaves the queue.
    ///
    /// A run whose end is recorded can't publish a session afterwards.
    fn run_record<'a>(&'a self, tenant: &'a TenantId, end: &'a RunEnd) -> StoreFuture<'a, Recorded>;
}

/// Stores the definitions of agents as immutable versions.
pub trait AgentStore: Send + Sync + fmt::Debug {
    /// Makes the definition the current version of its name; an equal one is not stored again.
    fn agent_put<'a>(
        &'a self,
        tenant: &'a TenantId,
        definition: &'a AgentDefinition,
        now: Timestamp,
    ) -> StoreFuture<'a, AgentRecord>;

    /// Stores a version without making it current, for agents that are defined elsewhere.
    /// Idempotent.
    fn agent_version_put<'a>(&'a self, tenant: &'a TenantId, agent: &'a AgentRecord) -> StoreFuture<'a, ()>;

    /// Reads the current version.
    fn agent_lookup<'a>(&'a self, tenant: &'a TenantId, name: &'a str) -> StoreFuture<'a, Option<AgentRecord>>;

    /// Reads a version, current or not.
    fn agent_version_lookup<'a>(&'a self, tenant: &'a TenantId, version: Hash) -> StoreFuture<'a, Option<AgentRecord>>;

    /// Lists the current versions by name.
    fn agent_list<'a>(&'a self, tenant: &'a TenantId, page: &'a AgentPage) -> StoreFuture<'a, AgentList>;

    /// Deletes the name; its versions stay readable. Returns whether it existed.
    fn agent_delete<'a>(&'a self, tenant: &'a TenantId, name: &'a str) -> StoreFuture<'a, bool>;
}

/// Stores API keys by the hash of their secret.
pub trait KeyStore: Send + Sync + fmt::Debug {
    /// Stores a key.
    fn key_insert<'a>(&'a self, key: &'a ApiKeyRecord) -> StoreFuture<'a, ()>;

    /// Finds the key, revoked or not, whose secret has this hash.
    fn key_lookup(&self, secret_hash: Hash) -> StoreFuture<'_, Option<ApiKeyRecord>>;

    /// Lists all keys, newest first.
    fn key_list(&self) -> StoreFuture<'_, Vec<ApiKeyRecord>>;

    /// Revokes a key. Returns whether there was one in force.
    fn key_revoke(&self, key_id: ApiKeyId, now: Timestamp) -> StoreFuture<'_, bool>;

    /// Returns whether any key exists, revoked ones included: from then on requests need one.
    fn key_exists(&self) -> StoreFuture<'_, bool>;
}

/// Checks the database and closes it.
pub trait StoreHealth: Send + Sync + fmt::Debug {
    /// Checks that the database responds and that its schema is current.
    fn health_check(&self) -> StoreFuture<'_, ()>;

    /// Waits for open operations and closes all connections.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// A session to publish, with the record of the run that made it.
#[derive(Debug, Clone)]
#[must_use = "a commit is nothing until a store publishes it"]
pub struct Commit {
    /// The tenant of the session.
    pub tenant: TenantId,
    /// The bundle.
    pub draft: BundleDraft,
    /// The end of the run; none for an import.
    pub run: Option<RunEnd>,
    /// The thread to point to the session. If it points elsewhere by now, it stays; with the
    /// conflict policy `reject`, nothing is published.
    pub thread: Option<ThreadMove>,
    /// What to do if another session has continued the base.
    pub conflict: ConflictPolicy,
    /// The sessions of the run's subagents, and of theirs. One whose parent has been continued
    /// opens a branch.
    pub children: Vec<BundleDraft>,
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
    /// The lease under which it ended; none for a run that was never in the queue.
    pub lease: Option<Lease>,
    /// The events that are not stored yet, without the last ones, which are made from the record
    /// and the session.
    pub events: Vec<Arc<RunEvent>>,
    /// The keys of messages that were applied and are not marked yet. All others that wait are too
    /// late.
    pub applied: Vec<String>,
    /// The webhooks to send.
    pub deliveries: Vec<NewDelivery>,
}

/// The result of recording the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded {
    /// It is stored.
    Now,
    /// The run has ended already: by an earlier attempt to record it, or by a commit whose response
    /// was lost.
    Before,
    /// Another worker has the lease; nothing is stored.
    LeaseLost,
}

/// What a commit has published.
#[derive(Debug, Clone, PartialEq)]
pub struct Committed {
    /// The run's own session.
    pub session: Bundle,
    /// The sessions of its subagents, in the order of [`Commit::children`].
    pub children: Vec<Bundle>,
    /// Whether the thread points to the session; true as well when there is none.
    pub thread_moved: bool,
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

/// How large a stored piece of a history is: the messages that one session added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentSize {
    /// Its position, which identifies it.
    pub place: BranchPosition,
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
    /// The number of ancestors that were removed: of them only the messages are checked.
    pub removed: u64,
    /// The number of messages checked.
    pub messages: u64,
    /// Everything that is not as its hash says; empty when all is well.
    pub faults: Vec<VerifyFault>,
}

/// A part that is not as its hash says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct VerifyFault {
    /// The session.
    pub session_id: SessionId,
    /// `environment_state`, `context_state`, `message_history_state` or `root_hash`.
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
