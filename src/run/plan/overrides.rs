//! Checks the changes that a request makes to its session's overrides of the agent's definition.

use crate::run::refusal::Refusal;
use agent::answers::ClientTool;
use agent::definition::AgentDefinition;
use agent::ports::ToolServers;
use agent::prompt::check_prompt;
use tasks::off_thread::off_thread;
use values::session::{OverrideChanges, Overrides};
use values::tenant::TenantId;

/// Checks changes, and the overrides of a run that they lead to. A request can remove tools of the
/// agent but not add any, since the agent's author chooses the tools. `requested` are the client
/// tools of the request.
pub(in crate::run) async fn check_overrides(
    tenant: &TenantId,
    agent: &AgentDefinition,
    servers: &dyn ToolServers,
    changes: &OverrideChanges,
    overrides: Option<&Overrides>,
    requested: &[ClientTool],
) -> Result<(), Refusal> {
    let own = agent.tool_names();
    let unknown = changes.tools.value().and_then(|tools| {
        tools
            .iter()
            .find(|tool| !own.contains(tool) && !servers.may_serve(&agent.mcp, tool))
    });
    if let Some(unknown) = unknown {
        // The message does not list the agent's tools, since the operator decides whether callers
        // may know them.
        let message = format!("the agent {:?} has no tool {unknown:?}", agent.name);
        return Err(Refusal::invalid("tools", message));
    }
    if let Some(prompt) = changes.system_prompt.value().cloned() {
        off_thread(tenant, move || check_prompt(&prompt)).await?;
    }
    let nothing = Overrides::default();
    let set = overrides.unwrap_or(&nothing);
    let checked = set.check();
    checked.map_err(|(field, message)| Refusal::invalid(field, message))?;
    check_choice(agent, set, requested).map_err(|message| {
        // Names the field at fault: the choice if the request has one, or else the tools.
        let is_chosen = changes.parameters.value().is_some_and(|set| set.tool_choice.is_some());
        Refusal::invalid(if is_chosen { "parameters.tool_choice" } else { "tools" }, message)
    })
}

/// Checks the tool choice that a run leaves to its session, whose next run does not have the client
/// tools of the request.
pub(in crate::run) fn check_left_choice(agent: &AgentDefinition, left: Option<&Overrides>) -> Result<(), Refusal> {
    let Some(left) = left else { return Ok(()) };
    check_choice(agent, left, &[]).map_err(|message| {
        let message = format!("for the runs that follow, {message}: name `parameters` in `for_this_run`");
        Refusal::invalid("parameters.tool_choice", message)
    })
}

fn check_choice(agent: &AgentDefinition, set: &Overrides, requested: &[ClientTool]) -> Result<(), String> {
    let mut tools = set.tools_of(&agent.tool_names());
    tools.extend(requested.iter().map(|tool| tool.name.clone()));
    agent.check_tool_choice_of(&set.parameters.over(&agent.parameters), &tools)
}
