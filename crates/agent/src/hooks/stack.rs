//! The hooks of one execution, in order. Calls them, enforces the table of permissions and names
//! the hook that fails.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::context::{HookContext, HookSubject};
use super::permissions::{HookField, changed_fields, is_permitted};
use super::{Hook, HookError};
use crate::events::{AgentEvent, EventSink, StatePart};
use crate::hook_point::HookPoint;
use crate::run_error::RunErrorCode;
use crate::state::{AgentError, AgentState, ErrorKind, StopReason, StopSignal};
use values::clock::Timestamp;
use values::usage::Usage;
use workspace::environment::{Environment, EnvironmentError};

/// The hooks of one execution, by priority, the highest first. Equal ones are in the order of their
/// addition.
#[derive(Debug, Default)]
pub struct HookStack {
    hooks: Vec<(i32, Arc<dyn Hook>)>,
    /// Receives the changes of hooks.
    events: Option<Arc<dyn EventSink>>,
    /// The environment whose variables and resources hooks read and change.
    environment: Option<Arc<Environment>>,
}

/// The failure of a hook.
#[derive(Debug, thiserror::Error)]
#[error("the hook {hook} failed: {message}")]
pub struct HookFailure {
    /// The hook's name.
    pub hook: String,
    /// The message, in words that the caller may read.
    pub message: String,
    /// The usage of the hook's model calls before the failure.
    pub usage: Usage,
}

impl HookStack {
    /// Adds a hook.
    #[must_use]
    pub fn with_hook(mut self, priority: i32, hook: Arc<dyn Hook>) -> Self {
        let at = self.hooks.partition_point(|(other, _)| *other >= priority);
        self.hooks.insert(at, (priority, hook));
        self
    }

    /// Emits an event for each change of the state by a hook.
    #[must_use]
    pub fn with_events(self, events: Arc<dyn EventSink>) -> Self {
        let events = Some(events);
        Self { events, ..self }
    }

    /// Lets hooks read and change the variables and resources of an environment.
    #[must_use]
    pub fn with_environment(self, environment: Arc<Environment>) -> Self {
        let environment = Some(environment);
        Self { environment, ..self }
    }

    /// Returns whether any hook wants to be called at the point.
    pub fn has_hooks_at(&self, point: HookPoint) -> bool {
        self.hooks.iter().any(|(_, hook)| hook.points().contains(&point))
    }

    /// Returns whether a hook with effects is called at one of the points.
    pub(crate) fn has_effects_at(&self, points: &[HookPoint]) -> bool {
        let mut hooks = self.hooks.iter().filter(|(_, hook)| hook.has_effects());
        hooks.any(|(_, hook)| hook.points().iter().any(|point| points.contains(point)))
    }

    /// Returns whether deltas must wait until the hooks have seen the whole completion.
    pub fn holds_back_deltas(&self) -> bool {
        self.hooks.iter().any(|(_, hook)| hook.holds_back_deltas())
    }

