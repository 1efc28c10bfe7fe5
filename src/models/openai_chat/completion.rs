//! Builds one completion from its pieces. Knows neither streams nor bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::calls::{Calls, NamelessCall, TooManyCalls};
use super::reasoning::{Block, RetainedFields, words};
use super::think::{Split, ThinkSplit};
use crate::agent::ports::ModelEvent;
use crate::agent::state::{FinishReason, ModelResponse};
use crate::ids::IdSource;
use crate::json::RawJson;
use crate::message::{Citation, ContentPart, ImagePart, MediaSource, OpaquePart, ReasoningPart, TextPart};
use crate::models::room::{Full, Room};
use crate::models::settings::CapSettings;
use crate::models::sources::Sources;
use crate::models::wire::{self, Fields};
use crate::usage::Usage;

/// The most tools of the provider's own that are counted in a completion.
const MAX_EXECUTED_TOOLS: u64 = 256;

/// Why the pieces make no completion.
#[derive(Debug)]
pub(super) enum Fault {
    /// There are more calls than allowed.
    TooManyCalls,
    /// There are more parts and citations than allowed.
    Full(Full),
}

/// A completion that is being assembled.
#[derive(Debug)]
pub(super) struct Completion {
    parts: Vec<Part>,
    calls: Calls,
    /// How many of the calls are among the parts.
    placed_calls: usize,
    room: Room,
    sources: Sources,
    kept: RetainedFields,
    /// Splits reasoning off the text; `None` if the text has none.
    think: Option<ThinkSplit>,
    /// The names of the tools that the provider has executed itself, by their positions in the
    /// completion.
    executed_tools: BTreeMap<u64, String>,
    finish_reason: Option<String>,
    usage: Usage,
    model: Option<String>,
    response_id: Option<String>,
}

#[derive(Debug)]
enum Part {
    Text {
        text: String,
        citations: Vec<Citation>,
    },
    Reasoning(String),
    Refusal(String),
    /// Reasoning that only its provider can read back, and its words for others.
    Thinking {
        words: String,
        block: Block,
    },
    Opaque(String),
    Image(MediaSource),
    Call(usize),
}

impl Completion {
    /// Makes an empty completion.
    pub(super) fn new(ids: Arc<dyn IdSource>, caps: CapSettings) -> Self {
        Self {
            parts: Vec::new(),
            calls: Calls::new(ids, caps.tool_calls),
            placed_calls: 0,
            room: Room::new(caps.parts),
            sources: Sources::default(),
            kept: RetainedFields::default(),
            think: None,
            executed_tools: BTreeMap::new(),
            finish_reason: None,
            usage: Usage::default(),
            model: None,
            response_id: None,
        }
    }

    /// Has reasoning split off the words.
    pub(super) fn split_think_tags(&mut self) {
        self.think = Some(ThinkSplit::default());
    }

    /// Takes the end of the words.
    pub(super) fn end_text(&mut self, events: &mut Vec<ModelEvent>) {
        if let Some(rest) = self.think.as_mut().map(ThinkSplit::finish) {
            self.add_split(rest, events);
        }
    }

    /// Returns whether the provider has sent the finish reason.
    pub(super) fn is_finished(&self) -> bool {
        self.finish_reason.is_some()
    }

