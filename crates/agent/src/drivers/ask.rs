//! Lets a hook ask the agent's model a question: one request and one completion, without events.
//!
//! The hooks around model requests see both, so redaction applies to them too. The cost counts
//! against the execution's budget, and the same limits cut the request.

use std::sync::Arc;

use super::deltas::Emitted;
use super::exchange::{Exchange, exchange};
use super::ports::ExchangePorts;
use crate::hooks::ExecutionPorts;
use crate::ports::ModelRequest;
use crate::state::AgentState;
use values::ids::MessageId;
use values::message::{Message, Role, joined_text};
use values::model_parameters::ToolChoice;
use values::model_ref::ResponseFormat;

/// A question to a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// Model parameters.
    pub instructions: String,
    /// The text of the question.
    pub text: String,
    /// The most output tokens.
    pub max_output_tokens: u64,
}

/// The error instead of a completion, with a message for the caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The hooks around model requests are not known yet, and no request may bypass them.
    #[error("no model can be asked before the hooks of the execution are complete")]
    TooEarly,
    /// The caller cancelled or stopped the execution, its budget is spent, or the completion is not
    /// whole.
    #[error("{0}")]
    Cut(String),
    /// The model failed.
    #[error("the model failed: {0}")]
    Model(String),
    /// A hook around the request failed.
    #[error("{0}")]
    Hook(String),
}

/// Calls the agent's models in turn until one succeeds; returns the text of the completion.
///
/// The returned state includes the usage of the question.
pub async fn ask(
    ports: &ExecutionPorts,
    state: AgentState,
    question: Question,
) -> (AgentState, Result<String, AskError>) {
    let Some(hooks) = ports.stack.get() else {
        return (state, Err(AskError::TooEarly));
    };
    let control = &*ports.control;
    let mut forbidden = control
        .called_off()
        .into_iter()
        .chain(control.limits_before_step(&state));
    if let Some(signal) = forbidden.find(|signal| signal.is_binding) {
        return (state, Err(AskError::Cut(signal.message)));
    }
    let exchange_ports = ExchangePorts {
        tenant: &ports.tenant,
        models: &ports.models,
        hooks: &hooks,
        control,
        ids: &*ports.ids,
        events: &*ports.events,
    };
    let request = request(ports, question);
    let (state, asked) = exchange(exchange_ports, state, request, Emitted::Nothing).await;
    let response = asked.response.as_ref();
    let usage = response.map(|response| response.usage).unwrap_or_default();
    (state.with_hook_usage(usage, control.now()), reply_of(asked))
}

fn request(ports: &ExecutionPorts, question: Question) -> ModelRequest {
    let id = MessageId::generate(&*ports.ids);
    let message = Message::text(id, Role::User, question.text, ports.control.now());
    ModelRequest {
        model: String::new(),
        system: question.instructions.into(),
        messages: [Arc::new(message)].into(),
        tools: Arc::from([]),
        provider_tools: Arc::default(),
        tool_choice: ToolChoice::Auto,
        response_format: ResponseFormat::Text,
        max_output_tokens: Some(question.max_output_tokens),
        parameters: Arc::default(),
        trace: None,
    }
}

fn reply_of(asked: Exchange) -> Result<String, AskError> {
    if let Some(failure) = asked.hook_failure {
        return Err(AskError::Hook(failure.to_string()));
    }
    if let Some(signal) = asked.signal {
        return Err(AskError::Cut(signal.message));
    }
    match (asked.response, asked.error) {
        (Some(response), None) => match response.finish_reason.cut() {
            Some(cut) => Err(AskError::Cut(format!("the answer is not complete: {cut}"))),
            None if response.is_refusal() => Err(AskError::Model("it refused".to_owned())),
            None => Ok(joined_text(&response.content)),
        },
        (_, error) => {
            let message = error.map_or_else(|| "there is no answer".to_owned(), |error| error.message);
            Err(AskError::Model(message))
        }
    }
}