    /// Calls all hooks of the context's point in order. Stops at the first hook that fails or makes
    /// a change that is not permitted, and returns the context of the hooks before it. A hook has
    /// no clock, so its changes get the time `now`.
    ///
    /// Boxed, since an execution would otherwise hold the memory of the call while the model works.
    pub fn call<'a>(
        &'a self,
        context: HookContext,
        now: impl Fn() -> Timestamp + Send + 'a,
    ) -> BoxFuture<'a, (HookContext, Option<HookFailure>)> {
        Box::pin(self.call_each(context, now))
    }

    async fn call_each(
        &self,
        context: HookContext,
        now: impl Fn() -> Timestamp + Send,
    ) -> (HookContext, Option<HookFailure>) {
        let point = context.point;
        let mut context = context;
        let concerned = self.hooks.iter().filter(|(_, hook)| hook.points().contains(&point));
        for (_, hook) in concerned {
            if let Some(environment) = &self.environment {
                context.environment = environment.values();
            }
            match call_hook(&**hook, context.clone()).await {
                Ok(next) => {
                    let changed = changed_fields(&context, &next);
                    if let Some(field) = changed.iter().find(|field| !is_permitted(point, **field)) {
                        let message = format!("it changed {field}, which no hook may do at {}", point.as_str());
                        return (context, Some(failure(&**hook, HookError::new(message))));
                    }
                    if let Err(error) = self.change_environment(&context, &next) {
                        return (context, Some(failure(&**hook, HookError::new(error.to_string()))));
                    }
                    self.emit_change(hook.name(), &changed, &context, &next);
                    context = next;
                    if changed.iter().any(|field| field.is_of_state()) {
                        let now = now().max(context.state.updated_at());
                        context.state = context.state.updated(now);
                    }
                }
                Err(error) => {
                    let cause = error.source.as_ref().map(ToString::to_string);
                    tracing::warn!(hook = hook.name(), point = point.as_str(), cause, "a hook failed");
                    return (context, Some(failure(&**hook, error)));
                }
            }
        }
        (context, None)
    }

    fn change_environment(&self, before: &HookContext, after: &HookContext) -> Result<(), EnvironmentError> {
        match &self.environment {
            Some(environment) => environment.change_values(&before.environment, &after.environment),
            None => Ok(()),
        }
    }

    fn emit_change(&self, hook: &str, changed: &[HookField], before: &HookContext, after: &HookContext) {
        let Some(events) = &self.events else { return };
        let changes: Vec<StatePart> = changed.iter().filter_map(|field| field.state_part()).collect();
        if changes.is_empty() {
            return;
        }
        let known = before.state.metadata();
        let metadata = after.state.metadata().iter();
        let metadata = metadata.filter(|(name, value)| known.get(*name) != Some(value));
        events.emit(AgentEvent::StateChanged {
            step_number: after.state.step_count() + 1,
            hook: Some(hook.to_owned()),
            point: Some(after.point),
            changes,
            metadata: metadata.map(|(name, value)| (name.clone(), value.clone())).collect(),
            variables: before.environment.changed_variables(&after.environment),
        });
    }

    /// Calls the hooks of a point without a subject. A failure is added to the state.
    pub async fn call_on_state(
        &self,
        point: HookPoint,
        state: AgentState,
        now: impl Fn() -> Timestamp + Send + Sync,
    ) -> AgentState {
        if !self.has_hooks_at(point) {
            return state;
        }
        let (context, failure) = self
            .call(HookContext::new(point, state, HookSubject::State), &now)
            .await;
        HookFailure::applied(failure, context.state, now())
    }
}

impl HookFailure {
    /// Returns whether a hook has failed in the execution of a state.
    pub fn is_in(state: &AgentState) -> bool {
        let mut executions = state.execution().into_iter();
        executions.any(|execution| execution.errors.iter().any(|error| error.kind == ErrorKind::Hook))
    }

    /// Returns the state with the failure of a hook, if there is one.
    pub fn applied(failure: Option<Self>, state: AgentState, now: Timestamp) -> AgentState {
        match failure {
            Some(failure) => failure.in_state(state, now),
            None => state,
        }
    }

    /// Returns the failure as data of the execution.
    pub fn to_agent_error(&self) -> AgentError {
        AgentError {
            kind: ErrorKind::Hook,
            code: RunErrorCode::HookFailed.into(),
            message: self.to_string(),
            source_name: Some(self.hook.clone()),
        }
    }

    /// Returns the state with the failure, which ends the execution.
    pub fn in_state(self, state: AgentState, now: Timestamp) -> AgentState {
        let error = self.to_agent_error();
        // The failure overrides the requests of other hooks to continue.
        let signal = StopSignal::new(StopReason::ErrorForbade, self.hook, self.message).binding();
        let state = state.with_hook_usage(self.usage, now);
        state.with_error(error, now).with_stop_signal(signal, now)
    }
}

async fn call_hook(hook: &dyn Hook, context: HookContext) -> Result<HookContext, HookError> {
    // The hook is called inside the block, so that a panic before the first await is also caught.
    let called = AssertUnwindSafe(async { hook.call(context).await })
        .catch_unwind()
        .await;
    called.unwrap_or_else(|_| {
        tracing::error!(hook = hook.name(), "a hook panicked");
        Err(HookError::new("it met an internal error"))
    })
}

fn failure(hook: &dyn Hook, error: HookError) -> HookFailure {
    HookFailure {
        hook: hook.name().to_owned(),
        message: error.message,
        usage: error.usage,
    }
}
