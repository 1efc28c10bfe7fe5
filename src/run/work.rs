//! The work of one execution: what its loop is made of and what limits it.
//!
//! The run's own agent and each subagent have one. `AgentLoops` makes the loop of both.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::failure::Failure;
use super::subagents::{Children, Slot, Team};
use crate::agent::drivers::ModelChain;
use crate::agent::state::AgentState;
use crate::agent::{
    AgentDefinition, AgentLoop, CallSeed, EventSink, ExecutionControl, FormatCache, HookConfig, Inbox, JournalEntry,
    Journals, Recorder,
};
use crate::ids::SessionId;
use crate::json::Value;
use crate::session::Hash;
use crate::tenant::TenantId;

/// Makes the loops of executions. The loop of an agent makes those of the agents below it by the
/// same one.
pub(super) trait LoopFactory: fmt::Debug + Send + Sync {
    /// Makes the loop of an execution.
    fn agent_loop(self: Arc<Self>, work: &Arc<Work>) -> Result<AgentLoop, Failure>;
}

/// An execution that is to begin.
#[derive(Debug)]
pub(super) struct Work {
    /// Whose run it is part of.
    pub(super) tenant: TenantId,
    /// How the agent works.
    pub(super) agent: Arc<AgentDefinition>,
    /// The version of the definition.
    pub(super) agent_version: Hash,
    /// The models that it asks.
    pub(super) models: ModelChain,
    /// The names of the tools that it is given.
    pub(super) tools: Vec<String>,
    /// The hooks of the agents above it, and its own.
    pub(super) hooks: Vec<HookConfig>,
    /// The session that it makes.
    pub(super) session_id: SessionId,
    /// How many levels of agents may be below it.
    pub(super) depth_left: u32,
    /// The most steps of it, and of each agent below it.
    pub(super) step_ceiling: Option<u32>,
    /// Bounds it.
    pub(super) control: Arc<ExecutionControl>,
    /// Receives all events.
    pub(super) events: Arc<dyn EventSink>,
    /// Receives the events of the executions below, if the caller wants them.
    pub(super) relay: Option<Arc<dyn EventSink>>,
    /// How many levels it is below the run's own agent.
    pub(super) depth: u32,
    /// The environment's variables.
    pub(super) variables: Arc<BTreeMap<String, Value>>,
    /// The agents that may work below it.
    pub(super) team: Arc<Team>,
    /// Its slot among the agents at work.
    pub(super) slot: Slot,
    /// The sessions that agents below it have made.
    pub(super) children: Children,
    /// Makes the formats that answers are held to.
    pub(super) formats: Arc<FormatCache>,
    /// What the keys of its calls are derived from.
    pub(super) call_seed: CallSeed,
    /// Where it is recorded, if it is.
    pub(super) journal: Option<WorkJournal>,
    /// Messages that come while it is at work, where it takes any.
    pub(super) inbox: Option<Arc<dyn Inbox>>,
}

/// Where an execution is recorded.
#[derive(Debug)]
pub(super) struct WorkJournal {
    /// Records it.
    pub(super) recorder: Arc<Recorder>,
    /// The journals of the run, for the agents below it.
    pub(super) journals: Arc<dyn Journals>,
}

impl WorkJournal {
    /// Returns where an agent below is recorded: in a scope of its own, after the state that its
    /// entries amount to.
    pub(super) fn for_subagent(&self, scope: &str, begun: AgentState, first: Option<JournalEntry>) -> Self {
        let recorder = self.recorder.for_subagent(self.journals.scope(scope), begun);
        let recorder = match first {
            Some(first) => recorder.beginning_with(first),
            None => recorder,
        };
        Self {
            recorder: Arc::new(recorder),
            journals: Arc::clone(&self.journals),
        }
    }
}
