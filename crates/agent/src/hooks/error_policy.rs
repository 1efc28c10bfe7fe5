//! The error policy as a hook: decides whether the errors of a step end the execution.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{Hook, HookContext, HookError};
use crate::definition::{ErrorDecision, ErrorHandling, ErrorPolicy};
use crate::hook_point::HookPoint;
use crate::state::{AgentError, AgentState, AgentStep, ExecutionState, StopReason, StopSignal};
use values::clock::Clock;

/// Applies an error policy. An instance belongs to one execution.
#[derive(Debug)]
pub struct ErrorPolicyHook {
    handling: ErrorHandling,
    clock: Arc<dyn Clock>,
}

impl ErrorPolicyHook {
    /// Applies the policy.
    pub fn new(policy: ErrorPolicy, clock: Arc<dyn Clock>) -> Self {
        let handling = policy.handling();
        Self { handling, clock }
    }

    /// Applies the policy. Ignores a step that its driver retries or that the caller cut.
    fn decide(&self, state: AgentState) -> AgentState {
        let is_retried = |execution: &ExecutionState| execution.continuation.is_retry_wanted;
        if state.execution().is_some_and(is_retried) || state.stop_signal().is_some_and(is_of_caller) {
            return state;
        }
        let Some(step) = state.current_step() else { return state };
        let Some((decision, error)) = self.handling.decision_for(step) else {
            return state;
        };
        let (now, failed) = (self.clock.now(), self.failed_steps(&state));
        let signal = |reason| self.signal(reason, error, failed);
        let signal = match decision {
            ErrorDecision::Stop => Some(signal(StopReason::ErrorForbade)),
            ErrorDecision::Retry if failed >= self.handling.max_consecutive as usize => {
                Some(signal(StopReason::RetryLimitReached))
            }
            ErrorDecision::Retry | ErrorDecision::Ignore => None,
        };
        match signal {
            Some(signal) => state.with_stop_signal(signal, now),
            None => state.with_retry_wanted(now),
        }
    }

    /// Counts the consecutive failed steps up to the one in progress. A step whose errors are
    /// ignored ends the sequence.
    fn failed_steps(&self, state: &AgentState) -> usize {
        let counts = |step: &AgentStep| {
            let decision = self.handling.decision_for(step);
            decision.is_some_and(|(decision, _)| decision != ErrorDecision::Ignore)
        };
        let newest = state.current_step().into_iter().chain(state.steps().rev());
        newest.take_while(|step| counts(step)).count()
    }

    fn signal(&self, reason: StopReason, error: &AgentError, failed: usize) -> StopSignal {
        StopSignal::new(reason, self.name(), error.message.clone())
            .with_figure("code", error.code.as_str())
            .with_figure("consecutive", failed)
    }
}

/// Returns whether the caller has stopped or cancelled.
fn is_of_caller(signal: &StopSignal) -> bool {
    signal.is_binding && signal.reason == StopReason::UserRequested
}

impl Hook for ErrorPolicyHook {
    fn name(&self) -> &'static str {
        "error_policy"
    }

    fn points(&self) -> &[HookPoint] {
        &[HookPoint::OnError]
    }

    fn has_effects(&self) -> bool {
        false
    }

    fn call(&self, mut context: HookContext) -> BoxFuture<'_, Result<HookContext, HookError>> {
        context.state = self.decide(context.state);
        Box::pin(ready(Ok(context)))
    }
}
