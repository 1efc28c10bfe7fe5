//! The port to models: a normalised request in, a stream of normalised events out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;
use serde::Deserialize;

use super::tool::ToolSpec;
use crate::run_error::RunErrorCode;
use crate::state::{AgentError, ErrorKind, Messages, ModelResponse};
use values::json::{Object, Value};
use values::message::{ContentPart, Message};
use values::model_parameters::{ModelParameters, ProviderTools, ToolChoice};
use values::model_ref::{ModelRef, ResponseFormat};
use values::trace_context::TraceContext;
use values::usage::Usage;

/// A request to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The provider's own name for the model.
    pub model: String,
    /// Instructions above the conversation; empty for none.
    pub system: Arc<str>,
    /// The conversation. Every tool call in it has exactly one result.
    pub messages: Messages,
    /// The tools that the model may call, in a stable order.
    pub tools: Arc<[ToolSpec]>,
    /// Tools that providers execute themselves, by provider. A model uses the tools of its own
    /// provider.
    pub provider_tools: Arc<ProviderTools>,
    /// The tools that the model may or must call in this completion.
    pub tool_choice: ToolChoice,
    /// The format of the final completion.
    pub response_format: ResponseFormat,
    /// The most output tokens: the smaller of the parameter and the rest of the budget.
    pub max_output_tokens: Option<u64>,
    /// Model parameters.
    pub parameters: Arc<ModelParameters>,
    /// The span of the request, if the run is recorded. Set when the request is sent.
    pub trace: Option<TraceContext>,
}

impl ModelRequest {
    /// Limits the completion to so many tokens.
    pub(crate) fn limit_output(&mut self, tokens: u64) {
        self.max_output_tokens = Some(self.max_output_tokens.map_or(tokens, |most| most.min(tokens)));
    }

    /// Returns the tools that the provider executes itself. Tools in the agent's `extra` are sent
    /// as well.
    pub fn tools_of_provider(&self, provider: &str) -> Vec<&Object> {
        let own = self.provider_tools.get(provider).into_iter().flatten();
        let extra = self.parameters.extra.get("tools").and_then(Value::as_array);
        own.chain(extra.into_iter().flatten().filter_map(Value::as_object))
            .collect()
    }
}

/// The way in which a provider is asked for structured output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StructuredOutput {
    /// The request contains the schema, and the provider enforces it.
    #[default]
    Native,
    /// The model calls a tool whose arguments are the response.
    Tool,
    /// The instructions describe the format.
    Prompt,
}

/// The events of one completion. The stream always ends with [`ModelEvent::Completed`] or an error.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

/// A model of a provider.
pub trait Model: Send + Sync + fmt::Debug {
    /// Calls the model. The request is sent when the stream is first polled. Dropping the stream
    /// ends the call.
    ///
    /// The stream may retry an attempt that fails before any output. It emits
    /// [`ModelEvent::AttemptFailed`] before the pause, and [`ModelEvent::AttemptBegun`] after it.
    /// After the first output, an error ends the stream.
    fn stream(&self, request: ModelRequest) -> ModelStream;

    /// Returns how the provider is asked for structured output. Only a native provider receives a
    /// [`ModelRequest::response_format`] other than text.
    fn structured_output(&self) -> StructuredOutput {
        StructuredOutput::Native
    }
}

/// Finds models by name.
pub trait ModelCatalog: Send + Sync + fmt::Debug {
    /// Returns the model.
    fn model(&self, name: &ModelRef) -> Result<Arc<dyn Model>, ModelLookupError>;

