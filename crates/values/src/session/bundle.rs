//! The bundle: a session's three states, restored together and committed together.
//!
//! The three are `environment_state`, `context_state` and `message_history_state`. Values that
//! change with every turn are in the session's own row instead: metadata, execution count and time
//! of change. So a context with a long system prompt is written once, not with every turn. The row
//! also has the agent instance, so that conversations with the same agent share a context.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::context_state::{AgentInstance, ContextState, StoredContext};
use super::environment_state::EnvironmentState;
use super::hash::Hash;
use super::history::History;
use super::run_outcome::RunOutcome;
use super::waiting::WaitingStep;
use crate::clock::Timestamp;
use crate::ids::{BranchId, RunId, SessionId};
use crate::json::Object;
use crate::message::Message;

/// A committed session with all its states. Never changes, so it may be cached for ever.
#[derive(Debug, Clone, PartialEq)]
pub struct Bundle {
    /// The session without its states, as lists show it.
    pub head: SessionHead,
    /// Variables and resources.
    pub environment: Arc<EnvironmentState>,
    /// The agent's session data without metadata and counters, which are in the head.
    pub context: Arc<StoredContext>,
    /// The messages that a run of the session needs: at least those from
    /// [`SessionHead::history_start`] on.
    pub history: History,
}

/// A session without its states.
#[derive(Debug, Clone, PartialEq, Serialize, utoipa::ToSchema)]
#[schema(as = SessionSummary)]
pub struct SessionHead {
    /// Names the session.
    pub session_id: SessionId,
    /// The session that it continues.
    pub parent_session_id: Option<SessionId>,
    /// The root of its tree: itself, unless it continues another session. A tree keeps this id when
    /// the root is removed.
    pub root_session_id: SessionId,
    /// The session whose changes it took over; none unless it is a merge.
    pub merged_session_id: Option<SessionId>,
    /// Another session than its parent, with whose files, variables and resources it began.
    pub environment_session_id: Option<SessionId>,
    /// The run that published it; none for an imported session.
    pub run_id: Option<RunId>,
    /// How that run ended; none for a session that no run made.
    pub run_status: Option<RunOutcome>,
    /// The session of the agent that started this one; none unless it is a subagent's.
    pub subagent_of: Option<SessionId>,
    /// The thread of the run that published it, or that a change of files or messages moved to it.
    pub thread: Option<String>,
    /// The agent's name.
    pub agent: String,
    /// The version of the agent's definition that was in force.
    pub agent_version: Option<Hash>,
    /// The agent instance.
    #[serde(skip)]
    pub agent_instance: AgentInstance,
    /// The number of ancestors.
    pub depth: u64,
    /// The number of executions of the agent.
    pub execution_count: u64,
    /// The number of messages in the whole history.
    pub message_count: u64,
    /// The index from which the history is needed to run: the end of the messages that its newest
    /// summary covers.
    #[serde(skip)]
    pub history_start: u64,
    /// Covers all of the session and, through its parent's, the whole line.
    pub root_hash: Hash,
    /// Addresses the environment state.
    #[serde(skip)]
    pub environment_hash: Hash,
    /// Addresses the stored context.
    #[serde(skip)]
    pub context_hash: Hash,
    /// Covers the messages that this session added.
    #[serde(skip)]
    pub segment_hash: Hash,
    /// The key-value pairs of the context.
    pub metadata: Object,
    /// The first 160 characters of `title` in the metadata, if that is a text.
    pub title: Option<String>,
    /// The first 160 characters of the text in the user's newest message, as one line.
    pub preview: Option<String>,
    /// Whether its files differ from its parent's; without a parent, whether it has any.
    pub has_files_changed: bool,
    /// When the session was made.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    #[serde(serialize_with = "crate::clock::write_time")]
    pub created_at: Timestamp,
    /// Where its newest messages are stored.
    #[serde(skip)]
    pub position: BranchPosition,
}

/// A position in the stored history: a segment of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BranchPosition {
    /// The branch.
    pub branch_id: BranchId,
    /// The segment's number within the branch, from 0.
    pub position: u64,
}

impl Bundle {
    /// Returns the step that waits for answers, if the session waits.
    pub fn waiting(&self) -> Option<&Arc<WaitingStep>> {
        let waiting = self.context.waiting.as_ref();
        waiting.filter(|waiting| waiting.message_count == self.head.message_count)
    }

    /// Returns the context as callers see it.
    pub fn context_state(&self) -> ContextState {
        ContextState {
            stored: (*self.context).clone(),
            metadata: self.head.metadata.clone(),
            execution_count: self.head.execution_count,
            updated_at: self.head.created_at,
        }
    }
}

/// A bundle before its publication. It lacks only the hashes and the position, which the store
/// adds.
#[derive(Debug, Clone)]
#[must_use = "a draft is not visible until a store publishes it"]
pub struct BundleDraft {
    /// Names the new session.
    pub session_id: SessionId,
    /// The bundle that it continues.
    pub parent: Option<Arc<Bundle>>,
    /// The session whose changes it takes over; none unless it is a merge.
    pub merged_session_id: Option<SessionId>,
    /// Another session than its parent, with whose environment it begins.
    pub environment_session_id: Option<SessionId>,
    /// The run that publishes it.
    pub run_id: Option<RunId>,
    /// How the run ended, if another store published the session. A commit with the record of the
    /// run goes by the record.
    pub run_status: Option<RunOutcome>,
    /// The session of the agent that started this one, which the same commit publishes; none unless
    /// it is a subagent's.
    pub subagent_of: Option<SessionId>,
    /// The agent's name.
    pub agent: String,
    /// The version of the agent's definition that was in force.
    pub agent_version: Option<Hash>,
    /// Variables and resources.
    pub environment: Arc<EnvironmentState>,
    /// The agent's session data; its `updated_at` becomes the session's `created_at`.
    pub context: ContextState,
    /// The history. It continues the parent's, and may lack messages that a run of the parent does
    /// not need.
    pub history: History,
    /// Names the branch that is created if the parent is not the tip of its branch.
    pub new_branch_id: BranchId,
}

impl BundleDraft {
    /// Returns the number of ancestors.
    pub fn depth(&self) -> u64 {
        self.parent.as_ref().map_or(0, |parent| parent.head.depth + 1)
    }

    /// Returns the root of the tree that the session belongs to.
    pub fn root_session_id(&self) -> SessionId {
        let parent = self.parent.as_ref();
        parent.map_or(self.session_id, |parent| parent.head.root_session_id)
    }

    /// Returns whether its files differ from its parent's; without a parent, whether it has any.
    pub fn has_files_changed(&self) -> bool {
        let parent = self.parent.as_ref();
        parent.and_then(|parent| parent.environment.tree()) != self.environment.tree()
    }

    /// Returns the number of messages that the session inherits from its parent.
    pub fn inherited(&self) -> usize {
        self.parent.as_ref().map_or(0, |parent| parent.history.len())
    }

    /// Iterates over the messages that the session adds.
    pub fn new_messages(&self) -> impl DoubleEndedIterator<Item = &Arc<Message>> {
        self.history.iter_from(self.inherited())
    }
}
