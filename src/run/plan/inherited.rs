//! Settings that a run combines from its base, its agent and its request.
//!
//! The metadata of a request is merged into the session's context and lasts. So do its `variables`,
//! in the environment, and its `response_format`, unless the request sets them for this run only.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::run::refusal::Refusal;
use crate::run::request::RunRequest;
use agent::definition::{AgentDefinition, Durability};
use agent::ports::ToolExecutor;
use values::json::{Object, Value};
use values::model_ref::ResponseFormat;
use values::session::{Bundle, EnvironmentState, Overrides, Setting, check_metadata, check_variables};

/// Sets the variables of the request in the environment of a session: the session that the request
/// names, or else the base. The result must meet the same limits as the variables of a request.
pub(in crate::run) fn environment_of(
    session: Option<&Bundle>,
    variables: BTreeMap<String, Value>,
) -> Result<EnvironmentState, Refusal> {
    let environment = session.map(|session| (*session.environment).clone());
    let environment = environment.unwrap_or_default().with_variables(variables);
    check_variables(&environment.variables)
        .map_err(|message| Refusal::invalid("variables", format!("together with those of the session, {message}")))?;
    Ok(environment)
}

/// Returns the durability of the run. Checks only the tools of its own agent, since subagents have
/// some of these tools and no others.
pub(in crate::run) fn durability_of(
    request: &RunRequest,
    agent: &AgentDefinition,
    tools: &[String],
    executor: &dyn ToolExecutor,
) -> Durability {
    // Only a stored run can have a journal.
    if !request.publish {
        return Durability::Session;
    }
    let choice = request.durability.unwrap_or(agent.durability);
    // The tools of servers are not known yet.
    let has_unrepeatable = !agent.mcp.is_empty() || tools.iter().any(|tool| !executor.is_repeatable(tool));
    choice.resolve(request.asks_for_queue(), has_unrepeatable)
}

/// Returns the template of the system prompt. The overrides of the session take precedence, and
/// then the agent's own prompt. If the agent has no prompt, the session's earlier prompt stays,
/// unless the request resets it or the session has dropped its override of the prompt.
pub(in crate::run) fn system_prompt_of(
    bundle: Option<&Arc<Bundle>>,
    agent: &AgentDefinition,
    overrides: Option<&Overrides>,
    is_reset: bool,
) -> String {
    let of = |overrides: Option<&Overrides>| overrides.and_then(|overrides| overrides.system_prompt.clone());
    let was_set = |bundle: &&Arc<Bundle>| of(bundle.context.overrides.as_deref()).is_some();
    let earlier = bundle.filter(|bundle| !is_reset && agent.system_prompt.is_empty() && !was_set(bundle));
    of(overrides).unwrap_or_else(|| {
        let prompt = earlier.map_or(&agent.system_prompt, |bundle| &bundle.context.system_prompt);
        prompt.clone()
    })
}

/// Returns the response format of the request, or else of the agent, or else of the session. A
/// cleared one is the agent's.
pub(in crate::run) fn response_format_of(
    bundle: Option<&Arc<Bundle>>,
    agent: &AgentDefinition,
    asked: Setting<ResponseFormat>,
) -> ResponseFormat {
    let own = &agent.response_format;
    match (asked, bundle) {
        (Setting::Set(format), _) => format,
        (Setting::Kept, Some(bundle)) if own.is_text() => bundle.context.response_format.clone(),
        (Setting::Kept | Setting::Cleared, _) => own.clone(),
    }
}

/// Merges the metadata of the request into that of the base or, for a new line of sessions and if
/// it is cleared, of the agent. `null` removes a pair.
pub(in crate::run) fn session_metadata_of(
    bundle: Option<&Arc<Bundle>>,
    agent: &AgentDefinition,
    changes: &Setting<Object>,
) -> Result<Object, Refusal> {
    let base = bundle.filter(|_| *changes != Setting::Cleared);
    let mut metadata = base.map_or_else(|| agent.metadata.clone(), |bundle| bundle.head.metadata.clone());
    metadata.extend(changes.value().cloned().unwrap_or_default());
    metadata.retain(|_, value| !value.is_null());
    check_metadata(&metadata)
        .map_err(|message| Refusal::invalid("metadata", format!("together with that of the session, {message}")))?;
    Ok(metadata)
}
