//! Threads as a trait: named pointers to sessions. Runs move them in the transaction of their
//! commit.

use std::fmt;

use async_trait::async_trait;
use uuid::Uuid;

use super::error::StoreError;
use super::query::TimeRange;
use super::queue::{IdempotencyKey, KnownRequest};
use agent::record::{ThreadName, ThreadRecord};
use values::clock::Timestamp;
use values::ids::{RunId, SessionId};
use values::json::Object;
use values::session::Setting;
use values::tenant::TenantId;

/// The title and the metadata of a new thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadDetails {
    /// The title.
    pub title: Option<String>,
    /// The key-value pairs.
    pub metadata: Object,
}

/// Changes to the title and the metadata of a thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadPatch {
    /// The change of the title.
    pub title: Setting<String>,
    /// The change of the metadata, if there is one.
    pub metadata: Option<MetadataChange>,
}

/// A change of the metadata of a thread.
#[derive(Debug, Clone, PartialEq)]
pub enum MetadataChange {
    /// Sets these pairs. Null removes a pair; the other pairs stay.
    Merge(Object),
    /// Replaces all pairs.
    Replace(Object),
}

/// The threads that a list shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadFilter {
    /// Only those that point to a session of this agent.
    pub agent: Option<String>,
    /// Only with all of these key-value pairs at the top of their metadata.
    pub metadata: Object,
    /// Only created in this range.
    pub created: TimeRange,
    /// Only last moved or changed in this range.
    pub updated: TimeRange,
}

/// A page of the list of threads, ordered by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadPage {
    /// Only names after this one.
    pub after: Option<ThreadName>,
    /// The most rows.
    pub limit: u32,
}

/// The start of a run on a thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadStart {
    /// The session that the thread points to; none before its first commit.
    pub session_id: Option<SessionId>,
    /// The agent of the last waiting or running run that moves the thread. Cancelled runs do not
    /// count.
    pub agent_ahead: Option<String>,
}

/// The condition under which a caller moves a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadExpectation {
    /// No condition; creates the thread if it does not exist.
    Anything,
    /// The thread must not exist.
    Absent,
    /// The thread must point to this session; with `None`, to no session yet.
    At(Option<SessionId>),
}

/// A thread to create.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadDraft {
    /// The name.
    pub name: ThreadName,
    /// The title and the metadata.
    pub details: ThreadDetails,
    /// The session that the thread points to; `None` for none yet.
    pub session_id: Option<SessionId>,
    /// When it is created.
    pub created_at: Timestamp,
}

/// The result of creating a thread.
#[derive(Debug, Clone, PartialEq)]
pub enum ThreadCreate {
    /// The thread is new.
    Created(ThreadRecord),
    /// A thread with this name exists.
    Exists,
    /// There is no such session.
    NoSession(SessionId),
    /// An earlier request has used the key.
    Known(KnownRequest),
}

/// The result of changing the title and the metadata of a thread.
#[derive(Debug, Clone, PartialEq)]
pub enum ThreadPatched {
    /// The thread has them now.
    Changed(ThreadRecord),
    /// There is no such thread.
    Absent,
    /// The metadata would be larger than allowed. Contains what is allowed.
    TooLarge(String),
}

/// The result of moving a thread.
#[derive(Debug, Clone, PartialEq)]
pub enum ThreadPut {
    /// The thread points to the session now.
    Moved(ThreadRecord),
    /// The thread does not meet the condition. Contains the thread, if it exists.
    Unexpected(Option<ThreadRecord>),
    /// There is no such session.
    NoSession,
    /// This run is active on the thread. Only the end of a run may move it now.
    Busy(RunId),
}

/// The result of deleting a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadDelete {
    /// The thread is gone. Its sessions stay.
    Deleted,
    /// There was none.
    Absent,
    /// This run is active on the thread, and will move it.
    Busy(RunId),
}

/// Stores threads.
#[async_trait]
pub trait ThreadStore: Send + Sync + fmt::Debug {
    /// Creates a thread. Claims the key for an id only if it does.
    async fn thread_create(
        &self,
        tenant: &TenantId,
        draft: &ThreadDraft,
        claim: Option<(&IdempotencyKey, Uuid)>,
    ) -> Result<ThreadCreate, StoreError>;

    /// Points a thread to a session, unless a run is active on the thread. So no move gets lost
    /// between the beginning and the end of a run.
    async fn thread_put(
        &self,
        tenant: &TenantId,
        name: &ThreadName,
        session_id: SessionId,
        expected: ThreadExpectation,
        now: Timestamp,
    ) -> Result<ThreadPut, StoreError>;

    /// Reads a thread.
    async fn thread_lookup(&self, tenant: &TenantId, name: &ThreadName) -> Result<Option<ThreadRecord>, StoreError>;

    /// Changes the title and the metadata of a thread, also while a run is active on it. Changes at
    /// the same time are made one after the other.
    async fn thread_patch(
        &self,
        tenant: &TenantId,
        name: &ThreadName,
        patch: &ThreadPatch,
        now: Timestamp,
    ) -> Result<ThreadPatched, StoreError>;

    /// Finds where a run on a thread begins. The thread need not exist.
    async fn thread_start(&self, tenant: &TenantId, name: &ThreadName) -> Result<ThreadStart, StoreError>;

    /// Lists threads by name.
    async fn thread_list(
        &self,
        tenant: &TenantId,
        filter: &ThreadFilter,
        page: &ThreadPage,
    ) -> Result<Vec<ThreadRecord>, StoreError>;

    /// Deletes a thread, unless a run is active on it.
    async fn thread_delete(&self, tenant: &TenantId, name: &ThreadName) -> Result<ThreadDelete, StoreError>;
}
