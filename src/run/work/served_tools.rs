//! The tools of MCP servers in an execution.
//!
//! The tools are found once, when the run begins, so that the tools of a request do not change
//! during the run. Subagents get theirs from their parent agent.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::run::plan::RunPlan;
use agent::definition::{AgentDefinition, SubagentConfig};
use agent::ports::{OfferedTools, ServedTool, Tool, ToolServers};
use agent::{AgentEvent, EventSink};
use values::session::{PinnedTool, ToolPins};

/// The tools of servers that an execution has.
#[derive(Debug, Clone, Default)]
pub(in crate::run) struct ServedTools {
    tools: Vec<ServedTool>,
    /// The tools whose definition has changed and whose calls need an approval.
    changed: Arc<BTreeMap<String, PinnedTool>>,
    /// The definitions that the session has accepted.
    pins: ToolPins,
}

impl ServedTools {
    /// Finds the tools of the servers that the agent lists, and emits a warning about each server
    /// with unusable tools. `pins` are the definitions that the session has accepted.
    pub(in crate::run) async fn find(
        servers: &dyn ToolServers,
        plan: &RunPlan,
        pins: ToolPins,
        cancellation: &CancellationToken,
        events: &dyn EventSink,
    ) -> Self {
        let names = &plan.lead.agent.mcp;
        let none = |pins| Self {
            pins,
            ..Self::default()
        };
        if names.is_empty() {
            return none(pins);
        }
        let offered = tokio::select! {
            biased;
            () = cancellation.cancelled() => return none(pins),
            offered = servers.offered(&plan.tenant, names, &pins) => offered,
        };
        let OfferedTools {
            mut tools,
            pins,
            changed,
            left_out,
        } = offered;
        for (server, problems) in left_out {
            events.emit(AgentEvent::ServerWarned { server, problems });
        }
        let overrides = plan.settings.overrides.as_ref();
        let chosen = overrides.and_then(|overrides| overrides.tools.as_ref());
        tools.retain(|served| chosen.is_none_or(|chosen| chosen.contains(&served.tool.spec().name)));
        Self {
            tools,
            changed: Arc::new(changed),
            pins,
        }
    }

    /// Returns the tools of a subagent: tools of servers that both agents list. If the parent agent
    /// chooses the tools of the subagent, only the chosen ones.
    pub(in crate::run) fn of_subagent(&self, subagent: &SubagentConfig, agent: &AgentDefinition) -> Self {
        let is_listed = |served: &&ServedTool| agent.mcp.iter().any(|server| **server == *served.server);
        let is_chosen = |served: &&ServedTool| {
            let chosen = subagent.tools.as_ref();
            chosen.is_none_or(|chosen| chosen.contains(&served.tool.spec().name))
        };
        let tools = self.tools.iter().filter(is_listed).filter(is_chosen);
        Self {
            tools: tools.cloned().collect(),
            changed: Arc::clone(&self.changed),
            pins: self.pins.clone(),
        }
    }

    /// Returns the tools whose names are not taken by other tools of the agent.
    pub(in crate::run) fn without(&self, taken: &BTreeSet<String>) -> Vec<Arc<dyn Tool>> {
        let (left_out, tools): (Vec<_>, Vec<_>) = self
            .tools
            .iter()
            .partition(|served| taken.contains(&served.tool.spec().name));
        for ServedTool { server, tool } in left_out {
            let tool = &tool.spec().name;
            tracing::warn!(%server, tool, "a tool of an MCP server is left out, since another tool has its name");
        }
        tools.into_iter().map(|served| Arc::clone(&served.tool)).collect()
    }

    /// Returns the tools whose definition has changed, by name. Leaves out taken names, which other
    /// tools of the agent have.
    pub(in crate::run) fn changed(&self, taken: &BTreeSet<String>) -> BTreeMap<String, PinnedTool> {
        let changed = self.changed.iter().filter(|(name, _)| !taken.contains(*name));
        changed.map(|(name, tool)| (name.clone(), tool.clone())).collect()
    }

    /// Returns the definitions that the session has accepted, and the new ones.
    pub(in crate::run) fn pins(&self) -> &ToolPins {
        &self.pins
    }
}
