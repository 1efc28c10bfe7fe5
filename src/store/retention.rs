//! Retention as a trait: what is removed, and when. Nothing is removed that a retained session
//! needs.
//!
//! A removed session leaves its segment and a tombstone as long as the line of a retained session
//! passes through it. By them the line is walked and verified. Everything else is removed at once:
//! its run with steps, events and messages, its subagents' sessions, and the states that no other
//! session has.

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use utoipa::ToSchema;

use super::error::StoreError;
use crate::clock::Timestamp;
use crate::ids::SessionId;
use crate::session::{BranchPosition, Hash, SessionHead};
use crate::tenant::TenantId;

/// What is retained, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionRules {
    /// The age from which sessions, and the records of runs without one, are removed; none retains
    /// them for ever.
    pub max_age: Option<Duration>,
    /// No session younger than this is removed, by any rule.
    pub min_age: Duration,
    /// The number of sessions to retain of those that have moved a thread: the newest, at any age.
    /// None leaves threads to `max_age`.
    pub keep_last: Option<u32>,
    /// How long the events of a run and the messages to it are retained after its end.
    pub events: Duration,
    /// How long deliveries of webhooks are retained after their end.
    pub deliveries: Duration,
}

/// How much was removed, or would be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RemovalFigures {
    /// Sessions.
    pub sessions: u64,
    /// Segments of histories.
    pub segments: u64,
    /// Environments and contexts.
    pub states: u64,
    /// Records of runs.
    pub runs: u64,
    /// Stored pieces of event streams, of several events each.
    pub events: u64,
    /// Messages that were sent to runs.
    pub messages: u64,
    /// Deliveries of webhooks.
    pub deliveries: u64,
    /// Idempotency keys.
    pub idempotency_keys: u64,
    /// The payloads of all of these, as stored.
    pub bytes: u64,
}

/// A session of a line.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
pub enum Ancestor {
    /// One with a retained part.
    Retained(SessionHead),
    /// One that was removed.
    Removed(RemovedSession),
}

/// What is left of a session that was removed while others continue it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct RemovedSession {
    /// Names the session.
    pub session_id: SessionId,
    /// The session that it continued.
    pub parent_session_id: Option<SessionId>,
    /// The number of ancestors.
    pub depth: u64,
    /// The number of messages in its whole history.
    pub message_count: u64,
    /// The index from which its history was needed to run.
    #[serde(skip)]
    pub history_start: u64,
    /// Its root hash, which those of its children cover.
    pub root_hash: Hash,
    /// Covers the messages that it added, which are retained.
    #[serde(skip)]
    pub segment_hash: Hash,
    /// Where these messages are stored.
    #[serde(skip)]
    pub position: BranchPosition,
    /// When it was removed.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    pub removed_at: Timestamp,
}

/// The cursor of a sweep; the default is its beginning.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum SweepCursor {
    /// Nothing is done.
    #[default]
    Start,
    /// Sessions that are too old are checked up to this one.
    Aged(Timestamp, SessionId),
    /// Threads are checked up to this one; none yet.
    Threads(Option<(String, String)>),
    /// What removed sessions have left is reclaimed.
    Reclaiming,
    /// All else that is too old, the kind of this number.
    Remains(usize),
}

/// The result of removing a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionRemoval {
    /// It was removed.
    Removed(RemovalFigures),
    /// There is no such session.
    NotFound,
    /// Other sessions continue it.
    HasDescendants,
    /// A thread points to it, a run in the queue begins from it, or a commit in flight continues
    /// it; or this is so of a session that would be removed with it.
    InUse,
}

/// Removes what is not to be retained. Skips what a commit in flight needs.
#[async_trait]
pub trait RetentionStore: Send + Sync + fmt::Debug {
    /// Counts what a whole sweep would remove now.
    async fn retention_plan(&self, rules: RetentionRules, now: Timestamp) -> Result<RemovalFigures, StoreError>;

    /// Makes one step of a sweep, which checks about `limit` rows. Returns what it removed, and the
    /// cursor of the next step, if there is one. Any number of processes may sweep at once.
    async fn retention_step(
        &self,
        rules: RetentionRules,
        now: Timestamp,
        cursor: &SweepCursor,
        limit: u32,
    ) -> Result<(RemovalFigures, Option<SweepCursor>), StoreError>;

    /// Removes a session of any age with its subagents' sessions and, if wanted, its descendants.
    /// Many are removed in several transactions, the latest first, so an interruption leaves no
    /// session without what it needs.
    async fn session_remove(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
        descendants: bool,
        now: Timestamp,
    ) -> Result<SessionRemoval, StoreError>;

    /// Removes rows of a tenant from all tables, up to `limit` of each; returns how many. None is
    /// left when it returns 0.
    async fn tenant_remove(&self, tenant: &TenantId, limit: u32) -> Result<u64, StoreError>;
}

impl Ancestor {
    /// Returns the session's id.
    pub fn session_id(&self) -> SessionId {
        match self {
            Self::Retained(head) => head.session_id,
            Self::Removed(removed) => removed.session_id,
        }
    }

    /// Returns the session that it continues.
    pub fn parent_session_id(&self) -> Option<SessionId> {
        match self {
            Self::Retained(head) => head.parent_session_id,
            Self::Removed(removed) => removed.parent_session_id,
        }
    }

    /// Returns the number of its ancestors.
    pub fn depth(&self) -> u64 {
        match self {
            Self::Retained(head) => head.depth,
            Self::Removed(removed) => removed.depth,
        }
    }
}

impl AddAssign for RemovalFigures {
    fn add_assign(&mut self, other: Self) {
        self.sessions += other.sessions;
        self.segments += other.segments;
        self.states += other.states;
        self.runs += other.runs;
        self.events += other.events;
        self.messages += other.messages;
        self.deliveries += other.deliveries;
        self.idempotency_keys += other.idempotency_keys;
        self.bytes += other.bytes;
    }
}
