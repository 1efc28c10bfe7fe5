//! The budget guard: forbids a step if nothing is left of the budget.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{Hook, HookContext, HookError, HookPoint};
use crate::agent::control::ExecutionControl;
use crate::agent::state::{AgentState, FinishReason, StopSignal};
use crate::usage::Usage;

/// Stops an execution whose budget is spent. An instance belongs to one execution.
#[derive(Debug)]
pub struct BudgetGuard {
    control: Arc<ExecutionControl>,
}

impl BudgetGuard {
    /// Guards the budget of the control.
    pub fn new(control: Arc<ExecutionControl>) -> Self {
        Self { control }
    }

    /// A completion that the rest of the budget has cut ends the execution. A complete one is its
    /// natural end.
    fn limit_after_step(&self, state: &AgentState) -> Option<StopSignal> {
        let response = state.current_step()?.response.as_ref()?;
        let cut_short = response.finish_reason == FinishReason::Length;
        cut_short.then(|| self.control.usage_limit(Usage::default())).flatten()
    }
}

impl Hook for BudgetGuard {
    fn name(&self) -> &'static str {
        "budget_guard"
    }

    fn points(&self) -> &[HookPoint] {
        &[HookPoint::BeforeStep, HookPoint::AfterStep]
    }

    fn call(&self, mut context: HookContext) -> BoxFuture<'_, Result<HookContext, HookError>> {
        let signals: Vec<StopSignal> = match context.point {
            HookPoint::BeforeStep => self.control.limits_before_step(&context.state).collect(),
            HookPoint::AfterStep => self.limit_after_step(&context.state).into_iter().collect(),
            _ => Vec::new(),
        };
        for signal in signals {
            context.state = context.state.with_stop_signal(signal, self.control.now());
        }
        Box::pin(ready(Ok(context)))
    }
}
