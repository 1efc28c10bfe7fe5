//! Sessions as traits: reads, and the commit of a session with the end of its run.

use std::collections::BTreeSet;
use std::fmt;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::error::{CommitError, StoreError};
use super::query::{Page, TimeRange};
use super::retention::Ancestor;
use super::runs::RunEnd;
use agent::record::ThreadName;
use values::clock::Timestamp;
use values::ids::{SessionId, StepId};
use values::json::Object;
use values::message::Message;
use values::session::{BranchPosition, Bundle, BundleDraft, SessionHead};
use values::tenant::TenantId;

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

    /// Lists the trees of sessions by their roots, newest root first. `before` is the root of the
    /// last tree of the previous page. Also lists trees whose root was removed.
    async fn tree_list(&self, tenant: &TenantId, page: Page<SessionId>) -> Result<Vec<SessionTree>, StoreError>;

    /// Lists a session and its ancestors, including removed ones, itself first. `before` is the
    /// last session of the previous page.
    async fn session_lineage(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
        page: Page<SessionId>,
    ) -> Result<Option<Vec<Ancestor>>, StoreError>;

    /// Reads the session that added a message to the line of a session, even if it was removed.
    /// `index` is the index of the message in the whole history. Returns `None` if the session does
    /// not exist or has no such message. Takes at most three round trips.
    async fn session_lookup_by_message(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
        index: u64,
    ) -> Result<Option<Ancestor>, StoreError>;

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

    /// Reads the messages that the session itself added and that the steps produced.
    async fn step_message_list(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
        steps: BTreeSet<StepId>,
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

/// The sessions that a list shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SessionFilter {
    /// Only of this agent.
    pub agent: Option<String>,
    /// Only with all of these key-value pairs at the top of their metadata.
    pub metadata: Object,
    /// Only made in this range.
    pub created: TimeRange,
    /// Only direct children of this session.
    pub parent: Option<SessionId>,
    /// Only of the tree with this root.
    pub root: Option<SessionId>,
    /// Only of subagents that the agent of this session started.
    pub subagent_of: Option<SessionId>,
    /// Only sessions that runs on this thread published, or changes of its files or messages.
    pub thread: Option<ThreadName>,
    /// Only sessions that nothing continues.
    pub tips_only: bool,
}

/// A tree of sessions: all that continue one root.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionTree {
    /// Its oldest session: the root, unless that was removed.
    pub oldest: SessionHead,
    /// The figures of the tree.
    pub figures: TreeFigures,
}

/// Figures of a tree, from its newest 1,000 sessions.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct TreeFigures {
    /// The number of its sessions; 1,000 stands for 1,000 or more.
    pub session_count: u64,
    /// When its last session was made.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    pub last_activity_at: Timestamp,
    /// The threads that point to one of its sessions: the first 10 by name.
    pub threads: Vec<ThreadName>,
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
    /// The thread to move to the session.
    pub thread: Option<ThreadMove>,
    /// The policy if another session has continued the base.
    pub conflict: ConflictPolicy,
    /// The sessions of the run's subagents, at any depth. A session opens a branch if another one
    /// already continues its parent.
    pub children: Vec<BundleDraft>,
    /// Another session from which the draft has its environment, or parts of it. If it was removed,
    /// nothing is published: its files may be gone.
    pub environment_from: Option<SessionId>,
}

/// A thread that a commit moves to its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadMove {
    /// The thread.
    pub name: ThreadName,
    /// The session to which it must point if the commit has no run; `None` for no session yet.
    /// Nothing is published if it points elsewhere, or if a run is active on it.
    pub from: Option<SessionId>,
}

impl ThreadMove {
    /// Makes the move at the end of a run, which moves its thread from wherever it points.
    pub fn at_end(name: ThreadName) -> Self {
        Self { name, from: None }
    }
}

impl Commit {
    /// Iterates over the sessions that it publishes, the run's own first.
    pub(super) fn drafts(&self) -> impl Iterator<Item = &BundleDraft> {
        iter::once(&self.draft).chain(&self.children)
    }
}

/// The sessions that a commit published.
#[derive(Debug, Clone, PartialEq)]
pub struct Committed {
    /// The run's own session.
    pub session: Bundle,
    /// The sessions of its subagents, in the order of [`Commit::children`].
    pub children: Vec<Bundle>,
}

/// The policy if another run has continued the same base.
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
    /// The position, which identifies the segment.
    pub position: BranchPosition,
    /// The index of its first message in the whole history.
    pub first_index: u64,
    /// The number of its messages.
    pub message_count: u64,
    /// The bytes of the messages as JSON.
    pub bytes: u64,
}

impl SegmentSize {
    /// Returns the index after its last message.
    pub fn end(&self) -> u64 {
        self.first_index + self.message_count
    }
}

/// The findings of a verification.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
pub struct VerifyReport {
    /// The number of sessions checked: the session and its ancestors.
    pub sessions: u64,
    /// The number of removed ancestors. Only their messages are checked.
    pub removed: u64,
    /// The number of messages checked.
    pub messages: u64,
    /// Every part that is lost, or differs from its hash or its line; empty if there is none.
    pub faults: Vec<VerifyFault>,
}

/// A part that is lost, or differs from its hash or its line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct VerifyFault {
    /// The session.
    pub session_id: SessionId,
    /// `environment_state`, `context_state`, `message_history_state`, `root_hash`,
    /// `root_session_id` or `workspace`.
    pub part: &'static str,
    /// A description of the fault.
    pub detail: String,
}
