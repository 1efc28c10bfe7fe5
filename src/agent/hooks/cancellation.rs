//! The cancellation guard: after the caller's cancellation or stop, no step begins.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::{Hook, HookContext, HookError, HookPoint};
use crate::agent::control::ExecutionControl;

/// Stops an execution that its caller has cancelled or stopped. It belongs to the stack of every
/// execution.
#[derive(Debug)]
pub struct CancellationHook {
    control: Arc<ExecutionControl>,
}

impl CancellationHook {
    /// Watches the cancellation and the stop of the control.
    pub fn new(control: Arc<ExecutionControl>) -> Self {
        Self { control }
    }
}

impl Hook for CancellationHook {
    fn name(&self) -> &'static str {
        "cancellation"
    }

    fn points(&self) -> &[HookPoint] {
        &[HookPoint::BeforeStep, HookPoint::AfterStep]
    }

    fn call(&self, mut context: HookContext) -> BoxFuture<'_, Result<HookContext, HookError>> {
        // After its last step there is nothing left to cancel but the session, and that is the
        // run's affair.
        let is_over = context.point == HookPoint::AfterStep && context.state.should_stop();
        if let Some(signal) = self.control.called_off().filter(|_| !is_over) {
            context.state = context.state.with_stop_signal(signal, self.control.now());
        }
        Box::pin(ready(Ok(context)))
    }
}