    /// Returns whether any content arrived. A role and an empty text do not count.
    pub(super) fn has_content(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Takes the fields around the choices.
    pub(super) fn take_envelope(&mut self, chunk: &Fields<'_>, usage: Option<Usage>, events: &mut Vec<ModelEvent>) {
        self.model = self.model.take().or_else(|| chunk.filled("model"));
        self.response_id = self.response_id.take().or_else(|| chunk.filled("id"));
        // Each count is a snapshot of the whole completion, so the last one wins.
        if let Some(usage) = usage.filter(|usage| *usage != self.usage) {
            self.usage = usage;
            events.push(ModelEvent::Usage(usage));
        }
    }

    /// Takes the finish reason; the last one wins.
    pub(super) fn take_finish_reason(&mut self, reason: String) {
        self.finish_reason = Some(reason);
    }

    /// Takes a message, or a piece of one unless it is `whole`.
    pub(super) fn take_message(
        &mut self,
        message: &Fields<'_>,
        whole: bool,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let before = self.parts.len();
        self.kept.take(message, whole, &mut self.room).map_err(Fault::Full)?;
        self.add_reasoning(reasoning_words(message), events);
        if let Some(content) = message.get("content") {
            self.take_content(content, whole, events).map_err(Fault::Full)?;
        }
        self.add_refusal(message.text("refusal").unwrap_or_default(), events);
        let images = message.list("images").unwrap_or_default();
        self.parts.extend(images.into_iter().filter_map(image).map(Part::Image));
        self.add_citations(&message.list("annotations").unwrap_or_default())
            .map_err(Fault::Full)?;
        for (slot, item) in message.list("tool_calls").unwrap_or_default().into_iter().enumerate() {
            if let Some(item) = wire::object(item) {
                self.calls
                    .take(&item, slot, whole, events)
                    .map_err(|_: TooManyCalls| Fault::TooManyCalls)?;
            }
        }
        let executed = message.list("executed_tools").unwrap_or_default();
        for (slot, tool) in (0..MAX_EXECUTED_TOOLS).zip(executed) {
            if let Some(tool) = wire::object(tool) {
                self.add_executed(slot, &tool);
            }
        }
        if let Some(function) = message.object("function_call") {
            self.calls
                .take_legacy(&function, events)
                .map_err(|_: TooManyCalls| Fault::TooManyCalls)?;
        }
        self.parts.extend((self.placed_calls..self.calls.len()).map(Part::Call));
        self.placed_calls = self.calls.len();
        self.room.take(self.parts.len() - before).map_err(Fault::Full)
    }

    /// Returns the whole completion.
    pub(super) fn finish(self, provider: &str) -> Result<ModelResponse, NamelessCall> {
        let mut calls: Vec<_> = self.calls.finish()?.into_iter().map(Some).collect();
        let has_calls = !calls.is_empty();
        let needs_owner = calls.iter().flatten().any(|call| call.signature.is_some());
        let mut content = Vec::new();
        for part in self.parts {
            match part {
                Part::Text { text, citations } => content.push(ContentPart::Text(TextPart {
                    text,
                    citations,
                    signature: None,
                })),
                Part::Reasoning(text) => content.push(reasoning(text)),
                Part::Refusal(text) => content.push(ContentPart::Refusal { text }),
                Part::Thinking { words, block } => {
                    content.push(reasoning(words));
                    content.push(opaque(provider, block.finish()));
                }
                Part::Opaque(raw) => content.push(opaque(provider, raw)),
                Part::Image(source) => content.push(ContentPart::Image(ImagePart { source, detail: None })),
                Part::Call(position) => content.extend(calls[position].take().map(ContentPart::ToolCall)),
            }
        }
        Ok(ModelResponse {
            content,
            provider_fields: self.kept.finish(provider, needs_owner),
            finish_reason: finish_reason(self.finish_reason, has_calls),
            usage: self.usage,
            provider_tool_calls: counted(self.executed_tools),
            model: self.model,
            response_id: self.response_id,
        })
    }

    /// Takes a tool that the provider has executed itself. A stream repeats it.
    fn add_executed(&mut self, slot: u64, tool: &Fields<'_>) {
        let name = tool.filled("name").or_else(|| tool.filled("type"));
        let position = tool.count("index").unwrap_or(slot);
        if let Some(name) = name.filter(|_| position < MAX_EXECUTED_TOOLS) {
            self.executed_tools.entry(position).or_insert(name);
        }
    }

    fn take_content(&mut self, content: &RawValue, whole: bool, events: &mut Vec<ModelEvent>) -> Result<(), Full> {
        if let Some(text) = wire::text(content) {
            match &mut self.think {
                Some(think) => {
                    let split = think.push(&text);
                    self.add_split(split, events);
                }
                None => self.add_text(text, events),
            }
        } else if let Some(items) = wire::list(content) {
            for item in items {
                self.take_block(item, whole, events)?;
            }
        }
        Ok(())
    }

    fn add_split(&mut self, split: Split, events: &mut Vec<ModelEvent>) {
        self.add_reasoning(split.reasoning, events);
        self.add_text(split.text, events);
    }

    fn take_block(&mut self, raw: &RawValue, whole: bool, events: &mut Vec<ModelEvent>) -> Result<(), Full> {
        let Some(block) = wire::object(raw) else {
            self.add_text(wire::text(raw).unwrap_or_default(), events);
            return Ok(());
        };
        match block.borrowed_text("type").as_deref() {
            Some("text" | "output_text") | None if block.has("text") => {
                self.add_text(block.text("text").unwrap_or_default(), events);
                let sources = block.list("annotations").or_else(|| block.list("citations"));
                self.add_citations(&sources.unwrap_or_default())?;
            }
            Some("refusal") => self.add_refusal(block.text("refusal").unwrap_or_default(), events),
            Some("thinking" | "reasoning") => self.add_thinking(raw, words(&block), whole, events)?,
            _ => self.parts.push(Part::Opaque(raw.get().to_owned())),
        }
        Ok(())
    }

    fn add_text(&mut self, piece: String, events: &mut Vec<ModelEvent>) {
        if piece.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Text { text, .. }) => text.push_str(&piece),
            _ => self.parts.push(Part::Text {
                text: piece.clone(),
                citations: Vec::new(),
            }),
        }
        events.push(ModelEvent::TextDelta { text: piece });
    }

    fn add_reasoning(&mut self, piece: String, events: &mut Vec<ModelEvent>) {
        if piece.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Reasoning(text)) => text.push_str(&piece),
            _ => self.parts.push(Part::Reasoning(piece.clone())),
        }
        events.push(ModelEvent::ReasoningDelta { text: piece });
    }

    fn add_refusal(&mut self, piece: String, events: &mut Vec<ModelEvent>) {
        if piece.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Refusal(text)) => text.push_str(&piece),
            _ => self.parts.push(Part::Refusal(piece.clone())),
        }
        events.push(ModelEvent::RefusalDelta { text: piece });
    }

    fn add_thinking(
        &mut self,
        raw: &RawValue,
        piece: String,
        whole: bool,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Full> {
        match self.parts.last_mut() {
            Some(Part::Thinking { words, block }) if !whole && block.continues_with(raw) => {
                words.push_str(&piece);
                block.merge(raw, &mut self.room)?;
            }
            _ => self.parts.push(Part::Thinking {
                words: piece.clone(),
                block: Block::new(raw),
            }),
        }
        if !piece.is_empty() {
            events.push(ModelEvent::ReasoningDelta { text: piece });
        }
        Ok(())
    }

    /// Adds the sources that are new to the latest words. Some servers name all of them with each
    /// chunk.
    fn add_citations(&mut self, sources: &[&RawValue]) -> Result<(), Full> {
        let new = self.sources.take_new(sources.iter().copied(), &mut self.room)?;
        if new.is_empty() {
            return Ok(());
        }
        let last = self.parts.iter_mut().rev().find_map(|part| match part {
            Part::Text { citations, .. } => Some(citations),
            _ => None,
        });
        match last {
            Some(citations) => citations.extend(new),
            None => self.parts.push(Part::Text {
                text: String::new(),
                citations: new,
            }),
        }
        Ok(())
    }
}

