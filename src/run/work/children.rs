//! The sessions of subagents. The run's commit stores all or none of them.

use std::sync::Arc;

use parking_lot::Mutex;

use agent::state::AgentState;
use values::ids::SessionId;
use values::session::{EnvironmentState, Hash};

/// The session of a subagent that has ended.
#[derive(Debug)]
pub(in crate::run) struct SubagentSession {
    /// The id of the session.
    pub(in crate::run) session_id: SessionId,
    /// The session of the parent agent.
    pub(in crate::run) subagent_of: SessionId,
    /// The agent's name.
    pub(in crate::run) agent: String,
    /// The version of the definition.
    pub(in crate::run) agent_version: Hash,
    /// The state at the end.
    pub(in crate::run) state: AgentState,
    /// The environment at the end.
    pub(in crate::run) environment: Arc<EnvironmentState>,
}

/// Collects the sessions of an execution's subagents, which may run concurrently.
#[derive(Debug, Default)]
pub(in crate::run) struct Children(Mutex<Vec<SubagentSession>>);

impl Children {
    /// Adds the session of a subagent and the sessions of its own subagents.
    pub(in crate::run) fn add(&self, child: SubagentSession, below: &Self) {
        let below = below.take();
        let mut sessions = self.0.lock();
        sessions.push(child);
        sessions.extend(below);
    }

    /// Takes all sessions. Each comes before the sessions of its subagents.
    pub(in crate::run) fn take(&self) -> Vec<SubagentSession> {
        std::mem::take(&mut *self.0.lock())
    }
}