    /// Checks that a model has the name, even if its provider has no key yet.
    fn check(&self, name: &ModelRef) -> Result<(), ModelLookupError> {
        match self.model(name) {
            Ok(_) | Err(ModelLookupError::MissingKey { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Lists the models that the operator has named. A provider without a list offers further ones.
    fn names(&self) -> Vec<ModelRef> {
        Vec::new()
    }

    /// Lists the providers by name.
    fn providers(&self) -> Vec<ProviderInfo> {
        Vec::new()
    }
}

/// A provider of models, as the operator has configured it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProviderInfo {
    /// The name before the slash of a model's name.
    pub name: String,
    /// The protocol, as the configuration names it.
    pub kind: &'static str,
    /// The host and the port of its address; `None` if it has none.
    pub server: Option<(String, u16)>,
    /// Whether its credentials are there, or it needs none.
    pub has_credentials: bool,
    /// The models that the operator has named; empty for any.
    pub models: Vec<String>,
}

/// The error of a name that leads to no model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelLookupError {
    /// No provider has the name.
    #[error("no provider is named {provider:?}; known are {known}")]
    UnknownProvider {
        /// The name.
        provider: String,
        /// The names that exist, joined.
        known: String,
    },
    /// The provider does not offer the model.
    #[error("the provider {provider:?} does not offer the model {model:?}")]
    UnknownModel { provider: String, model: String },
    /// The provider needs a key that is not configured.
    #[error("the provider {provider:?} has no API key: set {variable}")]
    MissingKey {
        provider: String,
        /// The source of the key in the configuration.
        variable: String,
    },
    /// The protocol of the provider was not built in.
    #[error("this build can't reach the provider {provider:?}: build it with `--features {feature}`")]
    NotBuilt {
        provider: String,
        /// The feature of the build.
        feature: &'static str,
    },
}

/// A piece of a completion.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// More text.
    TextDelta {
        /// The words.
        text: String,
    },
    /// More reasoning.
    ReasoningDelta {
        /// The words.
        text: String,
    },
    /// More of a refusal.
    RefusalDelta {
        /// The words.
        text: String,
    },
    /// A tool call begins.
    ToolCallStarted {
        /// The index of the call in the completion, from 0.
        index: usize,
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// More of a call's arguments.
    ToolCallDelta {
        /// The index of the call.
        index: usize,
        /// A piece of the arguments' text.
        arguments: String,
    },
    /// The usage so far: a snapshot that replaces earlier ones.
    Usage(Usage),
    /// An attempt failed before any output and is to be retried. Later counts exclude its usage.
    AttemptFailed {
        /// The usage of the attempt.
        usage: Usage,
        /// The kind of its failure.
        class: ModelErrorClass,
    },
    /// Another attempt begins, after the pause that follows a failed one.
    AttemptBegun,
    /// The whole completion; the last event.
    Completed(Box<ModelResponse>),
}

/// The kind of failure of a model call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, strum::IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum ModelErrorClass {
    /// The key is missing, wrong or not allowed.
    Auth,
    /// Too many requests or no quota.
    RateLimit,
    /// The provider has no capacity.
    Overload,
    /// The conversation is longer than the model's context.
    Context,
    /// The provider refuses the request as malformed.
    Invalid,
    /// The provider's rules for contents forbid the request.
    Policy,
    /// The provider failed.
    Server,
    /// The connection failed.
    Network,
    /// Something took too long.
    Timeout,
    /// The response ended too early.
    Truncated,
    /// The response violates the protocol.
    Protocol,
}

impl ModelErrorClass {
    /// Returns the name, as JSON has it.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the stable code that callers see.
    pub fn code(self) -> &'static str {
        self.run_error().as_str()
    }

    fn run_error(self) -> RunErrorCode {
        match self {
            Self::Auth => RunErrorCode::ModelAuth,
            Self::RateLimit => RunErrorCode::ModelRateLimited,
            Self::Overload => RunErrorCode::ModelOverloaded,
            Self::Context => RunErrorCode::ModelContextExceeded,
            Self::Invalid | Self::Policy => RunErrorCode::ModelRequestRefused,
            Self::Server => RunErrorCode::ModelServerError,
            Self::Network => RunErrorCode::ModelUnreachable,
            Self::Timeout => RunErrorCode::ModelTimeout,
            Self::Truncated => RunErrorCode::ModelAnswerTruncated,
            Self::Protocol => RunErrorCode::ModelProtocolError,
        }
    }
}

