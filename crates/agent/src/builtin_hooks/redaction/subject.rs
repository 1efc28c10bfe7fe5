//! Redacts the subject of a hook point off the async workers, or withholds it.

use std::mem::take;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::patterns::Patterns;
use super::redactor::Redactor;
use crate::hooks::HookSubject;
use crate::ports::ToolDecision;
use tasks::off_thread::off_thread;
use values::message::Message;
use values::tenant::TenantId;

/// The longest search of the texts of one subject. Ordinary texts take milliseconds; a search at
/// each letter of a long text takes hours.
const MAX_TIME: Duration = Duration::from_secs(10);
/// The text that replaces withheld content.
const WITHHELD: &str = "The run ended before this was redacted.";

/// Redacts a subject. If the future is dropped, the subject has lost some parts, and other parts
/// are not redacted.
pub(super) async fn redact(tenant: &TenantId, patterns: &Arc<Patterns>, subject: &mut HookSubject) {
    match subject {
        HookSubject::Input(input) => {
            let messages = take(input);
            let redact = move |redactor: &Redactor<'_>| {
                let messages = redactor.messages(messages.into_iter().map(Arc::new));
                messages.into_iter().map(Arc::unwrap_or_clone).collect()
            };
            *input = redacted(tenant, patterns, redact).await;
        }
        HookSubject::Request(request) => {
            let (system, messages) = (Arc::clone(&request.system), request.messages.clone());
            let redact = move |redactor: &Redactor<'_>| {
                let clean = redactor.text(&system).map_or(system, Arc::from);
                (clean, redactor.messages(messages.iter().cloned()).into())
            };
            (request.system, request.messages) = redacted(tenant, patterns, redact).await;
        }
        HookSubject::Response(response) => {
            let (content, fields) = (take(&mut response.content), response.provider_fields.take());
            let redact = move |redactor: &Redactor<'_>| {
                let fields = fields.and_then(|fields| redactor.provider_fields(fields));
                (redactor.content(&content).unwrap_or(content), fields)
            };
            (response.content, response.provider_fields) = redacted(tenant, patterns, redact).await;
        }
        // Another hook may have changed the arguments, or supplied the result.
        HookSubject::ToolUse(tool_use) => {
            let (arguments, decision) = (take(&mut tool_use.call.arguments), take(&mut tool_use.decision));
            let redact = move |redactor: &Redactor<'_>| {
                let decision = redactor.decision(decision);
                (redactor.arguments(&arguments).unwrap_or(arguments), decision)
            };
            (tool_use.call.arguments, tool_use.decision) = redacted(tenant, patterns, redact).await;
        }
        HookSubject::ToolExecution(execution) => {
            let content = take(&mut execution.content);
            let message = execution.error.as_mut().map(|error| take(&mut error.message));
            let redact = move |redactor: &Redactor<'_>| {
                let message = message.map(|message| redactor.text(&message).unwrap_or(message));
                (redactor.content(&content).unwrap_or(content), message)
            };
            let (content, message) = redacted(tenant, patterns, redact).await;
            execution.content = content;
            if let Some((error, message)) = execution.error.as_mut().zip(message) {
                error.message = message;
            }
        }
        HookSubject::State | HookSubject::Errors(_) => (),
    }
}

/// Does the work off the async workers. If the future is dropped, the work stops after the search
/// in progress.
async fn redacted<T: Send + 'static>(
    tenant: &TenantId,
    patterns: &Arc<Patterns>,
    redact: impl FnOnce(&Redactor<'_>) -> T + Send + 'static,
) -> T {
    let (patterns, given_up) = (Arc::clone(patterns), CancellationToken::new());
    let _gives_up = given_up.clone().drop_guard();
    let work = move || {
        let begun = Instant::now();
        let is_over = || given_up.is_cancelled() || begun.elapsed() >= MAX_TIME;
        redact(&Redactor::new(&patterns, &is_over))
    };
    off_thread(tenant, work).await
}

impl Redactor<'_> {
    /// Redacts messages. Messages without a match stay the same, so that the prompt caches of
    /// providers still match them.
    fn messages(&self, messages: impl Iterator<Item = Arc<Message>>) -> Vec<Arc<Message>> {
        messages.filter_map(|message| self.message(message)).collect()
    }

    fn decision(&self, decision: ToolDecision) -> ToolDecision {
        match decision {
            ToolDecision::Execute => ToolDecision::Execute,
            ToolDecision::Block { reason, by } => ToolDecision::Block {
                reason: self.text(&reason).unwrap_or(reason),
                by,
            },
            ToolDecision::Supply { content, is_error } => ToolDecision::Supply {
                is_error,
                content: self.content(&content).unwrap_or(content),
            },
        }
    }
}

/// Replaces all content that may not be redacted yet.
pub(super) fn withhold(subject: &mut HookSubject) {
    match subject {
        HookSubject::Input(input) => input.clear(),
        HookSubject::Request(request) => {
            request.system = "".into();
            request.messages = [].into();
        }
        HookSubject::ToolUse(tool_use) => "{}".clone_into(&mut tool_use.call.arguments),
        HookSubject::State | HookSubject::Response(_) | HookSubject::ToolExecution(_) | HookSubject::Errors(_) => (),
    }
    subject.withhold(WITHHELD);
}
