//! Chooses the models of a run: those of the request, of the session, or of the agent.
//!
//! Each model must exist and be allowed. If the cost is limited, each must have a price.

use std::sync::Arc;

use super::error::Refusal;
use super::limits::Allowance;
use super::model_room::SharingModel;
use agent::drivers::{ModelChain, ModelChoice};
use agent::hooks::HookRegistry;
use agent::ports::ModelCatalog;
use agent::{AgentDefinition, RequestRoom};
use values::model_ref::ModelRef;
use values::tenant::TenantId;
use values::usage::PriceTable;

/// Finds the models of agents.
#[derive(Debug)]
pub struct ModelSelection {
    /// All models.
    pub models: Arc<dyn ModelCatalog>,
    /// Knows which models the hooks use.
    pub hooks: Arc<HookRegistry>,
    /// The prices of models.
    pub prices: PriceTable,
    /// The bytes that large requests to models share.
    pub room: RequestRoom,
}

impl ModelSelection {
    /// Returns the models to use, the preferred one first. A model that the caller or the session
    /// chose has no fallbacks.
    pub(super) fn choose(
        &self,
        tenant: &TenantId,
        only: Option<ModelRef>,
        definition: &AgentDefinition,
    ) -> Result<ModelChain, Refusal> {
        if let Some(model_ref) = only {
            return Ok(ModelChain::new(self.model_choice(tenant, model_ref)?, []));
        }
        let choices = definition.model_chain().cloned();
        let choices: Vec<_> = choices
            .map(|name| self.model_choice(tenant, name))
            .collect::<Result<_, _>>()?;
        let mut choices = choices.into_iter();
        let preferred = choices
            .next()
            .ok_or_else(|| Refusal::invalid("model", "the agent has no model"))?;
        Ok(ModelChain::new(preferred, choices))
    }

    /// Checks that the limits allow an agent and its models, including the models of its hooks.
    pub(super) fn check_work(
        &self,
        allowance: &Allowance<'_>,
        agent: &AgentDefinition,
        models: &ModelChain,
    ) -> Result<(), Refusal> {
        let of_hooks = self.hooks.models(&agent.hooks)?;
        let names = models.iter().map(|choice| &choice.model_ref);
        allowance.check_agent(&agent.name)?;
        allowance.check_models(names.chain(&of_hooks), &self.prices)
    }

    fn model_choice(&self, tenant: &TenantId, model_ref: ModelRef) -> Result<ModelChoice, Refusal> {
        Ok(ModelChoice {
            model: SharingModel::wrap(self.models.model(&model_ref)?, tenant, &self.room),
            price: self.prices.price(&model_ref),
            model_ref,
        })
    }
}

/// Refuses a cost limit if one of the agent's models has no price.
pub(super) fn check_prices(agent: &AgentDefinition, models: &ModelChain) -> Result<(), Refusal> {
    models
        .unpriced()
        .map_or(Ok(()), |model| Err(unpriced(&agent.name, model)))
}

/// Returns the refusal of a cost limit for a model without a price.
pub(super) fn unpriced(agent: &str, model: &ModelRef) -> Refusal {
    let message =
        format!("no price is known for {model}, the model of the agent {agent:?}, so its cost can't be limited");
    Refusal::invalid("budget.max_cost", message)
}
