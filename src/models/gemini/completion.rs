//! Builds one completion from its parts. Knows neither streams nor bytes.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::executed::Executed;
use super::usage::Counts;
use crate::agent::ports::ModelEvent;
use crate::agent::state::{FinishReason, ModelResponse};
use crate::ids::IdSource;
use crate::json::RawJson;
use crate::message::{Citation, ContentPart, OpaquePart, ProviderFields, ReasoningPart, TextPart};
use crate::models::calls::{Beginning, CallFault, CallMaker, extras};
use crate::models::room::{Full, Room};
use crate::models::settings::CapSettings;
use crate::models::sources::Sources;
use crate::models::wire::{self, Fields};
use crate::usage::Usage;

/// The most characters of the provider's explanation of a finish reason.
const REASON_CHARS: usize = 500;

/// A completion that is being assembled.
#[derive(Debug)]
pub(super) struct Completion {
    parts: Vec<ContentPart>,
    citations: Vec<Citation>,
    room: Room,
    sources: Sources,
    calls: CallMaker,
    counts: Counts,
    executed: Executed,
    usage: Usage,
    finish_reason: Option<String>,
    finish_message: Option<String>,
    /// Why the provider refused the prompt.
    block_reason: Option<String>,
    model: Option<String>,
    response_id: Option<String>,
}

/// Why the parts make no completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// A call can't begin.
    Call(CallFault),
    /// There are more parts and citations than allowed.
    Full(Full),
}

impl Completion {
    /// Makes an empty completion.
    pub(super) fn new(ids: Arc<dyn IdSource>, caps: CapSettings) -> Self {
        Self {
            parts: Vec::new(),
            citations: Vec::new(),
            room: Room::new(caps.parts),
            sources: Sources::default(),
            calls: CallMaker::new(ids, caps.tool_calls),
            counts: Counts::default(),
            executed: Executed::default(),
            usage: Usage::default(),
            finish_reason: None,
            finish_message: None,
            block_reason: None,
            model: None,
            response_id: None,
        }
    }

    /// Returns whether the provider has sent the finish reason.
    pub(super) fn is_finished(&self) -> bool {
        self.finish_reason.is_some() || self.is_blocked()
    }

    /// Returns whether the provider refused the prompt.
    pub(super) fn is_blocked(&self) -> bool {
        self.block_reason.is_some()
    }

    /// Takes the fields around the candidates.
    pub(super) fn take_envelope(&mut self, chunk: &Fields<'_>) {
        self.model = self.model.take().or_else(|| chunk.filled("modelVersion"));
        self.response_id = self.response_id.take().or_else(|| chunk.filled("responseId"));
        if let Some(usage) = chunk.object("usageMetadata") {
            self.counts.take(&usage);
        }
        if let Some(feedback) = chunk.object("promptFeedback")
            && let Some(reason) = reason(&feedback, "blockReason")
        {
            self.finish_message = feedback.filled("blockReasonMessage").or(self.finish_message.take());
            self.block_reason = Some(reason);
        }
    }

    /// Takes the next parts and the other fields of the candidate.
    pub(super) fn take_candidate(&mut self, candidate: &Fields<'_>, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let content = candidate.object("content").unwrap_or_default();
        for part in content.list("parts").unwrap_or_default() {
            self.take_part(part, events)?;
        }
        self.take_sources(candidate)?;
        self.executed.take_candidate(candidate);
        self.finish_message = candidate.filled("finishMessage").or(self.finish_message.take());
        self.finish_reason = reason(candidate, "finishReason").or(self.finish_reason.take());
        Ok(())
    }

    /// Returns the usage if it has changed since it was last asked for.
    pub(super) fn changed_usage(&mut self) -> Option<Usage> {
        let usage = self.counts.usage();
        let is_new = usage != self.usage;
        self.usage = usage;
        is_new.then_some(usage)
    }

