//! `limits`: a guard with a budget of its own, checked before and after each step.
//!
//! Only the agent's budget binds in the middle of a step.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::json;

use crate::control::ExecutionControl;
use crate::hook_point::HookPoint;
use crate::hooks::{ExecutionPorts, Hook, HookContext, HookError, HookFactory, ensure, read_config};
use crate::state::{AgentState, ExecutionBudget, ExecutionState, StopReason, StopSignal};
use values::clock::Timestamp;
use values::json::{Object, Value};

const NAME: &str = "limits";

/// Makes guards of a budget.
#[derive(Debug)]
pub(super) struct LimitsFactory;

impl HookFactory for LimitsFactory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check(&self, config: &Object) -> Result<(), String> {
        budget(config).map(drop)
    }

    fn make(&self, config: &Object, ports: &ExecutionPorts) -> Result<Arc<dyn Hook>, String> {
        let budget = budget(config)?;
        if let Some(model) = ports.models.unpriced().filter(|_| budget.max_cost.is_some()) {
            return Err(format!(
                "max_cost: no price is known for {model}, so its cost can't be limited"
            ));
        }
        Ok(Arc::new(Limits {
            budget,
            control: Arc::clone(&ports.control),
        }))
    }
}

fn budget(config: &Object) -> Result<ExecutionBudget, String> {
    let budget: ExecutionBudget = read_config(config)?;
    ensure(!budget.is_empty(), "it sets no limit")?;
    budget.check().map_err(|(field, rule)| format!("{field} {rule}"))?;
    Ok(budget)
}

/// A guard of one execution. It counts in the state of the execution, so executions do not affect
/// each other.
#[derive(Debug)]
struct Limits {
    budget: ExecutionBudget,
    control: Arc<ExecutionControl>,
}

impl Limits {
    /// Returns the signals of all limits that are reached after `steps` steps.
    fn reached(&self, execution: &ExecutionState, steps: usize) -> Vec<StopSignal> {
        let (budget, usage, now) = (&self.budget, self.control.spent(), self.control.now());
        let began_at = self.control.first_beginning(execution.started_at);
        let is_over = |end: Option<Timestamp>| end.is_some_and(|end| now >= end);
        let max_steps = budget.max_steps.filter(|max| steps >= *max as usize);
        let max_tokens = budget.max_tokens.filter(|max| usage.total_tokens >= *max);
        let max_cost = budget.max_cost.filter(|max| usage.known_cost() >= *max);
        let max_seconds = budget.max_seconds.filter(|_| is_over(budget.end_of_seconds(began_at)));
        let deadline = budget.deadline.filter(|deadline| now >= *deadline);
        let signals = [
            max_steps.map(|max| signal("max_steps", json!(max), "the steps of the limit are spent")),
            max_tokens.map(|max| signal("max_tokens", json!(max), "the tokens of the limit are spent")),
            max_cost.map(|max| signal("max_cost", json!(max), "the money of the limit is spent")),
            max_seconds.map(|max| signal("max_seconds", json!(max), "the seconds of the limit are spent")),
            deadline.map(|at| signal("deadline", json!(at), "the deadline of the limit has passed")),
        ];
        signals.into_iter().flatten().collect()
    }

    /// Returns the signals at a point. After a step, limits apply only if another step would
    /// follow, since a final response ends the execution anyway.
    fn signals(&self, point: HookPoint, state: &AgentState) -> Vec<StopSignal> {
        let Some(execution) = state.execution() else {
            return Vec::new();
        };
        match point {
            HookPoint::BeforeStep => self.reached(execution, execution.step_count()),
            HookPoint::AfterStep if !state.should_stop() => self.reached(execution, execution.step_number()),
            _ => Vec::new(),
        }
    }
}

impl Hook for Limits {
    fn name(&self) -> &'static str {
        NAME
    }

    fn points(&self) -> &[HookPoint] {
        &[HookPoint::BeforeStep, HookPoint::AfterStep]
    }

    fn has_effects(&self) -> bool {
        false
    }

    fn call(&self, mut context: HookContext) -> BoxFuture<'_, Result<HookContext, HookError>> {
        let now = self.control.now();
        for signal in self.signals(context.point, &context.state) {
            context.state = context.state.with_stop_signal(signal, now);
        }
        Box::pin(ready(Ok(context)))
    }
}

fn signal(name: &str, value: Value, message: &str) -> StopSignal {
    let reason = match name {
        "max_steps" => StopReason::StepsLimitReached,
        "max_tokens" | "max_cost" => StopReason::TokenLimitReached,
        _ => StopReason::TimeLimitReached,
    };
    let signal = StopSignal::new(reason, NAME, format!("{message}: {name} is {value}"));
    signal.with_figure(name, value).binding()
}
