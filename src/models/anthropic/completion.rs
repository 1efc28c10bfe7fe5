//! Builds one completion from its blocks and their pieces. Knows neither streams nor bytes.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::server_tools;
use super::usage::Counts;
use crate::agent::ports::ModelEvent;
use crate::agent::state::{FinishReason, ModelResponse};
use crate::ids::IdSource;
use crate::message::{ContentPart, ReasoningPart};
use crate::models::blocks::{Block, Blocks};
use crate::models::calls::Beginning;
use crate::models::ending::finish_reason;
use crate::models::envelope::Envelope;
use crate::models::fault::Fault;
use crate::models::opaque::Opaque;
use crate::models::settings::CapSettings;
use crate::models::wire::{self, Fields, unknown_fields};

/// A completion that is being assembled.
#[derive(Debug)]
pub(super) struct Completion {
    blocks: Blocks,
    counts: Counts,
    envelope: Envelope,
    stop_reason: Option<String>,
    explanation: Option<String>,
}

impl Completion {
    /// Makes an empty completion of the provider.
    pub(super) fn new(provider: &str, ids: Arc<dyn IdSource>, caps: CapSettings) -> Self {
        Self {
            blocks: Blocks::new(ids, caps),
            counts: Counts::default(),
            envelope: Envelope::new(provider),
            stop_reason: None,
            explanation: None,
        }
    }

    /// Returns whether the provider has sent the finish reason.
    pub(super) fn is_finished(&self) -> bool {
        self.stop_reason.is_some()
    }

    /// Takes the fields of a message around its blocks.
    pub(super) fn take_envelope(&mut self, message: &Fields<'_>) {
        self.envelope.take(message, "model", "id");
        self.take_end(message);
        self.take_usage(message);
    }

    /// Reads the finish reason, if present. The last one wins.
    pub(super) fn take_end(&mut self, fields: &Fields<'_>) {
        self.stop_reason = fields.filled("stop_reason").or(self.stop_reason.take());
        let details = fields.object("stop_details");
        let explanation = details.and_then(|details| details.filled("explanation"));
        self.explanation = explanation.or(self.explanation.take());
    }

    /// Reads the usage, if present.
    pub(super) fn take_usage(&mut self, fields: &Fields<'_>) {
        if let Some(usage) = fields.object("usage") {
            self.counts.take(&usage);
        }
    }

    /// Returns the usage if it has changed since the last call.
    pub(super) fn changed_usage(&mut self) -> Option<ModelEvent> {
        self.envelope.changed_usage(self.counts.usage())
    }

    /// Reads the beginning of a block. A second block with the same index replaces the first under
    /// that index.
    pub(super) fn begin(
        &mut self,
        index: Option<u64>,
        raw: &RawValue,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let Some(block) = wire::object(raw) else {
            let text = wire::text(raw).ok_or(Fault::Unreadable)?;
            return self.add_text(text, events);
        };
        let text = |name: &str| block.words(name).unwrap_or_default();
        let kind = block.borrowed_text("type");
        match kind.as_deref() {
            // Some gateways have other names for text.
            kind if kind == Some("text") || block.borrowed_filled("text").is_some() => {
                let (opened, room) = self.blocks.open(index, Block::text())?;
                for source in block.list("citations").unwrap_or_default() {
                    opened.cite(source, room)?;
                }
                opened.add_text(text("text"), events);
            }
            Some("thinking") => {
                let part = ReasoningPart {
                    signature: block.filled("signature"),
                    ..ReasoningPart::default()
                };
                let (opened, _) = self.blocks.open(index, Block::Reasoning(part))?;
                opened.add_reasoning(text("thinking"), events);
            }
            Some("redacted_thinking") => {
                let part = ReasoningPart {
                    encrypted: block.filled("data"),
                    ..ReasoningPart::default()
                };
                self.blocks.open(index, Block::Reasoning(part))?;
            }
            Some("tool_use") => {
                let beginning = Beginning {
                    id: block.filled("id"),
                    name: block.filled("name"),
                    arguments: block.get("input").map(|raw| raw.get().to_owned()),
                    // Unknown fields must return to the provider with the call.
                    extras: unknown_fields(&block, &["type", "id", "name", "input"], usize::MAX),
                };
                self.blocks.begin_call(index, beginning, events)?;
            }
            Some(_) => {
                self.blocks.open(index, Block::Opaque(Opaque::new(raw.get())))?;
            }
            // An object without a type is not a block, but its pieces may be.
            None => {}
        }
        Ok(())
    }

    /// Takes text outside of blocks.
    pub(super) fn add_text(&mut self, text: String, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let (opened, _) = self.blocks.open(None, Block::text())?;
        opened.add_text(text, events);
        Ok(())
    }

    /// Reads a piece of a block. A piece without an index belongs to the latest block. Text without
    /// an open block opens one.
    pub(super) fn add(
        &mut self,
        index: Option<u64>,
        delta: &Fields<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let kind = delta.borrowed_text("type").unwrap_or_default();
        let text = |name: &str| delta.words(name).unwrap_or_default();
        let Some((block, room)) = self.blocks.get(index) else {
            match kind.as_ref() {
                "text_delta" => self.blocks.open(index, Block::text())?,
                "thinking_delta" => self.blocks.open(index, Block::reasoning())?,
                "input_json_delta" => return Err(Fault::StrayArguments),
                _ => return Ok(()),
            };
            return self.add(index, delta, events);
        };
        match (block, kind.as_ref()) {
            (block @ Block::Text(_), "text_delta") => block.add_text(text("text"), events),
            (block @ Block::Text(_), "citations_delta") => {
                if let Some(source) = delta.get("citation") {
                    block.cite(source, room)?;
                }
            }
            // The block can't have a piece of this kind, so the piece is ignored.
            (Block::Reasoning(part), _) if part.encrypted.is_some() => {}
            (Block::Reasoning(part), "signature_delta") => {
                if let Some(piece) = delta.filled("signature") {
                    part.signature.get_or_insert_default().push_str(&piece);
                }
            }
            (block @ Block::Reasoning(_), "thinking_delta") => block.add_reasoning(text("thinking"), events),
            (Block::Call(call), "input_json_delta") => call.push(text("partial_json"), events),
            (Block::Opaque(block), "input_json_delta") => block.push_input(&text("partial_json")),
            (Block::Opaque(block), _) => {
                let piece = delta.iter().filter(|(name, _)| *name != "type");
                block.merge(piece, 0, room)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes the end of a block.
    pub(super) fn end(&mut self, index: Option<u64>) {
        self.blocks.end(index);
    }

    /// Returns the whole completion. Open blocks end here.
    pub(super) fn finish(self, events: &mut Vec<ModelEvent>) -> ModelResponse {
        let finish_reason = finish_reason(self.stop_reason.as_deref());
        let is_whole = finish_reason.is_whole();
        let mut content = self
            .blocks
            .finish(is_whole, &self.envelope.provider, Opaque::finish, events);
        let has_words = content.iter().any(|part| matches!(part, ContentPart::Text(_)));
        if finish_reason == FinishReason::Refusal
            && !has_words
            && let Some(text) = self.explanation
        {
            events.push(ModelEvent::RefusalDelta { text: text.clone() });
            content.push(ContentPart::Refusal { text });
        }
        ModelResponse {
            provider_tool_calls: server_tools::counted(&content),
            ..self.envelope.response(content, finish_reason)
        }
    }
}
