//! The work of one execution: the parts of its loop, and its limits.
//!
//! The run's own agent and each subagent have one. `execute/agent_loop.rs` creates the loops of all
//! of them.

mod children;
mod journal;
mod served_tools;

mod live;
mod outcome;

mod failure;
mod span;

pub(super) use self::children::{Children, SubagentSession};
pub(super) use self::failure::{Failure, execution_error};
pub(super) use self::journal::{RunJournal, read_journal};
pub(super) use self::live::LiveEvents;
pub(super) use self::outcome::{Executed, Outcome, Spent};
pub(super) use self::served_tools::ServedTools;
pub(super) use self::span::{record_origin, run_span, run_trace};

use std::sync::Arc;

use crate::run::context::{ExecutionSlot, RunContext};
use crate::run::plan::{Member, Team};
use crate::spans::RunTrace;
use agent::answers::{ApprovalRule, ClientTool};
use agent::compilers::Traces;
use agent::definition::{AgentDefinition, HookConfig};
use agent::journal::{JournalEntry, Journals, Recorder};
use agent::state::AgentState;
use agent::{AgentLoop, CallSeed, EventSink, ExecutionControl, FormatCache, Inbox};
use values::ids::SessionId;
use values::tenant::TenantId;
use workspace::environment::Environment;

/// Creates the loop of an execution. The tools of a loop create the loops of subagents with it.
pub(super) type MakeLoop = fn(&Arc<RunContext>, &Arc<Work>) -> Result<AgentLoop, Failure>;

/// The work of an execution.
#[derive(Debug)]
pub(super) struct Work {
    /// The tenant of the run.
    pub(super) tenant: TenantId,
    /// The agent, with its models.
    pub(super) member: Arc<Member>,
    /// The names of its tools.
    pub(super) tools: Vec<String>,
    /// The tools that the caller executes; none for a subagent.
    pub(super) client_tools: Arc<[ClientTool]>,
    /// The traces of earlier executions that go to the model.
    pub(super) traces: Traces,
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
    /// Receives the spans of the run, if it is recorded.
    pub(super) trace: Option<Arc<RunTrace>>,
    /// Receives the events of subagents, if the caller requested them.
    pub(super) relay: Option<Arc<dyn EventSink>>,
    /// How many levels it is below the run's own agent.
    pub(super) depth: u32,
    /// The variables, the resources and the files.
    pub(super) environment: Arc<Environment>,
    /// The agents that may be its subagents.
    pub(super) team: Arc<Team>,
    /// The slot among the active agents.
    pub(super) slot: ExecutionSlot,
    /// The sessions of its subagents.
    pub(super) children: Children,
    /// Compiles the response formats.
    pub(super) formats: Arc<FormatCache>,
    /// The seed from which the keys of its tool calls are derived.
    pub(super) call_seed: CallSeed,
    /// The journal, if the execution is recorded.
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

/// Returns the rules of the ancestors and of an agent.
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
