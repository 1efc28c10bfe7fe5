//! Hooks: functions from context to context at named points of the loop.
//!
//! Guards and the error policy are hooks like any other, and are always present. `permissions.rs`
//! is the table of the changes that a hook may make at each point. Any other change fails the run
//! with the hook's name.
//!
//! Each execution has hook instances of its own. Factories make them from the configuration that an
//! agent attaches (`registry.rs`). A hook that counts does so in the state, so it continues
//! counting after a resumption.
//!
//! No request to a model bypasses the hooks. A hook that asks a model does so through
//! `drivers/ask.rs`, so that the hooks around requests see that request too.

mod context;
mod permissions;
mod stack;

mod error_policy;
mod guard;

mod config;
mod registry;

use std::error::Error;
use std::fmt;

use futures_util::future::BoxFuture;

pub(crate) use self::config::ensure;
pub use self::config::read_config;
pub use self::context::{HookContext, HookSubject};
pub use self::error_policy::ErrorPolicyHook;
pub use self::guard::ExecutionGuard;
pub use self::permissions::{HookField, PERMISSIONS, is_permitted};
pub use self::registry::{ExecutionPorts, HookConfigError, HookFactory, HookRegistry, StackSlot};
pub use self::stack::{HookFailure, HookStack};
use crate::hook_point::HookPoint;
use values::usage::Usage;

/// A hook that failed.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct HookError {
    /// The message, in words that the caller may read.
    pub message: String,
    /// The underlying failure, for the operator.
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
    /// The usage of its model calls before the failure. The state that counted this usage is lost.
    pub usage: Usage,
}

impl HookError {
    /// Makes an error from a message.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            source: None,
            usage: Usage::default(),
        }
    }
}

/// A hook. An instance belongs to one execution, so its counts apply to that execution.
pub trait Hook: Send + Sync + fmt::Debug {
    /// Returns the name that it is registered by.
    fn name(&self) -> &str;

    /// Returns the points at which it wants to be called.
    fn points(&self) -> &[HookPoint];

    /// Returns the next context. [`PERMISSIONS`] defines the permitted changes at each point.
    fn call(&self, context: HookContext) -> BoxFuture<'_, Result<HookContext, HookError>>;

    /// Returns whether a call does more than to return the next context, such as to send a request.
    /// If it has, the progress before the call is persisted first. So no takeover calls the hook
    /// again.
    fn has_effects(&self) -> bool {
        true
    }

    /// Returns whether no delta may be emitted before the hook has seen the whole completion.
    fn holds_back_deltas(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use chrono::TimeDelta;

    use super::*;
    use crate::state::AgentState;
    use values::clock::{Clock as _, SystemClock};
    use values::ids::{AgentId, IdSource as _, UuidV7Source};

    #[derive(Debug)]
    struct Named(&'static str);

    impl Hook for Named {
        fn name(&self) -> &str {
            self.0
        }

        fn points(&self) -> &[HookPoint] {
            &[HookPoint::BeforeStep]
        }

        fn call(&self, mut context: HookContext) -> BoxFuture<'_, Result<HookContext, HookError>> {
            let prompt = format!("{}{}", context.state.context().system_prompt, self.0);
            context.state = context.state.with_system_prompt(prompt);
            Box::pin(async move { Ok(context) })
        }
    }

    #[tokio::test]
    async fn higher_priorities_come_first_and_equals_in_their_order() {
        let names = [(0, "c"), (5, "a"), (0, "d"), (-1, "e"), (5, "b")];
        let stack = names.into_iter().fold(HookStack::default(), |stack, (priority, name)| {
            stack.with_hook(priority, Arc::new(Named(name)))
        });
        let state = AgentState::new(AgentId::from_uuid(UuidV7Source.next_uuid()), SystemClock.now());
        let later = state.updated_at() + TimeDelta::seconds(1);
        let context = HookContext::new(HookPoint::BeforeStep, state, HookSubject::State);
        let (context, failure) = stack.call(context, || later).await;
        assert!(failure.is_none());
        assert_eq!(context.state.context().system_prompt, "abcde");
        assert_eq!(context.state.updated_at(), later);
    }

    #[tokio::test]
    async fn a_hook_that_changes_nothing_does_not_move_the_time_of_change() {
        let stack = HookStack::default().with_hook(0, Arc::new(Named("")));
        let state = AgentState::new(AgentId::from_uuid(UuidV7Source.next_uuid()), SystemClock.now());
        let later = state.updated_at() + TimeDelta::seconds(1);
        let context = HookContext::new(HookPoint::BeforeStep, state.clone(), HookSubject::State);
        let (context, failure) = stack.call(context, || later).await;
        assert!(failure.is_none());
        assert_eq!(context.state, state);
    }
}
