//! Builds one completion from its blocks and their pieces. Knows neither streams nor bytes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::opaque::Opaque;
use super::usage::usage;
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
    usage: Usage,
    stop_reason: Option<String>,
}

#[derive(Debug)]
enum Block {
    Text { text: String, citations: Vec<Citation> },
    Reasoning(ReasoningPart),
    Call(Call),
    Opaque(Opaque),
}

/// Why the blocks make no completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// A call can't begin.
    Call(CallFault),
    /// There are more blocks and sources than allowed.
    Full(Full),
    /// A piece of a call's input belongs to no block.
    StrayInput,
}

impl Completion {
    /// Makes an empty completion.
    pub(super) fn new(ids: Arc<dyn IdSource>, caps: CapSettings) -> Self {
        Self {
            blocks: Vec::new(),
            positions: HashMap::new(),
            room: Room::new(caps.parts),
            calls: CallMaker::new(ids, caps.tool_calls),
            usage: Usage::default(),
            stop_reason: None,
        }
    }

    /// Returns whether the provider has sent the finish reason.
    pub(super) fn is_finished(&self) -> bool {
        self.stop_reason.is_some()
    }

    /// Takes the reason for the end, if it is there.
    pub(super) fn take_end(&mut self, fields: &Fields<'_>) {
        self.stop_reason = fields.filled("stopReason").or(self.stop_reason.take());
    }

    /// Takes the usage, if it is there.
    pub(super) fn take_usage(&mut self, fields: &Fields<'_>) {
        if let Some(fields) = fields.object("usage") {
            self.usage = usage(&fields);
        }
    }

    /// Returns the usage, if the provider has reported it.
    pub(super) fn usage(&self) -> Usage {
        self.usage
    }

    /// Takes a whole block.
    pub(super) fn take_block(&mut self, raw: &RawValue, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let block = wire::object(raw).unwrap_or_default();
        if block.has("toolUse") {
            self.begin(None, raw, events)?;
            self.end(None, events);
            return Ok(());
        }
        if let Some(text) = block.text("text") {
            let position = self.open(None, Block::text())?;
            self.say(position, text, events);
        } else if let Some(cited) = block.object("citationsContent") {
            let position = self.open(None, Block::text())?;
            for piece in cited.list("content").unwrap_or_default() {
                let text = wire::object(piece).and_then(|piece| piece.text("text"));
                self.say(position, text.unwrap_or_default(), events);
            }
            for source in cited.list("citations").unwrap_or_default() {
                self.cite(position, source)?;
            }
        } else if let Some(reasoning) = block.object("reasoningContent") {
            let position = self.open(None, Block::reasoning())?;
            self.think(position, &reasoning.object("reasoningText").unwrap_or_default(), events);
            self.think(position, &reasoning, events);
        } else if !block.is_empty() {
            self.open(None, Block::Opaque(Opaque::new(raw.get())))?;
        }
        Ok(())
    }

    /// Takes the beginning of a block; those of words and of reasoning have none.
    pub(super) fn begin(
        &mut self,
        index: Option<u64>,
        raw: &RawValue,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let start = wire::object(raw).unwrap_or_default();
        match start.object("toolUse") {
            // Calls of tools that the provider executes itself have a type.
            Some(call) if !call.has("type") => {
                let call = self.calls.begin(
                    Beginning {
                        id: call.filled("toolUseId"),
                        name: call.filled("name"),
                        arguments: call.get("input").map(|raw| raw.get().to_owned()),
                        extras: extras(&call, &["toolUseId", "name", "input"]),
                    },
                    events,
                );
                self.open(index, Block::Call(call.map_err(Fault::Call)?))?;
            }
            _ if start.is_empty() => {}
            _ => {
                self.open(index, Block::Opaque(Opaque::new(raw.get())))?;
            }
        }
        Ok(())
    }

