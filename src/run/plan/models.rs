//! Chooses the models of a run: from the request, the session, or the agent.
//!
//! Each model must exist and be allowed. If the cost is limited, each must have a price.

use super::model_room::SharingModel;
use crate::run::context::RunContext;
use crate::run::refusal::Refusal;
use crate::run::request::{Allowance, unpriced};
use agent::definition::AgentDefinition;
use agent::model_calls::{ModelChain, ModelChoice};
use values::model_ref::ModelRef;
use values::tenant::TenantId;

/// Returns the models to use, the preferred one first. A model that the caller or the session chose
/// has no fallbacks.
pub(in crate::run) fn choose_models(
    ctx: &RunContext,
    tenant: &TenantId,
    only: Option<ModelRef>,
    definition: &AgentDefinition,
) -> Result<ModelChain, Refusal> {
    if let Some(model_ref) = only {
        return Ok(ModelChain::new(model_choice(ctx, tenant, model_ref)?, []));
    }
    let choices = definition.model_chain().cloned();
    let choices: Vec<_> = choices
        .map(|name| model_choice(ctx, tenant, name))
        .collect::<Result<_, _>>()?;
    let mut choices = choices.into_iter();
    let preferred = choices
        .next()
        .ok_or_else(|| Refusal::invalid("model", "the agent has no model"))?;
    Ok(ModelChain::new(preferred, choices))
}

/// Checks that the limits allow an agent and its models, including the models of its hooks.
pub(in crate::run) fn check_work(
    ctx: &RunContext,
    allowance: &Allowance<'_>,
    agent: &AgentDefinition,
    models: &ModelChain,
) -> Result<(), Refusal> {
    let hook_models = ctx.hooks.models(&agent.hooks)?;
    let names = models.iter().map(|choice| &choice.model_ref);
    allowance.check_agent(&agent.name)?;
    allowance.check_models(names.chain(&hook_models), &ctx.prices)
}

fn model_choice(ctx: &RunContext, tenant: &TenantId, model_ref: ModelRef) -> Result<ModelChoice, Refusal> {
    Ok(ModelChoice {
        model: SharingModel::wrap(ctx.models.model(&model_ref)?, tenant, &ctx.process.room),
        price: ctx.prices.price(&model_ref),
        model_ref,
    })
}

/// Refuses a cost limit if one of the agent's models has no price.
pub(in crate::run) fn check_prices(agent: &AgentDefinition, models: &ModelChain) -> Result<(), Refusal> {
    models
        .unpriced()
        .map_or(Ok(()), |model| Err(unpriced(&agent.name, model)))
}