fn counted(names: BTreeMap<u64, String>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for name in names.into_values() {
        *counts.entry(name).or_default() += 1;
    }
    counts
}

/// Returns the readable reasoning; servers that send it under several names mean the same words.
fn reasoning_words(message: &Fields<'_>) -> String {
    let details = || {
        let details = message.list("reasoning_details")?;
        Some(
            details
                .into_iter()
                .filter_map(wire::object)
                .map(|detail| words(&detail))
                .collect(),
        )
    };
    let plain = message
        .filled("reasoning_content")
        .or_else(|| message.filled("reasoning"));
    plain.or_else(details).unwrap_or_default()
}

fn reasoning(text: String) -> ContentPart {
    ContentPart::Reasoning(ReasoningPart {
        text,
        ..ReasoningPart::default()
    })
}

/// Reads a picture that the model has made.
fn image(raw: &RawValue) -> Option<MediaSource> {
    let url = wire::object(raw)?.object("image_url")?.filled("url")?;
    let data = url.strip_prefix("data:").and_then(|data| data.split_once(";base64,"));
    Some(match data {
        Some((media_type, data)) => MediaSource::Base64 {
            media_type: media_type.to_owned(),
            data: data.to_owned(),
        },
        None => MediaSource::Url { url },
    })
}

fn opaque(provider: &str, raw: String) -> ContentPart {
    ContentPart::Opaque(OpaquePart {
        provider: provider.to_owned(),
        raw: RawJson::new(raw),
    })
}

/// Reads the finish reason. A whole completion without one gets the obvious one.
fn finish_reason(reason: Option<String>, has_calls: bool) -> FinishReason {
    let Some(reason) = reason else {
        return if has_calls {
            FinishReason::ToolCalls
        } else {
            FinishReason::Stop
        };
    };
    match reason.to_ascii_lowercase().as_str() {
        "stop" => FinishReason::Stop,
        "length" | "max_tokens" => FinishReason::Length,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "content_filter" => FinishReason::ContentFilter,
        _ => FinishReason::Other(reason),
    }
}
