//! The known hooks, by name. Each execution gets instances of its own, made from the attached
//! configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, OnceLock, Weak};

use super::{Hook, HookStack};
use crate::compilers::Compiler;
use crate::control::ExecutionControl;
use crate::definition::{AgentDefinition, HookConfig};
use crate::events::EventSink;
use crate::model_calls::ModelChain;
use crate::request_room::RequestRoom;
use values::ids::IdSource;
use values::json::Object;
use values::model_ref::ModelRef;
use values::spelling::nearest;
use values::tenant::TenantId;

/// Everything that the hooks of one execution may use.
#[derive(Debug, Clone)]
pub struct ExecutionPorts {
    /// The tenant of the run.
    pub tenant: TenantId,
    /// The agent's models, the preferred one first.
    pub models: ModelChain,
    /// Chooses the messages of requests.
    pub compiler: Arc<dyn Compiler>,
    /// Bounds the execution. The model calls of hooks are spent here.
    pub control: Arc<ExecutionControl>,
    /// Makes ids.
    pub ids: Arc<dyn IdSource>,
    /// Receives all events.
    pub events: Arc<dyn EventSink>,
    /// The memory that large messages of hooks share with large requests to models.
    pub request_room: RequestRoom,
    /// The hooks themselves, once all are made.
    pub stack: StackSlot,
}

/// A weak reference of a hook to its stack. It is set once the stack is complete.
#[derive(Debug, Clone, Default)]
pub struct StackSlot(Arc<OnceLock<Weak<HookStack>>>);

impl StackSlot {
    /// Sets the complete stack for its hooks. The first stack stays.
    pub fn fill(&self, stack: &Arc<HookStack>) {
        self.0.get_or_init(|| Arc::downgrade(stack));
    }

    /// Returns the stack; none before it is complete.
    pub fn get(&self) -> Option<Arc<HookStack>> {
        self.0.get().and_then(Weak::upgrade)
    }
}

/// Makes instances of one kind of hook.
pub trait HookFactory: Send + Sync + fmt::Debug {
    /// Returns the name that agents attach it by.
    fn name(&self) -> &'static str;

    /// Checks a configuration. The error says what is wrong.
    fn check(&self, config: &Object) -> Result<(), String>;

    /// Checks a configuration together with the agent that it is part of. The error says what is
    /// wrong.
    fn check_agent(&self, _config: &Object, _agent: &AgentDefinition) -> Result<(), String> {
        Ok(())
    }

    /// Checks a configuration that a tenant has written. The error names the part that the tenant
    /// may not use.
    fn check_tenant(&self, _config: &Object, _tenant: &TenantId) -> Result<(), String> {
        Ok(())
    }

    /// Returns the models that a configuration names in addition to the agent's.
    fn models(&self, _config: &Object) -> Vec<ModelRef> {
        Vec::new()
    }

    /// Makes an instance for one execution; fails as [`HookFactory::check`] does.
    fn make(&self, config: &Object, ports: &ExecutionPorts) -> Result<Arc<dyn Hook>, String>;
}

/// A hook that an agent can't attach.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HookConfigError {
    /// No hook has the name.
    #[error("no hook is named {name:?}; known are {known}")]
    Unknown {
        /// The index of the hook, from 0.
        index: usize,
        name: String,
        /// The existing names, joined, and the name that may have been meant.
        known: String,
    },
    /// The configuration is wrong.
    #[error("the configuration of the hook {name:?} is wrong: {message}")]
    Config {
        /// The index of the hook, from 0.
        index: usize,
        /// The hook.
        name: String,
        /// The fault.
        message: String,
    },
}

/// All hooks that agents can attach.
#[derive(Debug, Default)]
pub struct HookRegistry {
    factories: BTreeMap<&'static str, Box<dyn HookFactory>>,
}

impl HookRegistry {
    /// Registers hooks. Of hooks with the same name, the last one stays.
    pub fn new(factories: impl IntoIterator<Item = Box<dyn HookFactory>>) -> Self {
        Self {
            factories: factories.into_iter().map(|factory| (factory.name(), factory)).collect(),
        }
    }

    /// Checks the configuration of each hook separately.
    pub fn check(&self, hooks: &[HookConfig]) -> Result<(), HookConfigError> {
        self.check_each(hooks, |factory, config| factory.check(config))
    }

    /// Checks the hooks of an agent: each hook separately, and then together with the agent.
    pub fn check_agent(&self, agent: &AgentDefinition) -> Result<(), HookConfigError> {
        self.check(&agent.hooks)?;
        self.check_each(&agent.hooks, |factory, config| factory.check_agent(config, agent))
    }

    /// Checks that the hooks of a tenant use only permitted configurations.
    pub fn check_tenant(&self, hooks: &[HookConfig], tenant: &TenantId) -> Result<(), HookConfigError> {
        self.check_each(hooks, |factory, config| factory.check_tenant(config, tenant))
    }

    /// Returns the models that hooks call in addition to the agent's.
    pub fn models(&self, hooks: &[HookConfig]) -> Result<Vec<ModelRef>, HookConfigError> {
        let hooks = hooks.iter().enumerate();
        let named = hooks.map(|(index, hook)| Ok(self.factory(index, hook)?.models(&hook.config)));
        named.collect::<Result<Vec<_>, _>>().map(|models| models.concat())
    }

    /// Adds instances of the attached hooks to the stack.
    pub fn attach(
        &self,
        stack: HookStack,
        hooks: &[HookConfig],
        ports: &ExecutionPorts,
    ) -> Result<HookStack, HookConfigError> {
        hooks.iter().enumerate().try_fold(stack, |stack, (index, hook)| {
            let made = self.factory(index, hook)?.make(&hook.config, ports);
            let made = made.map_err(|message| wrong(index, hook, message))?;
            Ok(stack.with_hook(hook.priority, made))
        })
    }

    fn check_each(
        &self,
        hooks: &[HookConfig],
        check: impl Fn(&dyn HookFactory, &Object) -> Result<(), String>,
    ) -> Result<(), HookConfigError> {
        hooks.iter().enumerate().try_for_each(|(index, hook)| {
            let checked = check(self.factory(index, hook)?, &hook.config);
            checked.map_err(|message| wrong(index, hook, message))
        })
    }

    fn factory(&self, index: usize, hook: &HookConfig) -> Result<&dyn HookFactory, HookConfigError> {
        let found = self.factories.get(hook.name.as_str());
        found.map(AsRef::as_ref).ok_or_else(|| {
            let known: Vec<_> = self.factories.keys().copied().collect();
            let advice = nearest(&hook.name, known.iter().copied()).map(|name| format!("; did you mean {name:?}?"));
            HookConfigError::Unknown {
                index,
                name: hook.name.clone(),
                known: known.join(", ") + &advice.unwrap_or_default(),
            }
        })
    }
}

fn wrong(index: usize, hook: &HookConfig, message: String) -> HookConfigError {
    HookConfigError::Config {
        index,
        name: hook.name.clone(),
        message,
    }
}
