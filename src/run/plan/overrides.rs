//! Checks the changes that a request makes to its session's overrides of the agent's definition.

use std::sync::Arc;

use crate::run::refusal::Refusal;
use agent::definition::AgentDefinition;
use agent::ports::ToolServers;
use agent::prompt::check_prompt;
use tasks::off_thread::off_thread;
use values::session::{Bundle, OverrideChanges, Overrides};
use values::tenant::TenantId;

/// Returns the overrides of a run's session. A request can remove tools of the agent but not add
/// any, since the agent's author chooses the tools.
pub(in crate::run) async fn overrides_of(
    tenant: &TenantId,
    bundle: Option<&Arc<Bundle>>,
    agent: &AgentDefinition,
    servers: &dyn ToolServers,
    changes: &OverrideChanges,
) -> Result<Option<Arc<Overrides>>, Refusal> {
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
    let base = bundle.and_then(|bundle| bundle.context.overrides.clone());
    let overrides = if changes.is_empty() {
        base
    } else {
        let base = base.map(Arc::unwrap_or_clone).unwrap_or_default();
        changes.clone().onto(base).into_shared()
    };
    let nothing = Overrides::default();
    let set = overrides.as_deref().unwrap_or(&nothing);
    let checked = set.check();
    checked.map_err(|(field, message)| Refusal::invalid(field, message))?;
    let parameters = set.parameters.over(&agent.parameters);
    agent
        .check_tool_choice_of(&parameters, &set.tools_of(&own))
        .map_err(|message| {
            // Names the field at fault: the choice if the request has one, or else the tools.
            let is_chosen = changes.parameters.value().is_some_and(|set| set.tool_choice.is_some());
            Refusal::invalid(if is_chosen { "parameters.tool_choice" } else { "tools" }, message)
        })?;
    Ok(overrides)
}
