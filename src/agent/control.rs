//! What bounds an execution from outside its state: the budget, the price of its model, the clock and the caller's cancellation.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::state::{AgentState, ExecutionBudget, StopReason, StopSignal};
use crate::clock::{Clock, Timestamp};
use crate::json::{Object, Value};
use crate::usage::{Price, Usage};

/// Names the budget as the source of stop signals.
const BUDGET: &str = "budget";
/// Names the caller's cancellation as the source of stop signals.
const CANCELLATION: &str = "cancellation";
/// A provider that ignores the limit on its answer is cut at this many bytes per token that is left: about twice what text has.
const MAX_BYTES_PER_TOKEN: u64 = 8;
/// Bytes that an answer may have beyond that: a single token can be a whole line of blanks.
const OVERRUN_SLACK: u64 = 256;

/// Bounds one execution. Its guards read it between steps, its driver during them.
#[derive(Debug, Clone)]
pub struct ExecutionControl {
    /// The limits.
    pub budget: ExecutionBudget,
    /// What the model's tokens cost, if it is known.
    pub price: Option<Price>,
    /// Cancelled when the caller wants no result any more.
    pub cancellation: CancellationToken,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
}

impl ExecutionControl {
    /// Returns the signal of the limit that forbids another step, if one does.
    pub fn limit_before_step(&self, state: &AgentState) -> Option<StopSignal> {
        let steps = self.budget.max_steps.filter(|max| state.step_count() >= *max as usize);
        let steps_signal = steps.map(|max| {
            limit(
                StopReason::StepsLimitReached,
                "max_steps",
                json!(max),
                "the steps are spent",
            )
        });
        let cancelled = self.cancellation.is_cancelled().then(cancelled);
        cancelled
            .or(steps_signal)
            .or_else(|| self.usage_limit(&state.usage()))
            .or_else(|| self.time_limit_reached(state))
    }

    /// Returns the signal of the limit on tokens or cost that the usage has reached, if it has.
    pub fn usage_limit(&self, usage: &Usage) -> Option<StopSignal> {
        let tokens = self.budget.max_tokens.filter(|max| usage.total_tokens >= *max);
        let cost = self
            .budget
            .max_cost
            .filter(|max| usage.cost.unwrap_or_default() >= *max);
        let tokens = tokens.map(|max| {
            limit(
                StopReason::TokenLimitReached,
                "max_tokens",
                json!(max),
                "the tokens are spent",
            )
        });
        tokens.or_else(|| {
            cost.map(|max| {
                limit(
                    StopReason::TokenLimitReached,
                    "max_cost",
                    json!(max),
                    "the money is spent",
                )
            })
        })
    }

    /// Returns the instant at which the execution's time is spent.
    pub fn time_limit(&self, state: &AgentState) -> Option<Timestamp> {
        let started_at = state.execution().map(|execution| execution.started_at);
        let seconds = self.budget.max_seconds.and_then(|seconds| {
            let allowed = Duration::try_from_secs_f64(seconds)
                .ok()
                .and_then(|allowed| TimeDelta::from_std(allowed).ok())?;
            started_at?.checked_add_signed(allowed)
        });
        [seconds, self.budget.deadline].into_iter().flatten().min()
    }

    /// Waits until the execution is cancelled or its time is spent, and returns the signal that says so.
    pub async fn interrupted(&self, time_limit: Option<Timestamp>) -> StopSignal {
        tokio::select! {
            biased;
            () = self.cancellation.cancelled() => cancelled(),
            () = self.sleep_until(time_limit) => time_spent(),
        }
    }

    /// Returns the most tokens that the next answer may have: what the budgets of tokens and cost leave.
    pub fn max_output_tokens(&self, usage: &Usage) -> Option<u64> {
        let tokens = self.budget.max_tokens.map(|max| max.saturating_sub(usage.total_tokens));
        let spent = usage.cost.unwrap_or_default();
        let affordable = self
            .budget
            .max_cost
            .zip(self.price)
            .and_then(|(max, price)| price.output_tokens_for(max.saturating_sub(spent)));
        [tokens, affordable]
            .into_iter()
            .flatten()
            .min()
            .map(|tokens| tokens.max(1))
    }

    /// Tells whether an answer of so many bytes can't be within the tokens that are left.
    pub fn is_overrun(max_output_tokens: Option<u64>, answer_bytes: u64) -> bool {
        let most = |tokens: u64| tokens.saturating_mul(MAX_BYTES_PER_TOKEN).saturating_add(OVERRUN_SLACK);
        max_output_tokens.is_some_and(|tokens| answer_bytes > most(tokens))
    }

    /// Returns the signal for an answer that overran the tokens that were left.
    pub fn overrun(&self) -> StopSignal {
        let (name, value) = match self.budget.max_tokens {
            Some(max) => ("max_tokens", json!(max)),
            None => ("max_cost", json!(self.budget.max_cost)),
        };
        let message = "the answer overran the tokens that were left";
        limit(StopReason::TokenLimitReached, name, value, message)
    }

    fn time_limit_reached(&self, state: &AgentState) -> Option<StopSignal> {
        self.time_limit(state)
            .filter(|until| self.clock.now() >= *until)
            .map(|_| time_spent())
    }

    async fn sleep_until(&self, time_limit: Option<Timestamp>) {
        let Some(until) = time_limit else {
            return std::future::pending().await;
        };
        tokio::time::sleep((until - self.clock.now()).to_std().unwrap_or_default()).await;
    }
}

fn limit(reason: StopReason, name: &str, value: Value, message: &str) -> StopSignal {
    StopSignal::new(reason, BUDGET, message).with_context(Object::from_iter([(name.to_owned(), value)]))
}

fn time_spent() -> StopSignal {
    StopSignal::new(StopReason::TimeLimitReached, BUDGET, "the time is spent")
}

fn cancelled() -> StopSignal {
    StopSignal::new(StopReason::UserRequested, CANCELLATION, "the run was cancelled")
}