    /// Takes a piece of a block; one without an index belongs to the latest block. A piece that
    /// fits no block begins one.
    pub(super) fn add(
        &mut self,
        index: Option<u64>,
        delta: &Fields<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        if let Some(text) = delta.text("text") {
            let position = self.at(index, Block::is_text, Block::text)?;
            self.say(position, text, events);
        } else if let Some(source) = delta.get("citation") {
            let position = self.at(index, Block::is_text, Block::text)?;
            self.cite(position, source)?;
        } else if let Some(reasoning) = delta.object("reasoningContent") {
            let position = self.at(index, Block::is_reasoning, Block::reasoning)?;
            self.think(position, &reasoning, events);
        } else if !delta.is_empty() {
            self.add_other(index, delta, events)?;
        }
        Ok(())
    }

    fn add_other(&mut self, index: Option<u64>, delta: &Fields<'_>, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let call = delta.object("toolUse");
        let position = self.position(index);
        match (position.and_then(|position| self.blocks.get_mut(position)), call) {
            (Some(Block::Call(known)), Some(call)) => known.push(call.text("input").unwrap_or_default(), events),
            (Some(Block::Opaque(known)), _) => {
                known.merge(delta, &mut self.room).map_err(Fault::Full)?;
            }
            (_, Some(_)) => return Err(Fault::StrayInput),
            (_, None) => {
                let mut block = Opaque::new("{}");
                block.merge(delta, &mut self.room).map_err(Fault::Full)?;
                self.open(index, Block::Opaque(block))?;
            }
        }
        Ok(())
    }

    /// Takes the end of a block.
    pub(super) fn end(&mut self, index: Option<u64>, events: &mut Vec<ModelEvent>) {
        if let Some(Block::Call(call)) = self.position(index).and_then(|position| self.blocks.get_mut(position)) {
            call.close(events);
        }
    }

    /// Returns why the completion is unusable: the provider lost the output of the model.
    pub(super) fn breakdown(&self) -> Option<String> {
        let reason = self.stop_reason.as_deref().filter(|_| self.calls.made() == 0)?;
        let is_lost = matches!(reason, "malformed_model_output" | "malformed_tool_use");
        is_lost.then(|| format!("the model's response ended with {reason}"))
    }

    /// Returns the whole completion. Open blocks end here.
    pub(super) fn finish(mut self, provider: &str, events: &mut Vec<ModelEvent>) -> ModelResponse {
        for block in &mut self.blocks {
            if let Block::Call(call) = block {
                call.close(events);
            }
        }
        let parts = self.blocks.into_iter().filter_map(|block| block.finish(provider));
        let mut content: Vec<_> = parts.collect();
        let finish_reason = finish_reason(self.stop_reason.as_deref(), self.calls.made() > 0);
        let is_content = |part: &ContentPart| !matches!(part, ContentPart::Reasoning(_));
        if let (FinishReason::ContentFilter, Some(reason)) = (&finish_reason, self.stop_reason)
            && !content.iter().any(is_content)
        {
            let text = format!("The provider withheld the response: {reason}");
            events.push(ModelEvent::RefusalDelta { text: text.clone() });
            content.push(ContentPart::Refusal { text });
        }
        let provider_tool_calls = counted(&content);
        ModelResponse {
            // The name alone: signatures, encrypted reasoning and citations go back to this
            // provider.
            provider_fields: content.iter().any(ContentPart::is_owned).then(|| ProviderFields {
                provider: provider.to_owned(),
                fields: Vec::new(),
            }),
            finish_reason,
            content,
            usage: self.usage,
            model: None,
            response_id: None,
            provider_tool_calls,
        }
    }

    fn position(&self, index: Option<u64>) -> Option<usize> {
        match index {
            Some(index) => self.positions.get(&index).copied(),
            None => self.blocks.len().checked_sub(1),
        }
    }

    /// Returns the position of the block with the index; if it is not there or does not fit, a new
    /// one is opened.
    fn at(
        &mut self,
        index: Option<u64>,
        fits: impl Fn(&Block) -> bool,
        new: impl FnOnce() -> Block,
    ) -> Result<usize, Fault> {
        match self.position(index) {
            Some(position) if self.blocks.get(position).is_some_and(fits) => Ok(position),
            _ => self.open(index, new()),
        }
    }

