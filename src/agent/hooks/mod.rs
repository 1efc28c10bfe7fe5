//! Hooks: functions from state to state at named points of the loop. Guards and policies are hooks.

mod budget_guard;
mod error_policy;

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

pub use self::budget_guard::BudgetGuard;
pub use self::error_policy::ErrorPolicyHook;
use super::state::AgentState;

/// A point of the loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HookPoint {
    /// Once, before the first step.
    BeforeExecution,
    /// Before each step.
    BeforeStep,
    /// After each step, before it is archived.
    AfterStep,
    /// Once, when the loop ends.
    OnStop,
    /// Once, after everything else.
    AfterExecution,
}

/// A hook that failed.
#[derive(Debug, thiserror::Error)]
#[error("the hook {hook} failed: {message}")]
pub struct HookError {
    /// The hook's name.
    pub hook: String,
    /// What happened, in words that the caller may read.
    pub message: String,
}

/// A hook.
pub trait Hook: Send + Sync + fmt::Debug {
    /// Returns the name that it is registered by.
    fn name(&self) -> &str;

    /// Returns the next state. At points that don't concern it, a hook returns the state as it is.
    fn call(&self, point: HookPoint, state: AgentState) -> BoxFuture<'_, Result<AgentState, HookError>>;
}

/// The hooks of one execution, those of higher priority first, equals in the order they were added.
#[derive(Debug, Default)]
pub struct HookStack {
    hooks: Vec<(i32, Arc<dyn Hook>)>,
}

impl HookStack {
    /// Adds a hook.
    #[must_use]
    pub fn with_hook(mut self, priority: i32, hook: Arc<dyn Hook>) -> Self {
        let at = self.hooks.partition_point(|(other, _)| *other >= priority);
        self.hooks.insert(at, (priority, hook));
        self
    }

    /// Calls all hooks in turn. The first that fails ends the turn; the state is then what the hooks before it made.
    pub async fn call(&self, point: HookPoint, state: AgentState) -> (AgentState, Option<HookError>) {
        let mut state = state;
        for (_, hook) in &self.hooks {
            match hook.call(point, state.clone()).await {
                Ok(next) => state = next,
                Err(error) => return (state, Some(error)),
            }
        }
        (state, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, SystemClock};
    use crate::ids::{AgentId, IdSource as _, UuidV7Source};

    #[derive(Debug)]
    struct Named(&'static str);

    impl Hook for Named {
        fn name(&self) -> &str {
            self.0
        }

        fn call(&self, _: HookPoint, state: AgentState) -> BoxFuture<'_, Result<AgentState, HookError>> {
            let prompt = format!("{}{}", state.context().system_prompt, self.0);
            Box::pin(async move { Ok(state.with_system_prompt(prompt)) })
        }
    }

    #[tokio::test]
    async fn higher_priorities_come_first_and_equals_keep_their_order() {
        let names = [(0, "c"), (5, "a"), (0, "d"), (-1, "e"), (5, "b")];
        let stack = names.into_iter().fold(HookStack::default(), |stack, (priority, name)| {
            stack.with_hook(priority, Arc::new(Named(name)))
        });
        let state = AgentState::new(AgentId::from_uuid(UuidV7Source.next_uuid()), SystemClock.now());
        let (state, error) = stack.call(HookPoint::BeforeStep, state).await;
        assert!(error.is_none());
        assert_eq!(state.context().system_prompt, "abcde");
    }
}
