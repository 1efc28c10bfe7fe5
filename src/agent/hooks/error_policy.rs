//! The error policy: it decides when the errors of tools end an execution.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{Hook, HookError, HookPoint};
use crate::agent::definition::ErrorPolicy;
use crate::agent::state::{AgentState, AgentStep, StopReason, StopSignal};
use crate::clock::Clock;

/// The most steps in a row that may have an error under [`ErrorPolicy::RetryToolErrors`].
const MAX_CONSECUTIVE: usize = 3;

/// Applies an error policy. An instance belongs to one execution.
#[derive(Debug)]
pub struct ErrorPolicyHook {
    policy: ErrorPolicy,
    clock: Arc<dyn Clock>,
}

impl ErrorPolicyHook {
    /// Applies the policy.
    pub fn new(policy: ErrorPolicy, clock: Arc<dyn Clock>) -> Self {
        Self { policy, clock }
    }

    fn verdict(&self, state: &AgentState) -> Option<StopSignal> {
        let error = state.current_step()?.all_errors().last()?.message.clone();
        match self.policy {
            ErrorPolicy::IgnoreToolErrors => None,
            ErrorPolicy::StopOnAnyError => Some(StopSignal::new(StopReason::ErrorForbade, self.name(), error)),
            ErrorPolicy::RetryToolErrors => {
                let completed: Vec<&AgentStep> = state.steps().collect();
                let earlier = completed.iter().rev().take_while(|step| step.has_errors()).count();
                let spent = earlier + 1 >= MAX_CONSECUTIVE;
                spent.then(|| StopSignal::new(StopReason::RetryLimitReached, self.name(), error))
            }
        }
    }
}

impl Hook for ErrorPolicyHook {
    fn name(&self) -> &'static str {
        "error_policy"
    }

    fn call(&self, point: HookPoint, state: AgentState) -> BoxFuture<'_, Result<AgentState, HookError>> {
        let signal = (point == HookPoint::AfterStep).then(|| self.verdict(&state)).flatten();
        Box::pin(ready(Ok(match signal {
            Some(signal) => state.with_stop_signal(signal, self.clock.now()),
            None => state,
        })))
    }
}
