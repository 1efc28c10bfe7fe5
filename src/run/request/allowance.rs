//! The limits of a run: the limits of its tenant, narrowed by the limits of the caller's API key.
//!
//! All such checks are in this file. A plan checks its budget, its agents and every model that a
//! request, a session, an agent, a subagent or a hook names. A worker plans a queued run again,
//! with the tenant's limits at that time. The limits of the API key are stored with the accepted
//! request.

use crate::run::refusal::Refusal;
use agent::state::ExecutionBudget;
use values::limits::{Pattern, RunLimits, TenantLimits};
use values::model_ref::ModelRef;
use values::usage::{Cost, PriceTable};

/// The limits of a caller's runs.
#[derive(Debug, Clone, Copy)]
pub(in crate::run) struct Allowance<'a> {
    tenant: &'a TenantLimits,
    key: &'a RunLimits,
}

impl<'a> Allowance<'a> {
    /// Combines the limits of the tenant and of the caller's key.
    pub(in crate::run) fn new(tenant: &'a TenantLimits, key: &'a RunLimits) -> Self {
        Self { tenant, key }
    }

    /// Returns the lower one of each ceiling.
    pub(in crate::run) fn ceiling(&self) -> ExecutionBudget {
        ceiling_of(&self.tenant.runs).tightest(&ceiling_of(self.key))
    }

    /// Refuses a request that exceeds a ceiling, so that its caller knows of the ceiling.
    pub(in crate::run) fn check_budget(&self, asked: &ExecutionBudget) -> Result<(), Refusal> {
        let ceiling = self.ceiling();
        let refusal = above("budget.max_steps", asked.max_steps, ceiling.max_steps)
            .or_else(|| above("budget.max_tokens", asked.max_tokens, ceiling.max_tokens))
            .or_else(|| above("budget.max_seconds", asked.max_seconds, ceiling.max_seconds))
            .or_else(|| {
                let dollars = |budget: &ExecutionBudget| budget.max_cost.map(Cost::dollars);
                above("budget.max_cost", dollars(asked), dollars(&ceiling))
            });
        refusal.map_or(Ok(()), Err)
    }

    /// Refuses an agent that the limits do not allow.
    pub(in crate::run) fn check_agent(&self, name: &str) -> Result<(), Refusal> {
        self.check("agent", name, |limits| is_allowed(&limits.agents, name))
    }

    /// Refuses models that the limits do not allow. If there is a cost ceiling, also refuses models
    /// without a price.
    pub(in crate::run) fn check_models<'m>(
        &self,
        models: impl IntoIterator<Item = &'m ModelRef>,
        prices: &PriceTable,
    ) -> Result<(), Refusal> {
        let limits_cost = self.ceiling().max_cost.is_some() || self.limits_spending();
        models.into_iter().try_for_each(|model| {
            let name = model.to_string();
            self.check("model", &name, |limits| {
                is_allowed(&limits.models, &name) && is_allowed(&limits.providers, model.provider())
            })?;
            if limits_cost && prices.price(model).is_none() {
                return Err(Refusal::Unpriced { model: model.clone() });
            }
            Ok(())
        })
    }

    /// Returns whether a limit of spending may count runs of the tenant or the key.
    fn limits_spending(&self) -> bool {
        let is_free =
            self.tenant.runs.spend.is_empty() && self.tenant.agent_spend.is_empty() && self.key.spend.is_empty();
        !is_free
    }

    fn check(&self, what: &'static str, name: &str, is_allowed: impl Fn(&RunLimits) -> bool) -> Result<(), Refusal> {
        let whose = [(&self.tenant.runs, "tenant"), (self.key, "API key")];
        let narrow = whose.into_iter().find(|(limits, _)| !is_allowed(limits));
        narrow.map_or(Ok(()), |(_, whose)| {
            Err(Refusal::NotAllowed {
                what,
                name: name.to_owned(),
                whose,
            })
        })
    }
}

/// Returns the refusal of a cost limit for a model without a price.
pub(in crate::run) fn unpriced(agent: &str, model: &ModelRef) -> Refusal {
    let message =
        format!("no price is known for {model}, the model of the agent {agent:?}, so its cost can't be limited");
    Refusal::invalid("budget.max_cost", message)
}

fn is_allowed(patterns: &[Pattern], name: &str) -> bool {
    patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(name))
}

fn ceiling_of(limits: &RunLimits) -> ExecutionBudget {
    ExecutionBudget {
        max_steps: limits.max_steps,
        max_tokens: limits.max_tokens,
        max_seconds: limits.max_seconds.map(Into::into),
        max_cost: limits.max_cost,
        deadline: None,
    }
}

fn above<T: PartialOrd + ToString>(field: &'static str, asked: Option<T>, ceiling: Option<T>) -> Option<Refusal> {
    let (asked, ceiling) = asked.zip(ceiling)?;
    (asked > ceiling).then(|| Refusal::AboveCeiling {
        field,
        asked: asked.to_string(),
        ceiling: ceiling.to_string(),
    })
}
