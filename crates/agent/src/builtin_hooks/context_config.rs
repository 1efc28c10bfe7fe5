//! `context_config`: sets the system prompt and the response format when an execution begins.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde::Deserialize;

use crate::hook_point::HookPoint;
use crate::hooks::{ExecutionPorts, Hook, HookContext, HookError, HookFactory, ensure, read_config};
use crate::prompt::check_prompt;
use crate::response_format::CompiledFormat;
use values::json::Object;
use values::model_ref::ResponseFormat;

const NAME: &str = "context_config";

/// The values to set. They stay in the session, like an agent's own prompt and format.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct ContextConfig {
    #[serde(default)]
    system_prompt: Option<String>,
    #[serde(default)]
    response_format: Option<ResponseFormat>,
}

impl ContextConfig {
    fn read(config: &Object) -> Result<Self, String> {
        let config: Self = read_config(config)?;
        let sets_something = config.system_prompt.is_some() || config.response_format.is_some();
        ensure(sets_something, "it sets neither system_prompt nor response_format")?;
        Ok(config)
    }
}

/// Makes hooks that set the context.
#[derive(Debug)]
pub(super) struct ContextConfigFactory;

impl HookFactory for ContextConfigFactory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check(&self, config: &Object) -> Result<(), String> {
        let config = ContextConfig::read(config)?;
        let prompt = config.system_prompt.as_deref().unwrap_or_default();
        check_prompt(prompt).map_err(|error| error.to_string())?;
        let format = config.response_format.as_ref().map(CompiledFormat::of).transpose();
        format.map(drop).map_err(|error| format!("response_format: {error}"))
    }

    fn make(&self, config: &Object, _: &ExecutionPorts) -> Result<Arc<dyn Hook>, String> {
        Ok(Arc::new(ContextConfigHook(ContextConfig::read(config)?)))
    }
}

#[derive(Debug)]
struct ContextConfigHook(ContextConfig);

impl Hook for ContextConfigHook {
    fn name(&self) -> &'static str {
        NAME
    }

    fn points(&self) -> &[HookPoint] {
        &[HookPoint::BeforeExecution]
    }

    fn has_effects(&self) -> bool {
        false
    }

    fn call(&self, mut context: HookContext) -> BoxFuture<'_, Result<HookContext, HookError>> {
        if let Some(system_prompt) = &self.0.system_prompt {
            context.state = context.state.with_system_prompt(system_prompt);
        }
        if let Some(response_format) = &self.0.response_format {
            context.state = context.state.with_response_format(response_format.clone());
        }
        Box::pin(ready(Ok(context)))
    }
}
