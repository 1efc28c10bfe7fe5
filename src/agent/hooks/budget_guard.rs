//! The guard of the budget: it lets no step begin for which nothing is left.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{Hook, HookError, HookPoint};
use crate::agent::control::ExecutionControl;
use crate::agent::state::{AgentState, FinishReason, StopSignal};

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

    /// An answer that the rest of the tokens cut short ends the execution; a complete one is its natural end.
    fn limit_after_step(&self, state: &AgentState) -> Option<StopSignal> {
        let response = state.current_step()?.response.as_ref()?;
        let cut_short = response.finish_reason == FinishReason::Length;
        cut_short.then(|| self.control.usage_limit(&state.usage())).flatten()
    }
}

impl Hook for BudgetGuard {
    fn name(&self) -> &'static str {
        "budget_guard"
    }

    fn call(&self, point: HookPoint, state: AgentState) -> BoxFuture<'_, Result<AgentState, HookError>> {
        let signal = match point {
            HookPoint::BeforeStep => self.control.limit_before_step(&state),
            HookPoint::AfterStep => self.limit_after_step(&state),
            HookPoint::BeforeExecution | HookPoint::OnStop | HookPoint::AfterExecution => None,
        };
        let now = self.control.clock.now();
        Box::pin(ready(Ok(match signal {
            Some(signal) => state.with_stop_signal(signal, now),
            None => state,
        })))
    }
}
