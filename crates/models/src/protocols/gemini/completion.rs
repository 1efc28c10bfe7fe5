//! Builds one completion from its parts. Knows neither streams nor bytes.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::executed::Executed;
use super::usage::Counts;
use crate::calls::{Beginning, CallMaker, arguments_of};
use crate::delta::DeltaKind;
use crate::ending::{Ending, reason_of};
use crate::envelope::Envelope;
use crate::fault::Fault;
use crate::fields::{self, Fields, unknown_fields};
use crate::room::Room;
use crate::settings::CapSettings;
use crate::sources::Sources;
use agent::ports::ModelEvent;
use agent::state::{FinishReason, ModelResponse};
use values::ids::IdSource;
use values::json::RawJson;
use values::message::{Citation, ContentPart, OpaquePart, ProviderFields, TextPart};

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
    envelope: Envelope,
    ending: Ending,
    finish_message: Option<String>,
    /// The provider's last reason in its words.
    last_reason: Option<String>,
    /// The reason why the provider refused the prompt.
    block_reason: Option<String>,
}

impl Completion {
    /// Makes an empty completion of the provider.
    pub(super) fn new(provider: &str, ids: Arc<dyn IdSource>, caps: CapSettings) -> Self {
        Self {
            parts: Vec::new(),
            citations: Vec::new(),
            room: Room::new(caps.parts),
            sources: Sources::default(),
            calls: CallMaker::new(ids, caps.tool_calls),
            counts: Counts::default(),
            executed: Executed::default(),
            envelope: Envelope::new(provider),
            ending: Ending::default(),
            finish_message: None,
            last_reason: None,
            block_reason: None,
        }
    }

    /// Returns whether the provider has sent the finish reason.
    pub(super) fn is_finished(&self) -> bool {
        self.ending.is_known() || self.is_blocked()
    }

    /// Returns whether the provider refused the prompt.
    pub(super) fn is_blocked(&self) -> bool {
        self.block_reason.is_some()
    }

    /// Takes the fields around the candidates.
    pub(super) fn take_envelope(&mut self, chunk: &Fields<'_>) {
        self.envelope.take(chunk, "modelVersion", "responseId");
        if let Some(usage) = chunk.object("usageMetadata") {
            self.counts.take(&usage);
        }
        if let Some(feedback) = chunk.object("promptFeedback")
            && let Some(reason) = reason_of(&feedback, "blockReason")
        {
            self.finish_message = feedback.filled("blockReasonMessage").or(self.finish_message.take());
            self.block_reason = Some(reason);
        }
    }

    /// Takes the next parts and the other fields of a candidate.
    pub(super) fn take_candidate(
        &mut self,
        number: u64,
        candidate: &Fields<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let before = events.len();
        if let Some(content) = candidate.get("content") {
            let parts =
                fields::object(content).map_or_else(|| fields::items(content), |content| content.items("parts"));
            for part in parts {
                self.take_part(part, events)?;
            }
        }
        self.ending.check_choice(number, &events[before..])?;
        self.take_sources(candidate)?;
        self.executed.take_candidate(candidate);
        self.finish_message = candidate.filled("finishMessage").or(self.finish_message.take());
        if let Some(reason) = reason_of(candidate, "finishReason") {
            let reason = self.words(&reason);
            self.ending.take(&reason);
            self.last_reason = Some(reason);
        }
        Ok(())
    }

    /// Returns the usage if it has changed since the last call.
    pub(super) fn changed_usage(&mut self) -> Option<ModelEvent> {
        self.envelope.changed_usage(self.counts.usage())
    }

    fn take_part(&mut self, raw: &RawValue, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let Some(part) = fields::object(raw) else {
            let text = fields::text(raw).ok_or(Fault::Unreadable)?;
            return self.take_delta(DeltaKind::Text, text, None, events);
        };
        if let Some(call) = part.object("functionCall") {
            return self.take_call(&call, &part, events);
        }
        let is_thought = part.get("thought").is_some_and(|raw| raw.get() == "true");
        let signature = part.filled("thoughtSignature");
        let mut others = part.iter().map(|(name, _)| name);
        if part.has("text") || others.all(|name| matches!(name, "thought" | "thoughtSignature")) {
            let text = part.words("text").unwrap_or_default();
            let kind = if is_thought {
                DeltaKind::Reasoning
            } else {
                DeltaKind::Text
            };
            return self.take_delta(kind, text, signature, events);
        }
        self.executed.take_part(&part);
        self.push(ContentPart::Opaque(OpaquePart {
            provider: self.envelope.provider.clone(),
            raw: RawJson::new(raw.get()),
        }))
    }

