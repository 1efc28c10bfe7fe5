//! Builds one completion from its blocks and their pieces. Knows neither streams nor bytes.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::opaque::Opaque;
use super::server_tools;
use super::usage::Counts;
use crate::agent::ports::ModelEvent;
use crate::agent::state::{FinishReason, ModelResponse};
use crate::ids::IdSource;
use crate::json::RawJson;
use crate::message::{Citation, ContentPart, OpaquePart, ProviderFields, ReasoningPart, TextPart};
use crate::models::calls::{Beginning, Call, CallFault, CallMaker, extras};
use crate::models::room::{Full, Room};
use crate::models::settings::CapSettings;
use crate::models::wire::{self, Fields};
use crate::usage::Usage;

/// A completion that is being assembled.
#[derive(Debug)]
pub(super) struct Completion {
    blocks: Vec<Block>,
    /// The position of the latest block with each index; the index is a key only.
    positions: HashMap<u64, usize>,
    room: Room,
    calls: CallMaker,
    counts: Counts,
    usage: Usage,
    stop_reason: Option<String>,
    explanation: Option<String>,
    model: Option<String>,
    response_id: Option<String>,
}

#[derive(Debug)]
enum Block {
    Text { text: String, citations: Vec<Citation> },
    Thinking { text: String, signature: String },
    Redacted(String),
    Call(Call),
    Opaque(Opaque),
}

/// Why the blocks make no completion.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A call can't begin.
    Call(CallFault),
    /// A piece of a call's input belongs to no block.
    StrayInput,
    /// There are more blocks and citations than allowed.
    Full(Full),
}

impl Completion {
    /// Makes an empty completion.
    pub(super) fn new(ids: Arc<dyn IdSource>, caps: CapSettings) -> Self {
        Self {
            blocks: Vec::new(),
            positions: HashMap::new(),
            room: Room::new(caps.parts),
            calls: CallMaker::new(ids, caps.tool_calls),
            counts: Counts::default(),
            usage: Usage::default(),
            stop_reason: None,
            explanation: None,
            model: None,
            response_id: None,
        }
    }

    /// Returns whether the provider has sent the finish reason.
    pub(super) fn is_finished(&self) -> bool {
        self.stop_reason.is_some()
    }

    /// Takes the fields of a message around its blocks.
    pub(super) fn take_envelope(&mut self, message: &Fields<'_>) {
        self.model = self.model.take().or_else(|| message.filled("model"));
        self.response_id = self.response_id.take().or_else(|| message.filled("id"));
        self.take_end(message);
        self.take_usage(message);
    }

    /// Takes the finish reason, if it is there; the last one wins.
    pub(super) fn take_end(&mut self, fields: &Fields<'_>) {
        self.stop_reason = fields.filled("stop_reason").or(self.stop_reason.take());
        let details = fields.object("stop_details");
        let explanation = details.and_then(|details| details.filled("explanation"));
        self.explanation = explanation.or(self.explanation.take());
    }

    /// Takes the usage, if it is there.
    pub(super) fn take_usage(&mut self, fields: &Fields<'_>) {
        if let Some(usage) = fields.object("usage") {
            self.counts.take(&usage);
        }
    }

    /// Returns the usage if it has changed since it was last asked for.
    pub(super) fn changed_usage(&mut self) -> Option<Usage> {
        let usage = self.counts.usage();
        let is_new = usage != self.usage;
        self.usage = usage;
        is_new.then_some(usage)
    }

