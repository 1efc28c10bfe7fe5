//! `finish_reason`: ends an execution when the model finishes for one of the configured reasons.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Deserialize;

use crate::control::ExecutionControl;
use crate::hook_point::HookPoint;
use crate::hooks::{ExecutionPorts, Hook, HookContext, HookError, HookFactory, ensure, read_config};
use crate::state::{AgentState, FinishReason, StopReason, StopSignal};
use values::json::Object;

const NAME: &str = "finish_reason";

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct FinishReasonConfig {
    /// Reasons as named in events, or a provider's own reasons.
    stop_on: Vec<FinishReason>,
}

impl FinishReasonConfig {
    fn read(config: &Object) -> Result<Self, String> {
        let config: Self = read_config(config)?;
        ensure(!config.stop_on.is_empty(), "stop_on names no finish reason")?;
        let unnamed = FinishReason::Other(String::new());
        ensure(!config.stop_on.contains(&unnamed), "stop_on has an empty name")?;
        Ok(config)
    }
}

/// Makes guards of finish reasons.
#[derive(Debug)]
pub(super) struct FinishReasonFactory;

impl HookFactory for FinishReasonFactory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check(&self, config: &Object) -> Result<(), String> {
        FinishReasonConfig::read(config).map(drop)
    }

    fn make(&self, config: &Object, ports: &ExecutionPorts) -> Result<Arc<dyn Hook>, String> {
        Ok(Arc::new(FinishReasonGuard {
            config: FinishReasonConfig::read(config)?,
            control: Arc::clone(&ports.control),
        }))
    }
}

#[derive(Debug)]
struct FinishReasonGuard {
    config: FinishReasonConfig,
    control: Arc<ExecutionControl>,
}

impl FinishReasonGuard {
    fn signal(&self, state: &AgentState) -> Option<StopSignal> {
        let reason = &state.current_step()?.response.as_ref()?.finish_reason;
        if !self.config.stop_on.contains(reason) {
            return None;
        }
        let word = String::from(reason.clone());
        let message = format!("the model ended its answer with {word:?}");
        Some(StopSignal::new(StopReason::FinishReasonReceived, NAME, message).with_figure(NAME, word))
    }
}

impl Hook for FinishReasonGuard {
    fn name(&self) -> &'static str {
        NAME
    }

    fn points(&self) -> &[HookPoint] {
        &[HookPoint::AfterStep]
    }

    fn has_effects(&self) -> bool {
        false
    }

    fn call(&self, mut context: HookContext) -> BoxFuture<'_, Result<HookContext, HookError>> {
        if let Some(signal) = self.signal(&context.state) {
            context.state = context.state.with_stop_signal(signal, self.control.now());
        }
        Box::pin(ready(Ok(context)))
    }
}
