//! What drivers work with: models, tools, hooks and limits. Drivers are given these and look
//! nothing up.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::agent::call_key::CallSeed;
use crate::agent::compilers::Compiler;
use crate::agent::control::ExecutionControl;
use crate::agent::events::EventSink;
use crate::agent::hooks::HookStack;
use crate::agent::ports::{Model, ToolExecutor};
use crate::agent::recorder::Recorder;
use crate::agent::response_format::FormatCache;
use crate::agent::state::{FinishReason, ModelResponse};
use crate::clock::Timestamp;
use crate::ids::{IdSource, MessageId};
use crate::json::Value;
use crate::message::{ContentPart, Message, MessageTags, Role};
use crate::model_parameters::{ModelParameters, ProviderTools};
use crate::model_ref::ModelRef;
use crate::tenant::TenantId;
use crate::usage::{Price, Usage};

/// A model that may be asked.
#[derive(Debug, Clone)]
pub struct ModelChoice {
    /// Its name.
    pub model_ref: ModelRef,
    /// Answers.
    pub model: Arc<dyn Model>,
    /// What its tokens cost, if it is known.
    pub price: Option<Price>,
}

/// The models that may be asked, in turn; at least one.
#[derive(Debug, Clone)]
pub struct ModelChain {
    preferred: ModelChoice,
    fallbacks: Arc<[ModelChoice]>,
}

impl ModelChain {
    /// Makes a chain.
    pub fn new(preferred: ModelChoice, fallbacks: impl IntoIterator<Item = ModelChoice>) -> Self {
        Self {
            preferred,
            fallbacks: fallbacks.into_iter().collect(),
        }
    }

    /// Returns the model that is asked first.
    pub fn preferred(&self) -> &ModelChoice {
        &self.preferred
    }

    /// Returns the first model whose price is not known.
    pub fn unpriced(&self) -> Option<&ModelRef> {
        let choice = self.iter().find(|choice| choice.price.is_none())?;
        Some(&choice.model_ref)
    }

    /// Iterates in the order in which the models are asked.
    pub fn iter(&self) -> impl Iterator<Item = &ModelChoice> {
        std::iter::once(&self.preferred).chain(self.fallbacks.iter())
    }
}

/// What a driver works with.
#[derive(Debug, Clone)]
pub struct DriverPorts {
    /// Whom the work is done for.
    pub tenant: TenantId,
    /// The models, the preferred one first.
    pub models: ModelChain,
    /// The parameters where the state has none.
    pub parameters: Arc<ModelParameters>,
    /// Tools that providers execute themselves.
    pub provider_tools: Arc<ProviderTools>,
    /// Executes calls.
    pub tools: Arc<dyn ToolExecutor>,
    /// What the keys of calls are derived from.
    pub call_seed: CallSeed,
    /// Records the calls of steps, where the execution has a journal.
    pub journal: Option<Arc<Recorder>>,
    /// Whether the calls of one completion work at the same time.
    pub parallel_tool_calls: bool,
    /// Compiles response formats.
    pub formats: Arc<FormatCache>,
    /// How often a completion that does not fit may be corrected.
    pub max_corrections: u32,
    /// Chooses the messages of requests.
    pub compiler: Arc<dyn Compiler>,
    /// The hooks around model requests and tool calls.
    pub hooks: Arc<HookStack>,
    /// Bounds the execution.
    pub control: Arc<ExecutionControl>,
    /// The environment's variables.
    pub variables: Arc<BTreeMap<String, Value>>,
    /// Makes ids.
    pub ids: Arc<dyn IdSource>,
    /// Receives all events.
    pub events: Arc<dyn EventSink>,
}

/// What one exchange with models works with.
#[derive(Debug, Clone, Copy)]
pub(super) struct ExchangePorts<'a> {
    pub(super) tenant: &'a TenantId,
    pub(super) models: &'a ModelChain,
    pub(super) hooks: &'a HookStack,
    pub(super) control: &'a ExecutionControl,
    pub(super) ids: &'a dyn IdSource,
    pub(super) events: &'a dyn EventSink,
}

impl DriverPorts {
    /// Returns what an exchange needs of them.
    pub(super) fn for_exchange(&self) -> ExchangePorts<'_> {
        ExchangePorts {
            tenant: &self.tenant,
            models: &self.models,
            hooks: &self.hooks,
            control: &self.control,
            ids: &*self.ids,
            events: &*self.events,
        }
    }

    /// Returns the time.
    pub fn now(&self) -> Timestamp {
        self.control.now()
    }

    /// Makes a message of now.
    pub fn message(&self, role: Role, content: Vec<ContentPart>) -> Message {
        Message::new(MessageId::generate(&*self.ids), role, content, self.now())
    }

    /// Makes the message of a completion. Its `context_tokens` exclude failed attempts. Returns
    /// `None` for a completion without content, since providers refuse empty messages.
    pub fn assistant_message(&self, response: &ModelResponse, failed_usage: Usage) -> Option<Arc<Message>> {
        if response.content.is_empty() && response.provider_fields.is_none() {
            return None;
        }
        let usage = response.usage.since(failed_usage);
        let tokens = usage.input_tokens.saturating_add(usage.output_tokens);
        let tags = MessageTags {
            is_partial: response.finish_reason == FinishReason::Interrupted,
            context_tokens: (tokens > 0).then_some(tokens),
            ..MessageTags::default()
        };
        let message = self.message(Role::Assistant, response.content.clone()).with_tags(tags);
        Some(Arc::new(Message {
            provider_fields: response.provider_fields.clone(),
            ..message
        }))
    }
}
