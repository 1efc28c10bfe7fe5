//! Retention as a trait: what is removed and when. Nothing that a retained session needs is ever
//! removed.
//!
//! A removed session leaves two things as long as a retained session descends from it. Its segment
//! stays, since the descendant's history contains it. A row in `removed_sessions` stays, so that
//! lineage and verification can walk through it. Everything else is removed at once: its run with
//! steps, events and messages, its subagents' sessions, and the states that no other session has.

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use super::traits::StoreFuture;
use crate::clock::Timestamp;
use crate::ids::SessionId;
use crate::session::{BranchPosition, Hash, SessionHead};
use crate::tenant::TenantId;

/// What is kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetentionRules {
    /// The age from which sessions and the records of runs without one are removed; none keeps them for ever.
    pub max_age: Option<Duration>,
    /// No session younger than this is removed, whatever the other rules say.
    pub min_age: Duration,
    /// So many newest of the sessions that have moved a thread are kept, whatever their age, and no others of those; none leaves threads to
    /// `max_age`.
    pub keep_last: Option<u32>,
    /// How long the events of a run and the messages to it are kept after its end.
    pub events: Duration,
    /// How long deliveries of webhooks that are over are kept.
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

/// A session or what is left of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Ancestor {
    /// It is kept.
    Kept(SessionHead),
    /// It was removed, and kept sessions continue it.
    Removed(RemovedSession),
}

/// What is left of a session that was removed while others continue it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovedSession {
    /// Names the session.
    pub session_id: SessionId,
    /// The session that it continued.
    pub parent_session_id: Option<SessionId>,
    /// The number of its ancestors.
    pub depth: u64,
    /// The number of messages in its whole history.
    pub message_count: u64,
    /// The index from which its history was needed to run.
    pub history_start: u64,
    /// Its root hash, which those of its children cover.
    pub root_hash: Hash,
    /// Covers the messages that it added, which are kept.
    pub segment_hash: Hash,
    /// Where these messages are stored.
    pub position: BranchPosition,
    /// When it was removed.
    pub removed_at: Timestamp,
}

/// How far a sweep has come; the default is its beginning.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum SweepPlace {
    /// Nothing is done.
    #[default]
    Start,
    /// Sessions that are too old are looked through up to this one.
    Aged(Timestamp, SessionId),
    /// Threads are looked through up to this one; none yet.
    Threads(Option<(String, String)>),
    /// What removed sessions have left is reclaimed.
    Reclaiming,
    /// All else that is too old, the kind of this number.
    Remains(usize),
}

/// What became of a session that was to be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionRemoval {
    /// It is gone.
    Removed(RemovalFigures),
    /// There is no such session.
    NotFound,
    /// Other sessions continue it.
    HasDescendants,
    /// A thread points to it, a run in the queue begins from it, or a commit under way continues it; or one of those that would go with it.
    InUse,
}

/// Removes what is not to be kept. What a commit under way needs is passed over.
pub trait RetentionStore: Send + Sync + fmt::Debug {
    /// Counts what a whole sweep would remove now.
    fn retention_plan(&self, rules: RetentionRules, now: Timestamp) -> StoreFuture<'_, RemovalFigures>;

    /// Makes one step of a sweep, which looks at about `limit` things; returns what it removed and where the next one begins, if there
    /// is one. Any number of processes may sweep at once.
    fn retention_step<'a>(
        &'a self,
        rules: RetentionRules,
        now: Timestamp,
        place: &'a SweepPlace,
        limit: u32,
    ) -> StoreFuture<'a, (RemovalFigures, Option<SweepPlace>)>;

    /// Removes a session, whatever its age, with its subagents' sessions and, if wanted, all that continues it. Many go in several
    /// transactions, the latest first, so an interruption leaves no session without what it needs.
    fn session_remove<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: SessionId,
        descendants: bool,
        now: Timestamp,
    ) -> StoreFuture<'a, SessionRemoval>;

    /// Removes rows of a tenant, whatever they are, up to `limit` of each table; returns how many. None is left when it returns 0.
    fn tenant_remove<'a>(&'a self, tenant: &'a TenantId, limit: u32) -> StoreFuture<'a, u64>;
}

impl Ancestor {
    /// Returns the session's id.
    pub fn session_id(&self) -> SessionId {
        match self {
            Self::Kept(head) => head.session_id,
            Self::Removed(removed) => removed.session_id,
        }
    }

    /// Returns the session that it continues.
    pub fn parent_session_id(&self) -> Option<SessionId> {
        match self {
            Self::Kept(head) => head.parent_session_id,
            Self::Removed(removed) => removed.parent_session_id,
        }
    }

    /// Returns the number of its ancestors.
    pub fn depth(&self) -> u64 {
        match self {
            Self::Kept(head) => head.depth,
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
