//! Builds one completion from its blocks and their pieces. Knows neither streams nor bytes.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::server_tools;
use super::usage::Counts;
use crate::blocks::{Block, Blocks};
use crate::calls::{Beginning, is_call};
use crate::delta::unsaid;
use crate::ending::{finish_reason, reason_of};
use crate::envelope::Envelope;
use crate::fault::Fault;
use crate::fields::{self, Fields};
use crate::opaque::Opaque;
use crate::settings::CapSettings;
use agent::ports::ModelEvent;
use agent::state::{FinishReason, ModelResponse};
use values::ids::IdSource;
use values::message::{ContentPart, ReasoningPart};

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

    /// Returns whether a call has not ended.
    pub(super) fn has_open_calls(&self) -> bool {
        self.blocks.has_open_calls()
    }

    /// Takes the fields of a message around its blocks.
    pub(super) fn take_envelope(&mut self, message: &Fields<'_>) {
        self.envelope.take(message, "model", "id");
        self.take_end(message);
        self.take_usage(message);
    }

    /// Reads the finish reason, if present. The last one wins.
    pub(super) fn take_end(&mut self, fields: &Fields<'_>) {
        self.stop_reason = reason_of(fields, "stop_reason").or(self.stop_reason.take());
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
        let Some(block) = fields::object(raw) else {
            let text = fields::text(raw).ok_or(Fault::Unreadable)?;
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
            Some(kind) if is_call(kind) => {
                self.blocks.begin_call(index, Beginning::of(&block), events)?;
            }
            Some(_) => {
                self.blocks.open(index, Block::Opaque(Opaque::new(raw.get())))?;
            }
            // An object without a type is not a block, but its pieces may be.
            None => {}
        }
        Ok(())
    }

    /// Reads the blocks of a whole message. After a stream, it repeats the blocks of the stream.
    pub(super) fn take_blocks(&mut self, message: &Fields<'_>, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let streamed = self.blocks.len();
        let mut left: String = self.blocks.first(streamed).map(Block::words).collect();
        // Some gateways send only the text, or nothing if there is no text.
        for raw in message.items("content") {
            let block = fields::object(raw).unwrap_or_default();
            let text = fields::text(raw).or_else(|| block.text("text"));
            match text.filter(|_| streamed > 0) {
                Some(text) => {
                    let text = unsaid(&mut left, text);
                    if !text.is_empty() {
                        let (opened, _) = self.blocks.get_or_open(None, Block::text())?;
                        opened.add_text(text, events);
                    }
                }
                None if self.blocks.first(streamed).any(|known| is_repeated(known, &block)) => {}
                None => {
                    self.begin(None, raw, events)?;
                    self.end(None);
                }
            }
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

/// Returns whether a block of a whole message repeats a block of the stream.
fn is_repeated(known: &Block, block: &Fields<'_>) -> bool {
    let kind = block.borrowed_text("type").unwrap_or_default();
    match known {
        Block::Text(_) => false,
        Block::Reasoning(_) => matches!(kind.as_ref(), "thinking" | "redacted_thinking"),
        Block::Call(call) => is_call(&kind) && call.is_of(&Beginning::of(block)),
        Block::Opaque(known) => {
            let known = Fields::parse(known.raw()).unwrap_or_default();
            let is_like = |name: &str| known.borrowed_text(name) == block.borrowed_text(name);
            is_like("type") && is_like("id") && is_like("tool_use_id")
        }
    }
}
