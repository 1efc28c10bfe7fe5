//! Retention as a trait: the rules for removals, and the steps of a sweep. A retained session never
//! loses anything that it needs.
//!
//! A removed session leaves its segment and a tombstone as long as a retained session descends from
//! it. They are needed to walk and verify the line of sessions. Everything else is removed at once:
//! its run with steps, events and messages, its subagents' sessions, and the states that no other
//! session uses.

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::ToSchema;

use super::audit::Requester;
use super::error::StoreError;
use values::clock::Timestamp;
use values::ids::SessionId;
use values::session::{BranchPosition, Hash, SessionHead};
use values::settings::{duration, optional_integer};
use values::tenant::TenantId;

/// The longest age that can be named: a hundred years.
const MAX_AGE_MS: u64 = 3_155_760_000_000;
/// The shortest time for which unreferenced contents are retained: an hour. Runs write their files
/// before the session that refers to them.
const MIN_GRACE_MS: u64 = 3_600_000;

/// The rules of retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct RetentionRules {
    /// The age at which sessions, and records of runs without a session, are removed; `None`
    /// retains them for ever.
    #[serde(default, deserialize_with = "optional_age")]
    pub max_age: Option<Duration>,
    /// The age before which no rule removes a session.
    #[serde(deserialize_with = "duration::<0, MAX_AGE_MS, _>")]
    pub min_age: Duration,
    /// How many sessions of each thread to retain, at any age: the newest sessions that moved the
    /// thread. With `None`, only `max_age` applies.
    #[serde(default, deserialize_with = "optional_integer::<_, 1, 1_000_000, _>")]
    pub keep_last: Option<u32>,
    /// How long the events of a run and the messages to it are retained after its end.
    #[serde(deserialize_with = "duration::<0, MAX_AGE_MS, _>")]
    pub events: Duration,
    /// How long deliveries of webhooks are retained after their end.
    #[serde(deserialize_with = "duration::<0, MAX_AGE_MS, _>")]
    pub deliveries: Duration,
    /// How long contents to which no session and no journal refers are retained after a run wrote
    /// them. A run that takes longer may lose its files.
    #[serde(deserialize_with = "duration::<MIN_GRACE_MS, MAX_AGE_MS, _>")]
    pub unreferenced_contents: Duration,
}

fn optional_age<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration::<1, MAX_AGE_MS, D>(deserializer).map(Some)
}

/// The figures of a sweep or of a removal.
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
    /// Rows of stored events, with several events each.
    pub events: u64,
    /// Messages that were sent to runs.
    pub messages: u64,
    /// Deliveries of webhooks.
    pub deliveries: u64,
    /// Idempotency keys.
    pub idempotency_keys: u64,
    /// Commands for workers whose callers no longer wait.
    pub commands: u64,
    /// Sessions of the console.
    pub console_sessions: u64,
    /// Contents of workspaces.
    pub contents: u64,
    /// The stored bytes of their payloads.
    pub bytes: u64,
}

/// A session of a line, retained or removed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(untagged)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all ancestors are retained, so a box would only add an allocation"
)]
pub enum Ancestor {
    /// A retained session.
    Retained(SessionHead),
    /// The tombstone of a removed session.
    Removed(RemovedSession),
}

/// The tombstone of a removed session that other sessions continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
pub struct RemovedSession {
    /// The id of the session.
    pub session_id: SessionId,
    /// The session that it continued.
    pub parent_session_id: Option<SessionId>,
    /// The number of ancestors.
    pub depth: u64,
    /// The number of messages in its whole history.
    pub message_count: u64,
    /// The index of the first message that was needed to run it.
    #[serde(skip)]
    pub history_start: u64,
    /// Its root hash, which is part of its children's root hashes.
    pub root_hash: Hash,
    /// The hash of the messages that it added. These are retained.
    #[serde(skip)]
    pub segment_hash: Hash,
    /// Where these messages are stored.
    #[serde(skip)]
    pub position: BranchPosition,
    /// When it was removed.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    pub removed_at: Timestamp,
}

/// The cursor of a sweep; by default, its start.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum SweepCursor {
    /// The sweep has not started.
    #[default]
    Start,
    /// Contents of workspaces were swept up to this tenant.
    Contents(String),
    /// The sweep deletes objects that no content refers to.
    Objects,
    /// Sessions that are too old were checked up to this one of this tenant.
    Aged(String, SessionId),
    /// Threads were checked up to this one; `None` if no thread was checked yet.
    Threads(Option<(String, String)>),
    /// The sweep reclaims the segments and states that removed sessions left.
    Reclaiming,
    /// The sweep takes the runs whose open calls have expired out of the indexes of waiting runs.
    OpenCalls,
    /// The sweep removes other old rows, of the kind with this number.
    Remains(usize),
}

/// The result of removing a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionRemoval {
    /// The session was removed.
    Removed(RemovalFigures),
    /// There is no such session.
    NotFound,
    /// Other sessions continue it.
    HasDescendants,
    /// The session is in use, or another session that would be removed with it. A session is in use
    /// if a thread points to it, a queued run begins from it or a commit in flight continues it.
    InUse,
}

/// Removes the data that the rules do not retain. Skips data that a commit in flight needs.
#[async_trait]
pub trait RetentionStore: Send + Sync + fmt::Debug {
    /// Counts the data that a whole sweep would remove now.
    async fn retention_plan(&self, rules: RetentionRules, now: Timestamp) -> Result<RemovalFigures, StoreError>;

    /// Makes one step of a sweep, which checks about `limit` rows. Returns the counts of removed
    /// data, and the cursor of the next step, if there is one. Any number of processes may sweep at
    /// once.
    async fn retention_step(
        &self,
        rules: RetentionRules,
        now: Timestamp,
        cursor: &SweepCursor,
        limit: u32,
    ) -> Result<(RemovalFigures, Option<SweepCursor>), StoreError>;

    /// Removes a session of any age with its subagents' sessions and, if requested, its
    /// descendants. Removes many sessions in several transactions, the latest first. So after an
    /// interruption, each remaining session is still whole.
    async fn session_remove(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
        descendants: bool,
        by: &Requester,
    ) -> Result<SessionRemoval, StoreError>;

    /// Removes rows of a tenant from all tables, up to `limit` of each, and returns how many. The
    /// tenant has no rows left when it returns 0. With a requester, the first removed rows are
    /// recorded in the audit log as an act.
    async fn tenant_remove(&self, tenant: &TenantId, limit: u32, by: Option<&Requester>) -> Result<u64, StoreError>;
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
        self.commands += other.commands;
        self.console_sessions += other.console_sessions;
        self.contents += other.contents;
        self.bytes += other.bytes;
    }
}