/// The address of a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelAddress {
    /// The provider's configured name.
    pub provider: String,
    /// The scheme, the host and the port, which the caller may read.
    pub host: String,
    /// The whole address without its query, for the operator.
    pub url: String,
}

/// A model call that failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// The class of the failure.
    pub class: ModelErrorClass,
    /// The HTTP status, if there was one.
    pub status: Option<u16>,
    /// The wait that the provider asks for.
    pub retry_after: Option<Duration>,
    /// The message, in words that the caller may read: the provider's own message, truncated and
    /// without secrets.
    pub message: String,
    /// The address of the model; `None` for a model without one.
    pub address: Option<Arc<ModelAddress>>,
    /// The provider's error body, truncated, for the operator.
    pub body: Option<String>,
    /// The part of the request that the provider refuses, if it names one. A request without it
    /// may succeed.
    pub refused: Option<Box<RefusedPart>>,
    /// The underlying failure, for the operator.
    #[source]
    pub source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

/// A part of a request without which the request still makes sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefusedPart {
    /// The tool of this name.
    Tool(String),
    /// The schema of the response format.
    ResponseFormat,
    /// The pictures of the conversation.
    Pictures,
    /// The documents of the conversation.
    Documents,
    /// The model's earlier reasoning.
    Reasoning,
}

impl RefusedPart {
    /// Returns whether it is a part of messages.
    pub fn is_of_messages(&self) -> bool {
        matches!(self, Self::Pictures | Self::Documents | Self::Reasoning)
    }

    /// Returns whether it is this part of a message.
    pub fn is_content(&self, content: &ContentPart) -> bool {
        match self {
            Self::Tool(_) | Self::ResponseFormat => false,
            Self::Pictures => matches!(content, ContentPart::Image(_)),
            Self::Documents => matches!(content, ContentPart::Document(_)),
            Self::Reasoning => matches!(content, ContentPart::Reasoning(_)),
        }
    }

    /// Returns whether a message, or a result of a tool in it, has such a part.
    pub fn is_in(&self, message: &Message) -> bool {
        let results = message.tool_results().flat_map(|result| &result.content);
        message
            .content
            .iter()
            .chain(results)
            .any(|content| self.is_content(content))
    }

    /// Returns the text that the model reads instead; `None` for nothing.
    pub fn replacement(&self) -> Option<&'static str> {
        match self {
            Self::Pictures => Some("[a picture that you can't read]"),
            Self::Documents => Some("[a document that you can't read]"),
            Self::Tool(_) | Self::ResponseFormat | Self::Reasoning => None,
        }
    }
}

impl fmt::Display for RefusedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(name) => write!(f, "tool {name}"),
            Self::ResponseFormat => f.write_str("response format"),
            Self::Pictures => f.write_str("pictures"),
            Self::Documents => f.write_str("documents"),
            Self::Reasoning => f.write_str("reasoning"),
        }
    }
}

impl ModelError {
    /// Makes an error from a message.
    pub fn new(class: ModelErrorClass, message: impl Into<String>) -> Self {
        Self {
            class,
            status: None,
            retry_after: None,
            message: message.into(),
            address: None,
            body: None,
            refused: None,
            source: None,
        }
    }

    /// Returns the error as data of the execution.
    pub fn to_agent_error(&self, model: &ModelRef) -> AgentError {
        let kind = match self.class {
            ModelErrorClass::RateLimit => ErrorKind::RateLimit,
            ModelErrorClass::Timeout => ErrorKind::Timeout,
            _ => ErrorKind::Model,
        };
        AgentError {
            kind,
            code: self.class.code().to_owned(),
            message: self.caller_message(),
            source_name: Some(model.to_string()),
        }
    }

    /// Returns the message for the caller: what happened, and where.
    fn caller_message(&self) -> String {
        let Some(address) = &self.address else {
            return self.message.clone();
        };
        let status = self.status.map(|status| format!(", status {status}"));
        format!(
            "{} (provider {} at {}{})",
            self.message,
            address.provider,
            address.host,
            status.unwrap_or_default()
        )
    }
}