    /// Reads text or a thought. A part with a signature stays separate, since it must return
    /// unchanged.
    fn take_delta(
        &mut self,
        kind: DeltaKind,
        text: String,
        signature: Option<String>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        if text.is_empty() && signature.is_none() {
            return Ok(());
        }
        let last = self.parts.last_mut().filter(|_| signature.is_none());
        if let Some(words) = last.and_then(|last| kind.open(last)) {
            words.push_str(&text);
            events.push(kind.event(text));
            return Ok(());
        }
        if !text.is_empty() {
            events.push(kind.event(text.clone()));
        }
        self.push(kind.part(text, signature))
    }

    /// Reads a call, which arrives whole, unless it repeats an earlier one. The other fields of its
    /// part must return with it.
    fn take_call(&mut self, call: &Fields<'_>, part: &Fields<'_>, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let beginning = Beginning {
            id: call.filled("id"),
            name: call.filled("name"),
            arguments: arguments_of(call),
            extras: unknown_fields(part, &["functionCall"], usize::MAX),
        };
        let mut call = self.calls.make(beginning)?;
        let is_known = |part: &ContentPart| matches!(part, ContentPart::ToolCall(known) if call.repeats(known));
        if self.parts.iter().any(is_known) {
            return Ok(());
        }
        self.calls.start(&mut call, events);
        match call.finish(true, events) {
            Some(call) => self.push(ContentPart::ToolCall(call)),
            None => Ok(()),
        }
    }

    /// Reads the sources of the completion. Citations are separate sources. The result of a search
    /// is one source, since its parts refer to each other. Each chunk may repeat all sources.
    fn take_sources(&mut self, candidate: &Fields<'_>) -> Result<(), Fault> {
        let quoted = candidate.object("citationMetadata").unwrap_or_default();
        let quoted = ["citationSources", "citations"]
            .into_iter()
            .find_map(|name| quoted.list(name));
        let found = ["groundingMetadata", "urlContextMetadata"];
        let found = found.into_iter().filter_map(|name| candidate.get(name));
        let found = found.filter(|raw| fields::object(raw).is_some_and(|fields| fields.iter().next().is_some()));
        let named = quoted.into_iter().flatten().chain(found);
        let new = self.sources.take_new(named, &mut self.room)?;
        self.citations.extend(new);
        Ok(())
    }

    fn push(&mut self, part: ContentPart) -> Result<(), Fault> {
        self.room.take(1)?;
        self.parts.push(part);
        Ok(())
    }

    /// Returns the whole completion.
    pub(super) fn finish(mut self, events: &mut Vec<ModelEvent>) -> ModelResponse {
        let withheld = match (&self.block_reason, &self.last_reason) {
            (Some(reason), _) => self.words(&format!("The provider blocked the prompt: {reason}")),
            (None, reason) => format!(
                "The provider ended the response: {}",
                reason.as_deref().unwrap_or_default()
            ),
        };
        let finish_reason = if self.is_blocked() {
            FinishReason::ContentFilter
        } else {
            std::mem::take(&mut self.ending).reason()
        };
        if finish_reason == FinishReason::ContentFilter {
            self.refuse_if_empty(withheld, events);
        }
        self.cite();
        ModelResponse {
            // Only the name is needed, so that signatures return to this provider.
            provider_fields: self
                .parts
                .iter()
                .any(is_owned)
                .then(|| ProviderFields::owner(&self.envelope.provider)),
            provider_tool_calls: self.executed.counts(),
            ..self.envelope.response(self.parts, finish_reason)
        }
    }

    /// Adds a refusal if there is no content.
    fn refuse_if_empty(&mut self, text: String, events: &mut Vec<ModelEvent>) {
        let is_content = |part: &ContentPart| match part {
            ContentPart::Text(part) => !part.text.is_empty(),
            ContentPart::Reasoning(_) => false,
            _ => true,
        };
        if !self.parts.iter().any(is_content) {
            events.push(ModelEvent::RefusalDelta { text: text.clone() });
            self.parts.push(ContentPart::Refusal { text });
        }
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
        let last = self.parts.iter_mut().rev().find_map(|part| match part {
            ContentPart::Text(part) => Some(part),
            _ => None,
        });
        match last {
            Some(last) => last.citations = citations,
            None => self.parts.push(ContentPart::Text(TextPart {
                citations,
                ..TextPart::default()
            })),
        }
    }
}

/// Returns whether a part has data that must return only to its provider.
fn is_owned(part: &ContentPart) -> bool {
    match part {
        ContentPart::Text(part) => part.signature.is_some(),
        // This includes thoughts without a signature, since they are from this provider's model.
        ContentPart::Reasoning(_) => true,
        ContentPart::ToolCall(call) => call.signature.is_some(),
        _ => false,
    }
}
