//! What a run may do: the limits of its tenant, narrowed by the caller's API key.
//!
//! All such checks are in this file. A plan checks its budget, its agents and every model that a
//! request, a session, an agent, a subagent or a hook names. A queued run is planned again by its
//! worker, with the limits of that moment. The limits of the API key are stored with the accepted
//! request.

use super::error::Refusal;
use crate::agent::state::ExecutionBudget;
use crate::limits::{Pattern, RunLimits};
use crate::model_ref::ModelRef;
use crate::usage::{Cost, PriceTable};

/// What the runs of a caller may do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowance<'a> {
    of_tenant: &'a RunLimits,
    of_key: &'a RunLimits,
}

impl<'a> Allowance<'a> {
    /// Bounds runs by the limits of their tenant and of their caller's key.
    pub(super) fn new(of_tenant: &'a RunLimits, of_key: &'a RunLimits) -> Self {
        Self { of_tenant, of_key }
    }

    /// Returns the tighter of each ceiling.
    pub(super) fn ceiling(&self) -> ExecutionBudget {
        ceiling_of(self.of_tenant).tightest(&ceiling_of(self.of_key))
    }

    /// Refuses a request for more than a ceiling allows: its caller should know.
    pub(super) fn check_budget(&self, asked: &ExecutionBudget) -> Result<(), Refusal> {
        let ceiling = self.ceiling();
        let above = above("budget.max_steps", asked.max_steps, ceiling.max_steps)
            .or_else(|| above("budget.max_tokens", asked.max_tokens, ceiling.max_tokens))
            .or_else(|| above("budget.max_seconds", asked.max_seconds, ceiling.max_seconds))
            .or_else(|| {
                let dollars = |budget: &ExecutionBudget| budget.max_cost.map(Cost::dollars);
                above("budget.max_cost", dollars(asked), dollars(&ceiling))
            });
        above.map_or(Ok(()), Err)
    }

    /// Refuses an agent that may not work.
    pub(super) fn check_agent(&self, name: &str) -> Result<(), Refusal> {
        self.check("agent", name, |limits| is_allowed(&limits.agents, name))
    }

    /// Refuses models that may not be asked, and those whose cost is unknown where a ceiling of
    /// cost must hold.
    pub(super) fn check_models<'m>(
        &self,
        models: impl IntoIterator<Item = &'m ModelRef>,
        prices: &PriceTable,
    ) -> Result<(), Refusal> {
        let limits_cost = self.ceiling().max_cost.is_some();
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

    fn check(&self, what: &'static str, name: &str, is_allowed: impl Fn(&RunLimits) -> bool) -> Result<(), Refusal> {
        let whose = [(self.of_tenant, "tenant"), (self.of_key, "API key")];
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