    /// Takes the beginning of a block. A second block with an index takes the index over.
    pub(super) fn begin(
        &mut self,
        index: Option<u64>,
        raw: &RawValue,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let block = wire::object(raw).unwrap_or_default();
        let text = |name: &str| block.text(name).unwrap_or_default();
        match block.borrowed_text("type").as_deref() {
            Some("text") => {
                let citations = block.list("citations").unwrap_or_default();
                self.room.take(citations.len()).map_err(Fault::Full)?;
                let citations = citations.into_iter().map(citation).collect();
                self.open(index, Block::text(citations))?;
                self.add_text(text("text"), events);
            }
            Some("thinking") => {
                self.open(index, Block::thinking(text("signature")))?;
                self.add_thinking(text("thinking"), events);
            }
            Some("redacted_thinking") => self.open(index, Block::Redacted(text("data")))?,
            Some("tool_use") => {
                let beginning = Beginning {
                    id: block.filled("id"),
                    name: block.filled("name"),
                    arguments: block.get("input").map(|raw| raw.get().to_owned()),
                    // Fields that the protocol does not know go back with the call.
                    extras: extras(&block, &["type", "id", "name", "input"]),
                };
                let call = self.calls.begin(beginning, events).map_err(Fault::Call)?;
                self.open(index, Block::Call(call))?;
            }
            Some(_) => self.open(index, Block::Opaque(Opaque::new(raw.get())))?,
            // What has no type is no block, but its pieces may be.
            None => {}
        }
        Ok(())
    }

    /// Takes text outside of blocks.
    pub(super) fn say(&mut self, words: String, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        self.open(None, Block::text(Vec::new()))?;
        self.add_text(words, events);
        Ok(())
    }

    /// Takes a piece of a block; one without an index belongs to the latest block. Words that no
    /// block was opened for open one.
    pub(super) fn add(
        &mut self,
        index: Option<u64>,
        delta: &Fields<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let kind = delta.text("type").unwrap_or_default();
        let text = |name: &str| delta.text(name).unwrap_or_default();
        let position = match index {
            Some(index) => self.positions.get(&index).copied(),
            None => self.blocks.len().checked_sub(1),
        };
        let Some(position) = position else {
            match kind.as_str() {
                "text_delta" => self.open(index, Block::text(Vec::new()))?,
                "thinking_delta" => self.open(index, Block::thinking(String::new()))?,
                "input_json_delta" => return Err(Fault::StrayInput),
                _ => return Ok(()),
            }
            return self.add(index, delta, events);
        };
        match (&mut self.blocks[position], kind.as_str()) {
            (Block::Text { text: known, .. }, "text_delta") => push_text(known, text("text"), events),
            (Block::Text { citations, .. }, "citations_delta") => {
                self.room.take(1).map_err(Fault::Full)?;
                citations.extend(delta.get("citation").map(citation));
            }
            (Block::Thinking { text: known, .. }, "thinking_delta") => push_thinking(known, text("thinking"), events),
            (Block::Thinking { signature, .. }, "signature_delta") => signature.push_str(&text("signature")),
            (Block::Call(call), "input_json_delta") => call.push(text("partial_json"), events),
            (Block::Opaque(block), "input_json_delta") => block.push_input(&text("partial_json")),
            (Block::Opaque(block), _) => block.merge(delta, &mut self.room).map_err(Fault::Full)?,
            // A piece of a kind that its block can't have.
            _ => {}
        }
        Ok(())
    }

    /// Takes the end of a block.
    pub(super) fn end(&mut self, index: Option<u64>, events: &mut Vec<ModelEvent>) {
        let position = match index {
            Some(index) => self.positions.get(&index).copied(),
            None => self.blocks.len().checked_sub(1),
        };
        if let Some(Block::Call(call)) = position.and_then(|position| self.blocks.get_mut(position)) {
            call.close(events);
        }
    }