    fn take_part(&mut self, raw: &RawValue, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let part = wire::object(raw).unwrap_or_default();
        if let Some(call) = part.object("functionCall") {
            return self.take_call(&call, &part, events);
        }
        let is_thought = part.get("thought").is_some_and(|raw| raw.get() == "true");
        let signature = part.filled("thoughtSignature");
        let mut others = part.iter().map(|(name, _)| name);
        if part.has("text") || others.all(|name| matches!(name, "thought" | "thoughtSignature")) {
            let text = part.text("text").unwrap_or_default();
            return if is_thought {
                self.take_thought(text, signature, events)
            } else {
                self.take_text(text, signature, events)
            };
        }
        self.executed.take_part(&part);
        self.push(ContentPart::Opaque(OpaquePart {
            // The provider's name is filled in at the end.
            provider: String::new(),
            raw: RawJson::new(raw.get()),
        }))
    }

    /// Takes words. A part with a signature stays by itself: it has to go back as it came.
    fn take_text(
        &mut self,
        text: String,
        signature: Option<String>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        if !text.is_empty() {
            events.push(ModelEvent::TextDelta { text: text.clone() });
        }
        match self.parts.last_mut() {
            _ if text.is_empty() && signature.is_none() => Ok(()),
            Some(ContentPart::Text(last)) if last.signature.is_none() && signature.is_none() => {
                last.text.push_str(&text);
                Ok(())
            }
            _ => self.push(ContentPart::Text(TextPart {
                text,
                signature,
                citations: Vec::new(),
            })),
        }
    }

    /// Takes thoughts, which are joined as words are.
    fn take_thought(
        &mut self,
        text: String,
        signature: Option<String>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        if !text.is_empty() {
            events.push(ModelEvent::ReasoningDelta { text: text.clone() });
        }
        match self.parts.last_mut() {
            _ if text.is_empty() && signature.is_none() => Ok(()),
            Some(ContentPart::Reasoning(last)) if last.signature.is_none() && signature.is_none() => {
                last.text.push_str(&text);
                Ok(())
            }
            _ => self.push(ContentPart::Reasoning(ReasoningPart {
                text,
                signature,
                ..ReasoningPart::default()
            })),
        }
    }

    /// Takes a call, which comes whole. The other fields of its part go back with it.
    fn take_call(&mut self, call: &Fields<'_>, part: &Fields<'_>, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let beginning = Beginning {
            id: call.filled("id"),
            name: call.filled("name"),
            arguments: call.get("args").map(|raw| raw.get().to_owned()),
            extras: extras(part, &["functionCall"]),
        };
        let mut call = self.calls.begin(beginning, events).map_err(Fault::Call)?;
        call.close(events);
        self.push(ContentPart::ToolCall(call.finish()))
    }

    /// Takes the sources of the completion: each quoted one, and what a search found as a whole,
    /// since its parts refer to each other. Each chunk may name all of them.
    fn take_sources(&mut self, candidate: &Fields<'_>) -> Result<(), Fault> {
        let quoted = candidate.object("citationMetadata").unwrap_or_default();
        let quoted = ["citationSources", "citations"]
            .into_iter()
            .find_map(|name| quoted.list(name));
        let found = ["groundingMetadata", "urlContextMetadata"];
        let found = found.into_iter().filter_map(|name| candidate.get(name));
        let found = found.filter(|raw| wire::object(raw).is_some_and(|fields| fields.iter().next().is_some()));
        let named = quoted.into_iter().flatten().chain(found);
        let new = self.sources.take_new(named, &mut self.room).map_err(Fault::Full)?;
        self.citations.extend(new);
        Ok(())
    }

    fn push(&mut self, part: ContentPart) -> Result<(), Fault> {
        self.room.take(1).map_err(Fault::Full)?;
        self.parts.push(part);
        Ok(())
    }

    /// Returns why the completion is unusable: the provider lost a tool call of the model.
    pub(super) fn breakdown(&self) -> Option<String> {
        let reason = self.finish_reason.as_deref().filter(|_| self.calls.made() == 0)?;
        let is_lost = matches!(
            reason,
            "MALFORMED_FUNCTION_CALL" | "MALFORMED_RESPONSE" | "UNEXPECTED_TOOL_CALL" | "MISSING_THOUGHT_SIGNATURE"
        );
        is_lost.then(|| self.words(&format!("the model's response ended with {reason}")))
    }

