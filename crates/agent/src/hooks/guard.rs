//! The guard of every execution: no step begins after the caller's cancellation or stop, or when
//! nothing is left of the budget.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{Hook, HookContext, HookError};
use crate::control::ExecutionControl;
use crate::hook_point::HookPoint;
use crate::state::{AgentState, FinishReason, StopSignal};
use values::usage::Usage;

/// Stops an execution that the caller has stopped or cancelled, or whose budget is spent. An
/// instance belongs to one execution.
#[derive(Debug)]
pub struct ExecutionGuard {
    control: Arc<ExecutionControl>,
}

impl ExecutionGuard {
    /// Guards the execution of the control.
    pub fn new(control: Arc<ExecutionControl>) -> Self {
        Self { control }
    }

    fn signals_before_step(&self, state: &AgentState) -> Vec<StopSignal> {
        let limits = self.control.limits_before_step(state);
        self.control.called_off().into_iter().chain(limits).collect()
    }

    /// Returns the signals after a step. After the last step only the session could be cancelled,
    /// which is the responsibility of the run.
    fn signals_after_step(&self, state: &AgentState) -> Vec<StopSignal> {
        let called_off = self.control.called_off().filter(|_| !state.should_stop());
        called_off.into_iter().chain(self.limit_after_step(state)).collect()
    }

    /// Returns the signal of a completion that the budget cut. A complete final response ends the
    /// execution anyway.
    fn limit_after_step(&self, state: &AgentState) -> Option<StopSignal> {
        let response = state.current_step()?.response.as_ref()?;
        let is_cut = response.finish_reason == FinishReason::Length;
        is_cut.then(|| self.control.usage_limit(Usage::default())).flatten()
    }
}

impl Hook for ExecutionGuard {
    fn name(&self) -> &'static str {
        "execution_guard"
    }

    fn points(&self) -> &[HookPoint] {
        &[HookPoint::BeforeStep, HookPoint::AfterStep]
    }

    fn has_effects(&self) -> bool {
        false
    }

    fn call(&self, mut context: HookContext) -> BoxFuture<'_, Result<HookContext, HookError>> {
        let signals = match context.point {
            HookPoint::BeforeStep => self.signals_before_step(&context.state),
            _ => self.signals_after_step(&context.state),
        };
        for signal in signals {
            context.state = context.state.with_stop_signal(signal, self.control.now());
        }
        Box::pin(ready(Ok(context)))
    }
}
