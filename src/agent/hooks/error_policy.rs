//! The error policy as a hook: decides whether the errors of a step end the execution.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{Hook, HookContext, HookError, HookPoint};
use crate::agent::error_policy::{ErrorDecision, ErrorHandling, ErrorPolicy};
use crate::agent::state::{AgentError, AgentState, AgentStep, ExecutionState, StopReason, StopSignal};
use crate::clock::Clock;
use crate::json::Object;

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

    /// Leaves alone a step that its driver retries, and one that the caller has cut.
    fn decide(&self, state: AgentState) -> AgentState {
        let is_retried = |execution: &ExecutionState| execution.continuation.is_retry_wanted;
        if state.execution().is_some_and(is_retried) || state.stop_signal().is_some_and(is_of_caller) {
            return state;
        }
        let Some(step) = state.current_step() else { return state };
        let (decision, error) = (self.handling.decision_for(step), self.deciding_error(step));
        let (Some(decision), Some(error)) = (decision, error) else {
            return state;
        };
        let now = self.clock.now();
        let failed = self.failed_steps(&state);
        match decision {
            ErrorDecision::Stop => state.with_stop_signal(self.signal(StopReason::ErrorForbade, &error, failed), now),
            ErrorDecision::Retry if failed >= self.handling.max_consecutive as usize => {
                state.with_stop_signal(self.signal(StopReason::RetryLimitReached, &error, failed), now)
            }
            ErrorDecision::Retry | ErrorDecision::Ignore => state.with_retry_wanted(now),
        }
    }

    /// Counts the steps in a row that failed, up to the one in progress; those whose errors are
    /// ignored end the row.
    fn failed_steps(&self, state: &AgentState) -> usize {
        let counts = |step: &AgentStep| {
            let decision = self.handling.decision_for(step);
            decision.is_some_and(|decision| decision != ErrorDecision::Ignore)
        };
        let completed: Vec<&AgentStep> = state.steps().collect();
        let newest = state.current_step().into_iter();
        newest
            .chain(completed.into_iter().rev())
            .take_while(|step| counts(step))
            .count()
    }

    /// Returns the last error of those that the decision rests on.
    fn deciding_error(&self, step: &AgentStep) -> Option<AgentError> {
        let decision = self.handling.decision_for(step)?;
        let own = step
            .errors
            .iter()
            .filter(|error| self.handling.decision(error.kind) == decision);
        let of_tools = step
            .tool_executions
            .iter()
            .filter(|_| self.handling.tool == decision)
            .filter_map(|execution| execution.error.as_ref());
        own.chain(of_tools).last().cloned()
    }

    fn signal(&self, reason: StopReason, error: &AgentError, failed: usize) -> StopSignal {
        let context = [
            ("code", serde_json::json!(error.code)),
            ("consecutive", serde_json::json!(failed)),
        ];
        let context: Object = context
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        StopSignal::new(reason, self.name(), error.message.clone()).with_context(context)
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

    fn call(&self, mut context: HookContext) -> BoxFuture<'_, Result<HookContext, HookError>> {
        context.state = self.decide(context.state);
        Box::pin(ready(Ok(context)))
    }
}
