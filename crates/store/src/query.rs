//! The filters and pages of lists. All lists page by key, newest first.

use agent::record::{RunStatus, ThreadName};
use values::clock::Timestamp;
use values::ids::SessionId;
use values::json::Object;
use values::model_ref::ModelRef;

/// A page of a list that is ordered by key, newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page<K> {
    /// Only rows with an older key.
    pub before: Option<K>,
    /// The most rows.
    pub limit: u32,
}

/// A page of the list of agents, ordered by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPage {
    /// Only names after this one.
    pub after: Option<String>,
    /// The most rows.
    pub limit: u32,
    /// The page ends with the definition at which the sum of the sizes as JSON reaches this number
    /// of bytes.
    pub bytes: usize,
}

/// A range of times; an absent end is open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// The first instant inside.
    pub from: Option<Timestamp>,
    /// The first instant after.
    pub until: Option<Timestamp>,
}

/// Which sessions a list shows.
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
    /// Only of subagents that the agent of this session started.
    pub subagent_of: Option<SessionId>,
    /// Only sessions that runs on this thread published.
    pub thread: Option<ThreadName>,
    /// Only sessions that nothing continues.
    pub tips_only: bool,
}

/// Which runs a list shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunFilter {
    /// Only of this status.
    pub status: Option<RunStatus>,
    /// Only of this agent.
    pub agent: Option<String>,
    /// Only runs whose preferred model is this one.
    pub model: Option<ModelRef>,
    /// Only with all of these key-value pairs at the top of their metadata.
    pub metadata: Object,
    /// Only from this base.
    pub base_session_id: Option<SessionId>,
    /// Only on this thread.
    pub thread: Option<ThreadName>,
    /// Only made in this range.
    pub created: TimeRange,
}
