//! Redacts what a point is about off the async workers, in pieces: between two of them the work can be given up.

use std::mem::take;
use std::sync::Arc;

use super::patterns::Patterns;
use super::redactor::{MAX_GROWTH_OF_ALL, Redactor};
use crate::agent::hooks::{HookSubject, ToolDecision};
use crate::message::{ContentPart, Message, content_weight, message_weight};
use crate::off_thread::by_size;
use crate::tenant::TenantId;

/// How many bytes of messages make a piece.
const PIECE: usize = 1 << 20;
/// What is read in place of what was given up.
const WITHHELD: &str = "The run ended before this was redacted.";

/// The work on one subject.
#[derive(Debug)]
pub(super) struct Pieces<'a> {
    tenant: &'a TenantId,
    patterns: &'a Arc<Patterns>,
    /// The bytes that the texts may still grow by.
    room: usize,
}

impl<'a> Pieces<'a> {
    /// Redacts for a tenant.
    pub(super) fn new(tenant: &'a TenantId, patterns: &'a Arc<Patterns>) -> Self {
        Self {
            tenant,
            patterns,
            room: MAX_GROWTH_OF_ALL,
        }
    }

    /// Redacts a subject. One whose work is dropped has lost some parts, and has others that are not redacted.
    pub(super) async fn redact(mut self, subject: &mut HookSubject) {
        match subject {
            HookSubject::Input(input) => {
                let messages = take(input).into_iter().map(Arc::new).collect();
                let redacted = self.messages(messages).await.into_iter();
                *input = redacted.map(Arc::unwrap_or_clone).collect();
            }
            HookSubject::Request(request) => {
                let system = Arc::clone(&request.system);
                let redact = move |redactor: &Redactor<'_>| redactor.text(&system).into();
                request.system = self.piece(request.system.len(), redact).await;
                request.messages = self.messages(request.messages.to_vec()).await.into();
            }
            HookSubject::Response(response) => {
                let (content, fields) = (take(&mut response.content), response.provider_fields.take());
                let words = content_weight(&content);
                let raw = fields.iter().flat_map(|fields| &fields.fields);
                let raw: usize = raw.map(|(_, raw)| raw.as_str().len()).sum();
                let redact = move |redactor: &Redactor<'_>| {
                    let fields = fields.and_then(|fields| redactor.provider_fields(fields));
                    (redactor.content(content), fields)
                };
                (response.content, response.provider_fields) = self.piece(raw + words, redact).await;
            }
            // Another hook may have changed the arguments, or supplied the result.
            HookSubject::ToolUse(tool_use) => {
                let arguments = take(&mut tool_use.call.arguments);
                let bytes = arguments.len();
                let redact = move |redactor: &Redactor<'_>| redactor.arguments(&arguments);
                tool_use.call.arguments = self.piece(bytes, redact).await;
                tool_use.decision = self.decision(take(&mut tool_use.decision)).await;
            }
            HookSubject::ToolExecution(execution) => {
                execution.content = self.content(take(&mut execution.content)).await;
                if let Some(error) = &mut execution.error {
                    error.message = self.text(take(&mut error.message)).await;
                }
            }
            HookSubject::State | HookSubject::Errors(_) => (),
        }
    }

    /// Messages without a match stay the same, so that providers go on finding them in their caches.
    async fn messages(&mut self, messages: Vec<Arc<Message>>) -> Vec<Arc<Message>> {
        let mut redacted = Vec::with_capacity(messages.len());
        let mut messages = messages.into_iter();
        loop {
            let (mut piece, mut bytes) = (Vec::new(), 0);
            while bytes < PIECE
                && let Some(message) = messages.next()
            {
                bytes += message_weight(&message);
                piece.push(message);
            }
            if piece.is_empty() {
                return redacted;
            }
            let redact = move |redactor: &Redactor<'_>| -> Vec<_> {
                let messages = piece.into_iter();
                messages.filter_map(|message| redactor.message(message)).collect()
            };
            redacted.extend(self.piece(bytes, redact).await);
        }
    }

    async fn decision(&mut self, decision: ToolDecision) -> ToolDecision {
        match decision {
            ToolDecision::Execute => ToolDecision::Execute,
            ToolDecision::Block { reason } => ToolDecision::Block {
                reason: self.text(reason).await,
            },
            ToolDecision::Supply { content } => ToolDecision::Supply {
                content: self.content(content).await,
            },
        }
    }

    async fn content(&mut self, content: Vec<ContentPart>) -> Vec<ContentPart> {
        let bytes = content_weight(&content);
        self.piece(bytes, move |redactor| redactor.content(content)).await
    }

    async fn text(&mut self, text: String) -> String {
        let bytes = text.len();
        self.piece(bytes, move |redactor| redactor.text(&text).into_owned())
            .await
    }

    async fn piece<T: Send + 'static>(
        &mut self,
        bytes: usize,
        redact: impl FnOnce(&Redactor<'_>) -> T + Send + 'static,
    ) -> T {
        let (patterns, room) = (Arc::clone(self.patterns), self.room);
        let redacted = by_size(self.tenant, patterns.cost(bytes), move || {
            let redactor = Redactor::new(&patterns, room);
            (redact(&redactor), redactor.room())
        });
        let (redacted, room) = redacted.await;
        self.room = room;
        redacted
    }
}

/// Removes all that may not be redacted.
pub(super) fn withhold(subject: &mut HookSubject) {
    match subject {
        HookSubject::Input(input) => input.clear(),
        HookSubject::Request(request) => {
            request.system = "".into();
            request.messages = [].into();
        }
        HookSubject::Response(response) => {
            response.content.clear();
            response.provider_fields = None;
        }
        HookSubject::ToolUse(tool_use) => {
            "{}".clone_into(&mut tool_use.call.arguments);
            let reason = WITHHELD.to_owned();
            tool_use.decision = ToolDecision::Block { reason };
        }
        HookSubject::ToolExecution(execution) => {
            execution.content = vec![ContentPart::text(WITHHELD)];
            if let Some(error) = &mut execution.error {
                WITHHELD.clone_into(&mut error.message);
            }
        }
        HookSubject::State | HookSubject::Errors(_) => (),
    }
}