    /// Returns the whole completion. Open blocks end here.
    pub(super) fn finish(mut self, provider: &str, events: &mut Vec<ModelEvent>) -> ModelResponse {
        for block in &mut self.blocks {
            if let Block::Call(call) = block {
                call.close(events);
            }
        }
        let mut content: Vec<_> = self
            .blocks
            .into_iter()
            .filter_map(|block| block.finish(provider))
            .collect();
        let has_words = content.iter().any(|part| matches!(part, ContentPart::Text(_)));
        if self.stop_reason.as_deref() == Some("refusal")
            && !has_words
            && let Some(text) = self.explanation
        {
            events.push(ModelEvent::RefusalDelta { text: text.clone() });
            content.push(ContentPart::Refusal { text });
        }
        let has_calls = content.iter().any(|part| matches!(part, ContentPart::ToolCall(_)));
        ModelResponse {
            // The name alone: signatures, encrypted thinking and citations go back to this
            // provider.
            provider_fields: content.iter().any(ContentPart::is_owned).then(|| ProviderFields {
                provider: provider.to_owned(),
                fields: Vec::new(),
            }),
            finish_reason: finish_reason(self.stop_reason.as_deref(), has_calls),
            provider_tool_calls: server_tools::counted(&content),
            content,
            usage: self.usage,
            model: self.model,
            response_id: self.response_id,
        }
    }

    fn open(&mut self, index: Option<u64>, block: Block) -> Result<(), Fault> {
        self.room.take(1).map_err(Fault::Full)?;
        if let Some(index) = index {
            self.positions.insert(index, self.blocks.len());
        }
        self.blocks.push(block);
        Ok(())
    }

    fn add_text(&mut self, piece: String, events: &mut Vec<ModelEvent>) {
        if let Some(Block::Text { text, .. }) = self.blocks.last_mut() {
            push_text(text, piece, events);
        }
    }

    fn add_thinking(&mut self, piece: String, events: &mut Vec<ModelEvent>) {
        if let Some(Block::Thinking { text, .. }) = self.blocks.last_mut() {
            push_thinking(text, piece, events);
        }
    }
}

impl Block {
    fn text(citations: Vec<Citation>) -> Self {
        let text = String::new();
        Self::Text { text, citations }
    }

    fn thinking(signature: String) -> Self {
        let text = String::new();
        Self::Thinking { text, signature }
    }

    /// Returns the part; an empty block is none.
    fn finish(self, provider: &str) -> Option<ContentPart> {
        let filled = |text: String| Some(text).filter(|text| !text.is_empty());
        Some(match self {
            Self::Text { text, citations } if text.is_empty() && citations.is_empty() => return None,
            Self::Text { text, citations } => ContentPart::Text(TextPart {
                text,
                citations,
                signature: None,
            }),
            Self::Thinking { text, signature } if text.is_empty() && signature.is_empty() => return None,
            Self::Thinking { text, signature } => ContentPart::Reasoning(ReasoningPart {
                text,
                signature: filled(signature),
                ..ReasoningPart::default()
            }),
            Self::Redacted(data) => ContentPart::Reasoning(ReasoningPart {
                encrypted: Some(filled(data)?),
                ..ReasoningPart::default()
            }),
            Self::Call(call) => ContentPart::ToolCall(call.finish()),
            Self::Opaque(block) => ContentPart::Opaque(OpaquePart {
                provider: provider.to_owned(),
                raw: RawJson::new(block.finish()),
            }),
        })
    }
}

fn push_text(known: &mut String, text: String, events: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        known.push_str(&text);
        events.push(ModelEvent::TextDelta { text });
    }
}

fn push_thinking(known: &mut String, text: String, events: &mut Vec<ModelEvent>) {
    if !text.is_empty() {
        known.push_str(&text);
        events.push(ModelEvent::ReasoningDelta { text });
    }
}

fn citation(raw: &RawValue) -> Citation {
    Citation(RawJson::new(raw.get()))
}

/// Reads the finish reason. A whole completion without one gets the obvious one.
fn finish_reason(reason: Option<&str>, has_calls: bool) -> FinishReason {
    match reason {
        None if has_calls => FinishReason::ToolCalls,
        None | Some("end_turn" | "stop_sequence") => FinishReason::Stop,
        Some("max_tokens" | "model_context_window_exceeded") => FinishReason::Length,
        Some("tool_use") => FinishReason::ToolCalls,
        Some("refusal") => FinishReason::Refusal,
        Some("pause_turn") => FinishReason::PauseTurn,
        Some(other) => FinishReason::Other(other.to_owned()),
    }
}
