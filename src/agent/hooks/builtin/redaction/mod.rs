//! `redaction`: removes patterns from everything that is sent to models and tools, and from everything that is stored or told.
//!
//! It looks at words. What it does not look at: the bytes of images and documents, what a provider has encrypted, signatures, ids of
//! calls, and what the agent's definition, the run's metadata and the variables say.

mod arguments;
mod content;
mod look;
mod patterns;
mod redactor;

#[cfg(test)]
mod worst_case;

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use self::patterns::Patterns;
use self::redactor::{MAX_GROWTH_OF_ALL, Redactor};
use crate::agent::hooks::{
    ExecutionPorts, Hook, HookContext, HookError, HookFactory, HookPoint, HookSubject, ToolDecision, ToolUse,
};
use crate::agent::ports::ModelRequest;
use crate::agent::state::{AgentError, ModelResponse, ToolExecution};
use crate::json::Object;
use crate::message::Message;

const NAME: &str = "redaction";

/// Makes hooks that redact.
#[derive(Debug)]
pub(super) struct RedactionFactory;

impl HookFactory for RedactionFactory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check(&self, config: &Object) -> Result<(), String> {
        Patterns::read(config).map(drop)
    }

    fn make(&self, config: &Object, _: &ExecutionPorts) -> Result<Arc<dyn Hook>, String> {
        Ok(Arc::new(Redaction(Patterns::read_attached(config)?)))
    }
}

#[derive(Debug)]
struct Redaction(Patterns);

impl Redactor<'_> {
    fn subject(&self, subject: HookSubject) -> HookSubject {
        match subject {
            HookSubject::Input(input) => {
                let redacted = input.into_iter().filter_map(|message| self.owned_message(message));
                HookSubject::Input(redacted.collect())
            }
            HookSubject::Request(request) => HookSubject::Request(Box::new(self.request(*request))),
            HookSubject::Response(response) => HookSubject::Response(Box::new(self.response(*response))),
            HookSubject::ToolUse(tool_use) => HookSubject::ToolUse(self.tool_use(tool_use)),
            HookSubject::ToolExecution(execution) => HookSubject::ToolExecution(Box::new(self.execution(*execution))),
            subject @ (HookSubject::State | HookSubject::Errors(_)) => subject,
        }
    }

    /// Messages without a match stay the same bytes, so that providers go on finding them in their caches.
    fn request(&self, request: ModelRequest) -> ModelRequest {
        let messages = request.messages.iter().filter_map(|message| {
            if self.patterns().finds_in_message(message) {
                self.message((**message).clone()).map(Arc::new)
            } else {
                Some(Arc::clone(message))
            }
        });
        ModelRequest {
            system: self.text(&request.system).into(),
            messages: messages.collect(),
            ..request
        }
    }

    fn owned_message(&self, message: Message) -> Option<Message> {
        if self.patterns().finds_in_message(&message) {
            self.message(message)
        } else {
            Some(message)
        }
    }

    fn response(&self, response: ModelResponse) -> ModelResponse {
        ModelResponse {
            content: self.content(response.content),
            provider_fields: response.provider_fields.and_then(|fields| self.provider_fields(fields)),
            ..response
        }
    }

    /// Another hook may have changed the arguments, or supplied the result.
    fn tool_use(&self, tool_use: ToolUse) -> ToolUse {
        let ToolUse { mut call, decision } = tool_use;
        call.arguments = self.arguments(&call.arguments);
        let decision = match decision {
            ToolDecision::Execute => ToolDecision::Execute,
            ToolDecision::Block { reason } => ToolDecision::Block {
                reason: self.text(&reason).into_owned(),
            },
            ToolDecision::Supply { content } => ToolDecision::Supply {
                content: self.content(content),
            },
        };
        ToolUse { call, decision }
    }

    fn execution(&self, execution: ToolExecution) -> ToolExecution {
        let error = execution.error.map(|error| AgentError {
            message: self.text(&error.message).into_owned(),
            ..error
        });
        ToolExecution {
            content: self.content(execution.content),
            error,
            ..execution
        }
    }
}

impl Hook for Redaction {
    fn name(&self) -> &'static str {
        NAME
    }

    fn points(&self) -> &[HookPoint] {
        &[
            HookPoint::BeforeExecution,
            HookPoint::BeforeModelRequest,
            HookPoint::AfterModelRequest,
            HookPoint::BeforeToolUse,
            HookPoint::AfterToolUse,
        ]
    }

    fn call(&self, context: HookContext) -> BoxFuture<'_, Result<HookContext, HookError>> {
        let subject = Redactor::new(&self.0, MAX_GROWTH_OF_ALL).subject(context.subject);
        Box::pin(ready(Ok(HookContext { subject, ..context })))
    }

    fn holds_back_deltas(&self) -> bool {
        true
    }
}
