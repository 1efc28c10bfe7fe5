//! Settings that a run combines from its base, its agent and its request.
//!
//! The metadata of a request is merged into the session's context and lasts. So do its `variables`,
//! in the environment, and its `response_format`.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::run::refusal::Refusal;
use crate::run::request::RunRequest;
use agent::definition::{AgentDefinition, Durability};
use agent::ports::ToolExecutor;
use values::json::{Object, Value};
use values::model_ref::ResponseFormat;
use values::session::{Bundle, EnvironmentState, check_metadata, check_variables};

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
    let choice = request.durability.unwrap_or(agent.durability);
    // The tools of servers are not known yet.
    let has_unrepeatable = !agent.mcp.is_empty() || tools.iter().any(|tool| !executor.is_repeatable(tool));
    choice.resolve(request.asks_for_queue(), has_unrepeatable)
}

/// Returns the response format of the request, or else of the agent, or else of the session.
pub(in crate::run) fn response_format_of(
    bundle: Option<&Arc<Bundle>>,
    agent: &AgentDefinition,
    asked: Option<ResponseFormat>,
) -> ResponseFormat {
    let from_agent = || (!agent.response_format.is_text()).then(|| agent.response_format.clone());
    let from_session = || bundle.map(|bundle| bundle.context.response_format.clone());
    asked.or_else(from_agent).or_else(from_session).unwrap_or_default()
}

/// Merges the metadata of the request into the metadata of the base or, for a new line of sessions,
/// of the agent. `null` removes a pair.
pub(in crate::run) fn session_metadata_of(
    bundle: Option<&Arc<Bundle>>,
    agent: &AgentDefinition,
    changes: &Object,
) -> Result<Object, Refusal> {
    let mut metadata = bundle.map_or_else(|| agent.metadata.clone(), |bundle| bundle.head.metadata.clone());
    metadata.extend(changes.clone());
    metadata.retain(|_, value| !value.is_null());
    check_metadata(&metadata)
        .map_err(|message| Refusal::invalid("metadata", format!("together with that of the session, {message}")))?;
    Ok(metadata)
}