    /// Returns the whole completion.
    pub(super) fn finish(mut self, provider: &str, events: &mut Vec<ModelEvent>) -> ModelResponse {
        self.refuse_if_empty(events);
        self.cite();
        for part in &mut self.parts {
            if let ContentPart::Opaque(part) = part {
                provider.clone_into(&mut part.provider);
            }
        }
        let reason = self.finish_reason.as_deref().filter(|_| self.block_reason.is_none());
        ModelResponse {
            // The name alone: signatures go back to this provider.
            provider_fields: self.parts.iter().any(is_owned).then(|| ProviderFields {
                provider: provider.to_owned(),
                fields: Vec::new(),
            }),
            finish_reason: match (reason, self.is_blocked()) {
                (_, true) => FinishReason::ContentFilter,
                (reason, false) => finish_reason(reason, self.calls.made() > 0),
            },
            content: self.parts,
            usage: self.usage,
            provider_tool_calls: self.executed.counts(),
            model: self.model,
            response_id: self.response_id,
        }
    }

    /// Adds a refusal if there is no content and the provider has given a reason.
    fn refuse_if_empty(&mut self, events: &mut Vec<ModelEvent>) {
        let is_content = |part: &ContentPart| match part {
            ContentPart::Text(part) => !part.text.is_empty(),
            ContentPart::Reasoning(_) => false,
            _ => true,
        };
        if self.parts.iter().any(is_content) {
            return;
        }
        let text = match (&self.block_reason, self.finish_reason.as_deref()) {
            (Some(reason), _) => self.words(&format!("The provider blocked the prompt: {reason}")),
            (None, None | Some("STOP" | "MAX_TOKENS")) => return,
            (None, Some(reason)) => self.words(&format!("The provider ended the response: {reason}")),
        };
        events.push(ModelEvent::RefusalDelta { text: text.clone() });
        self.parts.push(ContentPart::Refusal { text });
    }

    fn words(&self, beginning: &str) -> String {
        match &self.finish_message {
            Some(message) => {
                let message: String = message.chars().take(REASON_CHARS).collect();
                format!("{beginning}: {}", message.trim())
            }
            None => beginning.to_owned(),
        }
    }

    /// Attaches the sources to the last text of the completion.
    fn cite(&mut self) {
        if self.citations.is_empty() {
            return;
        }
        let citations = std::mem::take(&mut self.citations);
        let texts = self.parts.iter_mut().rev().filter_map(|part| match part {
            ContentPart::Text(part) => Some(part),
            _ => None,
        });
        match texts.into_iter().next() {
            Some(last) => last.citations = citations,
            None => self.parts.push(ContentPart::Text(TextPart {
                citations,
                ..TextPart::default()
            })),
        }
    }
}

fn reason(fields: &Fields<'_>, name: &str) -> Option<String> {
    fields.filled(name).filter(|reason| !reason.ends_with("_UNSPECIFIED"))
}

/// Returns whether a part has something that goes back to its provider alone.
fn is_owned(part: &ContentPart) -> bool {
    match part {
        ContentPart::Text(part) => part.signature.is_some(),
        // Thoughts without a signature, too: no other model has thought them.
        ContentPart::Reasoning(_) => true,
        ContentPart::ToolCall(call) => call.signature.is_some(),
        _ => false,
    }
}

/// The protocol reports a completion with calls as complete. A whole completion without a reason
/// gets the obvious one.
fn finish_reason(reason: Option<&str>, has_calls: bool) -> FinishReason {
    match reason {
        None | Some("STOP") if has_calls => FinishReason::ToolCalls,
        None | Some("STOP") => FinishReason::Stop,
        Some("MAX_TOKENS") => FinishReason::Length,
        Some(
            "SAFETY"
            | "RECITATION"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION",
        ) => FinishReason::ContentFilter,
        Some(other) => FinishReason::Other(other.to_owned()),
    }
}