    fn open(&mut self, index: Option<u64>, block: Block) -> Result<usize, Fault> {
        self.room.take(1).map_err(Fault::Full)?;
        let position = self.blocks.len();
        if let Some(index) = index {
            self.positions.insert(index, position);
        }
        self.blocks.push(block);
        Ok(position)
    }

    fn say(&mut self, position: usize, piece: String, events: &mut Vec<ModelEvent>) {
        if let Some(Block::Text { text, .. }) = self.blocks.get_mut(position)
            && !piece.is_empty()
        {
            text.push_str(&piece);
            events.push(ModelEvent::TextDelta { text: piece });
        }
    }

    fn cite(&mut self, position: usize, source: &RawValue) -> Result<(), Fault> {
        self.room.take(1).map_err(Fault::Full)?;
        if let Some(Block::Text { citations, .. }) = self.blocks.get_mut(position) {
            citations.push(Citation(RawJson::new(source.get())));
        }
        Ok(())
    }

    fn think(&mut self, position: usize, piece: &Fields<'_>, events: &mut Vec<ModelEvent>) {
        let Some(Block::Reasoning(part)) = self.blocks.get_mut(position) else {
            return;
        };
        for (known, name) in [
            (&mut part.signature, "signature"),
            (&mut part.encrypted, "redactedContent"),
        ] {
            if let Some(text) = piece.filled(name) {
                known.get_or_insert_default().push_str(&text);
            }
        }
        if let Some(text) = piece.filled("text") {
            part.text.push_str(&text);
            events.push(ModelEvent::ReasoningDelta { text });
        }
    }
}

impl Block {
    fn text() -> Self {
        Self::Text {
            text: String::new(),
            citations: Vec::new(),
        }
    }

    fn is_text(&self) -> bool {
        matches!(self, Self::Text { .. })
    }

    fn reasoning() -> Self {
        Self::Reasoning(ReasoningPart::default())
    }

    fn is_reasoning(&self) -> bool {
        matches!(self, Self::Reasoning(_))
    }

    /// Returns the part; an empty block is none.
    fn finish(self, provider: &str) -> Option<ContentPart> {
        Some(match self {
            Self::Text { text, citations } if text.is_empty() && citations.is_empty() => return None,
            Self::Text { text, citations } => ContentPart::Text(TextPart {
                text,
                citations,
                signature: None,
            }),
            Self::Reasoning(part) if part == ReasoningPart::default() => return None,
            Self::Reasoning(part) => ContentPart::Reasoning(part),
            Self::Call(call) => ContentPart::ToolCall(call.finish()),
            Self::Opaque(block) => ContentPart::Opaque(OpaquePart {
                provider: provider.to_owned(),
                raw: RawJson::new(block.finish()),
            }),
        })
    }
}

/// Counts the calls of tools that the service executes itself, by the name of the tool. Calls of
/// other tools have a form of their own.
fn counted(content: &[ContentPart]) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for part in content {
        let ContentPart::Opaque(part) = part else { continue };
        let block = Fields::parse(part.raw.as_str()).unwrap_or_default();
        if let Some(call) = block.object("toolUse") {
            let name = call.filled("name").unwrap_or_else(|| "unnamed".to_owned());
            *counts.entry(name).or_default() += 1;
        }
    }
    counts
}

/// Reads the finish reason. A whole completion without one gets the obvious one.
fn finish_reason(reason: Option<&str>, has_calls: bool) -> FinishReason {
    match reason {
        None if has_calls => FinishReason::ToolCalls,
        None | Some("end_turn" | "stop_sequence") => FinishReason::Stop,
        Some("max_tokens" | "model_context_window_exceeded") => FinishReason::Length,
        Some("tool_use") => FinishReason::ToolCalls,
        Some("guardrail_intervened" | "content_filtered") => FinishReason::ContentFilter,
        Some("refusal") => FinishReason::Refusal,
        Some(other) => FinishReason::Other(other.to_owned()),
    }
}
