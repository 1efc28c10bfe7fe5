//! The work of one execution: the parts of its loop, and its limits.
//!
//! The run's own agent and each subagent have one. `AgentLoops` creates the loops of all of them.

use std::fmt;
use std::sync::Arc;

use super::failure::Failure;
use super::served_tools::ServedTools;
use super::subagents::{Children, Slot, Team};
use agent::drivers::ModelChain;
use agent::state::AgentState;
use agent::{
    AgentDefinition, AgentLoop, ApprovalRule, CallSeed, ClientTool, EventSink, ExecutionControl, FormatCache,
    HookConfig, Inbox, JournalEntry, Journals, Recorder,
};
use values::ids::SessionId;
use values::session::Hash;
use values::tenant::TenantId;
use workspace::environment::Environment;

/// Creates the loops of executions. The loop of an agent uses the same factory for its subagents.
pub(super) trait LoopFactory: fmt::Debug + Send + Sync {
    /// Creates the loop of an execution.
    fn agent_loop(self: Arc<Self>, work: &Arc<Work>) -> Result<AgentLoop, Failure>;
}

/// The work of an execution.
#[derive(Debug)]
pub(super) struct Work {
    /// The tenant of the run.
    pub(super) tenant: TenantId,
    /// The definition of the agent.
    pub(super) agent: Arc<AgentDefinition>,
    /// The version of the definition.
    pub(super) agent_version: Hash,
    /// The models that it uses.
    pub(super) models: ModelChain,
    /// The names of its tools.
    pub(super) tools: Vec<String>,
    /// The tools that the caller executes; none for a subagent.
    pub(super) client_tools: Arc<[ClientTool]>,
    /// The tools of MCP servers.
    pub(super) served: ServedTools,
    /// The rules about approvals of its ancestors, and its own.
    pub(super) approvals: Vec<Arc<[ApprovalRule]>>,
    /// The hooks of its ancestors, and its own.
    pub(super) hooks: Vec<HookConfig>,
    /// The session that it will publish.
    pub(super) session_id: SessionId,
    /// How many levels of subagents may be below it.
    pub(super) depth_left: u32,
    /// The most steps of this execution, and of each subagent.
    pub(super) step_ceiling: Option<u32>,
    /// Limits and stops the execution.
    pub(super) control: Arc<ExecutionControl>,
    /// Receives all events.
    pub(super) events: Arc<dyn EventSink>,
    /// Receives the events of subagents, if the caller requested them.
    pub(super) relay: Option<Arc<dyn EventSink>>,
    /// How many levels it is below the run's own agent.
    pub(super) depth: u32,
    /// The variables, the resources and the files.
    pub(super) environment: Arc<Environment>,
    /// The agents that may be its subagents.
    pub(super) team: Arc<Team>,
    /// Its slot among the active agents.
    pub(super) slot: Slot,
    /// The sessions of its subagents.
    pub(super) children: Children,
    /// Compiles the response formats.
    pub(super) formats: Arc<FormatCache>,
    /// The seed from which the keys of its tool calls are derived.
    pub(super) call_seed: CallSeed,
    /// Its journal, if it is recorded.
    pub(super) journal: Option<WorkJournal>,
    /// Messages that arrive while it is active, if it accepts any.
    pub(super) inbox: Option<Arc<dyn Inbox>>,
}

/// The journal of an execution.
#[derive(Debug)]
pub(super) struct WorkJournal {
    /// Records the execution.
    pub(super) recorder: Arc<Recorder>,
    /// The journals of the run, for its subagents.
    pub(super) journals: Arc<dyn Journals>,
}

/// Returns the rules of the ancestors and those of an agent.
pub(super) fn with_own_approvals(above: &[Arc<[ApprovalRule]>], agent: &AgentDefinition) -> Vec<Arc<[ApprovalRule]>> {
    let own = (!agent.approvals.is_empty()).then(|| agent.approvals.as_slice().into());
    above.iter().cloned().chain(own).collect()
}

impl WorkJournal {
    /// Returns the journal of a subagent: in a separate scope, starting after the state `begun`.
    pub(super) fn for_subagent(
        &self,
        scope: &str,
        begun: AgentState,
        environment: &Arc<Environment>,
        first: Option<JournalEntry>,
    ) -> Self {
        let environment = Arc::clone(environment);
        let recorder = self
            .recorder
            .for_subagent(self.journals.scope(scope), begun, environment);
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
