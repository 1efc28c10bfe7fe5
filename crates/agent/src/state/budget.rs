//! The budget of one execution. It belongs to a definition or a run and is never part of the state.

use std::time::Duration;

use chrono::TimeDelta;
use serde::{Deserialize, Serialize};

use values::clock::Timestamp;
use values::usage::Cost;

/// The longest time that a budget may name: a year.
const MAX_SECONDS: f64 = 31_536_000.0;

// Document 001, "`ExecutionBudget`".
/// Limits of one execution; an absent limit does not bind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ExecutionBudget {
    /// The most steps; each is one completion of the model and the tool calls that it asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000)]
    pub max_steps: Option<u32>,
    /// The most tokens of all requests, input and output together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 1_000_000_000_000_u64)]
    pub max_tokens: Option<u64>,
    /// The most seconds from start to end. Setting the clock of the host does not change them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(exclusive_minimum = 0, maximum = 604_800)]
    pub max_seconds: Option<f64>,
    /// The most US dollars; every model of the run needs a price.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, minimum = 0.000_000_000_001, exclusive_maximum = 18_000_000)]
    pub max_cost: Option<Cost>,
    /// The instant at which the execution ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<chrono::DateTime<chrono::Utc>>)]
    pub deadline: Option<Timestamp>,
}

impl ExecutionBudget {
    /// Returns whether there is no limit.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns when the seconds of an execution that began at `started_at` are spent.
    pub fn end_of_seconds(&self, started_at: Timestamp) -> Option<Timestamp> {
        let allowed = Duration::try_from_secs_f64(self.max_seconds?).ok()?;
        started_at.checked_add_signed(TimeDelta::from_std(allowed).ok()?)
    }

    /// Checks every limit. The error names the invalid limit and its rule.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let seconds_fit = self
            .max_seconds
            .is_none_or(|seconds| seconds > 0.0 && seconds <= MAX_SECONDS);
        let checks = [
            (self.max_steps != Some(0), "max_steps", "must be at least 1"),
            (self.max_tokens != Some(0), "max_tokens", "must be at least 1"),
            (seconds_fit, "max_seconds", "must be above 0 and at most a year"),
            (self.max_cost != Some(Cost::default()), "max_cost", "must be above 0"),
        ];
        let fault = checks.into_iter().find(|(fits, ..)| !fits);
        fault.map_or(Ok(()), |(_, field, rule)| Err((field, rule)))
    }

    /// Returns a budget with the tighter of both limits, for each limit.
    #[must_use]
    pub fn tightest(self, other: &Self) -> Self {
        Self {
            max_steps: tighter(self.max_steps, other.max_steps),
            max_tokens: tighter(self.max_tokens, other.max_tokens),
            max_seconds: tighter(self.max_seconds, other.max_seconds),
            max_cost: tighter(self.max_cost, other.max_cost),
            deadline: tighter(self.deadline, other.deadline),
        }
    }

    /// Returns this budget; limits that it lacks come from the other one.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        Self {
            max_steps: self.max_steps.or(other.max_steps),
            max_tokens: self.max_tokens.or(other.max_tokens),
            max_seconds: self.max_seconds.or(other.max_seconds),
            max_cost: self.max_cost.or(other.max_cost),
            deadline: self.deadline.or(other.deadline),
        }
    }
}

fn tighter<T: PartialOrd>(left: Option<T>, right: Option<T>) -> Option<T> {
    match (left, right) {
        (Some(left), Some(right)) => Some(if right < left { right } else { left }),
        (left, right) => left.or(right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlimited_budget_is_empty() {
        let budget = ExecutionBudget::default();
        assert!(budget.is_empty());
        assert_eq!(serde_json::to_string(&budget).unwrap(), "{}");
        let limited = ExecutionBudget {
            max_steps: Some(1),
            ..budget
        };
        assert!(!limited.is_empty());
    }
}
