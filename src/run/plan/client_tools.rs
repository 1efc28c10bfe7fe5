//! The client tools of a run: those of its agent that the session may use, and the request's.

use std::sync::Arc;

use crate::run::refusal::Refusal;
use crate::run::request::RunRequest;
use agent::answers::{ClientTool, ClientToolFault};
use agent::definition::{AgentDefinition, SubagentConfig};
use tasks::off_thread::off_thread;
use values::json::json_length;
use values::session::{Bundle, Overrides};
use values::tenant::TenantId;

/// The most bytes of the client tools of a request, as JSON.
const MAX_BYTES: usize = 256 << 10;

/// Returns the client tools of the request, or else those of the request whose calls it answers.
pub(in crate::run) async fn requested_tools(
    tenant: &TenantId,
    base: Option<&Arc<Bundle>>,
    agent: &AgentDefinition,
    request: &RunRequest,
) -> Result<Vec<ClientTool>, Refusal> {
    let subagents = agent.subagents.iter().map(SubagentConfig::tool_name);
    let own: Vec<String> = agent.tool_names().into_iter().chain(subagents).collect();
    let Some(tools) = request.client_tools.clone() else {
        return Ok(tools_of_open_step(base, &own));
    };
    if tools.is_empty() {
        return Ok(tools);
    }
    let checked = off_thread(tenant, move || check(&tools, &own).map(|()| tools));
    checked.await.map_err(|ClientToolFault { at, message }| match at {
        Some((index, field)) => Refusal::invalid(format!("client_tools.{index}.{field}"), message),
        None => Refusal::invalid("client_tools", message),
    })
}

fn check(tools: &[ClientTool], own: &[String]) -> Result<(), ClientToolFault> {
    if json_length(tools) > MAX_BYTES {
        let message = format!("at most {MAX_BYTES} bytes are allowed");
        return Err(ClientToolFault { at: None, message });
    }
    ClientTool::check_all(tools, own)
}

/// Returns the tools that the request before this one had. The agent may have got a tool of the
/// same name since then, which takes precedence.
fn tools_of_open_step(base: Option<&Arc<Bundle>>, own: &[String]) -> Vec<ClientTool> {
    let waiting = base.and_then(|base| base.waiting());
    let stored = waiting.into_iter().flat_map(|waiting| &waiting.client_tools);
    let tools = stored.filter_map(|tool| serde_json::from_value::<ClientTool>(tool.clone()).ok());
    tools.filter(|tool| !own.contains(&tool.name)).collect()
}

/// Returns the names of the service's tools that the agent has in a session, and all tools that the
/// caller executes.
pub(in crate::run) fn tools_of(
    agent: &AgentDefinition,
    overrides: Option<&Overrides>,
    requested: &[ClientTool],
) -> (Vec<String>, Arc<[ClientTool]>) {
    let all = agent.tool_names();
    let names = overrides.map_or_else(|| all.clone(), |overrides| overrides.tools_of(&all));
    let tools = agent.tools.iter().filter(|tool| names.contains(tool));
    let client_tools = agent.client_tools.iter().filter(|tool| names.contains(&tool.name));
    let client_tools = client_tools.chain(requested).cloned();
    (tools.cloned().collect(), client_tools.collect())
}
