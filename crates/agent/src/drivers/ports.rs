//! The ports of drivers: models, tools, hooks and limits. Drivers receive them and look nothing up.

use std::sync::Arc;

use crate::answers::AnswerRules;
use crate::call_key::CallSeed;
use crate::compilers::Compiler;
use crate::control::ExecutionControl;
use crate::events::EventSink;
use crate::hooks::HookStack;
use crate::journal::Recorder;
use crate::model_calls::ModelChain;
use crate::ports::ToolExecutor;
use crate::response_format::FormatCache;
use crate::state::{FinishReason, ModelResponse};
use values::clock::Timestamp;
use values::ids::{IdSource, MessageId};
use values::message::{ContentPart, Message, MessageTags, Role};
use values::model_parameters::{ModelParameters, ProviderTools};
use values::tenant::TenantId;
use values::usage::Usage;
use workspace::environment::Environment;

/// Everything that a driver uses.
#[derive(Debug, Clone)]
pub struct DriverPorts {
    /// The tenant of the run.
    pub tenant: TenantId,
    /// The models, the preferred one first.
    pub models: ModelChain,
    /// The model parameters, unless the state has its own.
    pub parameters: Arc<ModelParameters>,
    /// Tools that providers execute themselves.
    pub provider_tools: Arc<ProviderTools>,
    /// The rules for calls that need an answer of the caller.
    pub answers: Arc<AnswerRules>,
    /// Executes calls.
    pub tools: Arc<dyn ToolExecutor>,
    /// The seed of the keys of calls.
    pub call_seed: CallSeed,
    /// Records the calls of steps, if the execution has a journal.
    pub journal: Option<Arc<Recorder>>,
    /// Whether the calls of one completion run concurrently.
    pub parallel_tool_calls: bool,
    /// Compiles response formats.
    pub formats: Arc<FormatCache>,
    /// The most corrections of a completion that does not fit its format.
    pub max_corrections: u32,
    /// Chooses the messages of requests.
    pub compiler: Arc<dyn Compiler>,
    /// The hooks around model requests and tool calls.
    pub hooks: Arc<HookStack>,
    /// Bounds the execution.
    pub control: Arc<ExecutionControl>,
    /// The variables, the resources and the files of the execution.
    pub environment: Arc<Environment>,
    /// Makes ids.
    pub ids: Arc<dyn IdSource>,
    /// Receives all events.
    pub events: Arc<dyn EventSink>,
}

/// Everything that one exchange with models uses.
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
    /// Returns the ports that an exchange needs.
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

    /// Returns whether the agent has no such tool: the caller executes it, or no tool has the name.
    pub(super) fn is_foreign(&self, tool: &str) -> bool {
        let mut client_tools = self.answers.client_tools.iter();
        let is_callers = client_tools.any(|client_tool| client_tool.name == tool);
        is_callers || !self.tools.specs().iter().any(|spec| spec.name == tool)
    }

    /// Makes a message with the current time.
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
