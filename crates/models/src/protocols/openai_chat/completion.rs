//! Builds one completion from its pieces. Knows neither streams nor bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::calls::Calls;
use super::reasoning::{RetainedFields, continues_with, merge, words};
use super::think::{Split, ThinkSplit};
use crate::calls::is_call;
use crate::delta::{DeltaKind, unsaid};
use crate::ending::Ending;
use crate::envelope::{Envelope, count_calls};
use crate::fault::Fault;
use crate::fields::{self, Fields};
use crate::files::inline_data;
use crate::opaque::Opaque;
use crate::room::Room;
use crate::settings::CapSettings;
use crate::sources::Sources;
use agent::ports::ModelEvent;
use agent::state::ModelResponse;
use values::ids::IdSource;
use values::json::RawJson;
use values::message::{ContentPart, ImagePart, MediaSource, OpaquePart, TextPart};
use values::usage::Usage;

/// The most provider tools that are counted in a completion.
const MAX_EXECUTED_TOOLS: u64 = 256;

/// A completion that is being assembled.
#[derive(Debug)]
pub(super) struct Completion {
    parts: Vec<Part>,
    calls: Calls,
    /// Whether a whole message arrived.
    has_whole: bool,
    /// The texts that a whole message after the pieces has not repeated yet.
    left: Vec<(DeltaKind, String)>,
    /// The number of calls that are already among the parts.
    placed_calls: usize,
    room: Room,
    sources: Sources,
    retained: RetainedFields,
    /// Splits reasoning off the text; `None` if the text has none.
    think: Option<ThinkSplit>,
    /// The names of the tools that the provider executed itself, by position in the completion.
    executed_tools: BTreeMap<u64, String>,
    ending: Ending,
    envelope: Envelope,
}

#[derive(Debug)]
enum Part {
    Content(ContentPart),
    /// Reasoning that only its provider can read, and its text for other providers.
    Thinking {
        words: String,
        block: Opaque,
    },
    Call(usize),
}

impl Completion {
    /// Makes an empty completion of the provider.
    pub(super) fn new(provider: &str, ids: Arc<dyn IdSource>, caps: CapSettings) -> Self {
        Self {
            parts: Vec::new(),
            calls: Calls::new(ids, caps.tool_calls),
            has_whole: false,
            left: Vec::new(),
            placed_calls: 0,
            room: Room::new(caps.parts),
            sources: Sources::default(),
            retained: RetainedFields::default(),
            think: None,
            executed_tools: BTreeMap::new(),
            ending: Ending::default(),
            envelope: Envelope::new(provider),
        }
    }

    /// Enables splitting reasoning off the text.
    pub(super) fn split_think_tags(&mut self) {
        self.think = Some(ThinkSplit::default());
    }

    /// Ends the text.
    pub(super) fn end_text(&mut self, events: &mut Vec<ModelEvent>) {
        if let Some(rest) = self.think.as_mut().map(ThinkSplit::finish) {
            self.add_split(rest, events);
        }
    }

    /// Returns whether the provider has sent the finish reason.
    pub(super) fn is_finished(&self) -> bool {
        self.ending.is_known()
    }

    /// Returns whether any content arrived. A role and an empty text do not count.
    pub(super) fn has_content(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Returns whether the arguments of a call are not complete.
    pub(super) fn has_open_calls(&self) -> bool {
        self.calls.has_open()
    }

    /// Takes the fields around the choices.
    pub(super) fn take_envelope(&mut self, chunk: &Fields<'_>, usage: Option<Usage>, events: &mut Vec<ModelEvent>) {
        self.envelope.take(chunk, "model", "id");
        // Each count is a snapshot of the whole completion, so the last one wins.
        events.extend(usage.and_then(|usage| self.envelope.changed_usage(usage)));
    }

    /// Takes a finish reason.
    pub(super) fn take_finish_reason(&mut self, reason: &str) {
        self.ending.take(reason);
    }

    /// Reads the message of a choice or, unless it is `whole`, a piece of one. A whole message
    /// after pieces repeats them.
    pub(super) fn take_message(
        &mut self,
        choice: u64,
        message: &Fields<'_>,
        whole: bool,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let (before, events_before) = (self.parts.len(), events.len());
        if whole && !std::mem::replace(&mut self.has_whole, true) && self.has_content() {
            self.left = self.texts();
        }
        self.calls.begin_message(choice);
        self.retained.take(message, whole, &mut self.room)?;
        self.add_delta(DeltaKind::Reasoning, reasoning_words(message), events);
        if let Some(content) = message.get("content") {
            self.take_content(content, whole, events)?;
        }
        self.add_delta(DeltaKind::Refusal, message.words("refusal").unwrap_or_default(), events);
        self.ending.check_choice(choice, &events[events_before..])?;
        let images = message.list("images").unwrap_or_default();
        for image in images.into_iter().filter_map(image) {
            self.add_part(image);
        }
        self.add_citations(&message.list("annotations").unwrap_or_default())?;
        for (slot, item) in message.items("tool_calls").into_iter().enumerate() {
            let item = fields::object(item).ok_or(Fault::Unreadable)?;
            self.calls.take(&item, slot, whole, events)?;
        }
        let executed = message.list("executed_tools").unwrap_or_default();
        for (slot, tool) in (0..MAX_EXECUTED_TOOLS).zip(executed) {
            if let Some(tool) = fields::object(tool) {
                self.add_executed(slot, &tool);
            }
        }
        if let Some(function) = message.object("function_call") {
            self.calls.take_legacy(&function, events)?;
        }
        self.parts.extend((self.placed_calls..self.calls.len()).map(Part::Call));
        self.placed_calls = self.calls.len();
        self.left.clear();
        self.room.take(self.parts.len() - before)
    }

    /// Returns the whole completion.
    pub(super) fn finish(self) -> Result<ModelResponse, Fault> {
        if !self.is_readable() {
            return Err(Fault::Unreadable);
        }
        let mut calls: Vec<_> = self.calls.finish()?.into_iter().map(Some).collect();
        let needs_owner = calls.iter().flatten().any(|call| call.signature.is_some());
        let mut content = Vec::new();
        for part in self.parts {
            match part {
                Part::Content(part) => content.push(part),
                Part::Thinking { words, block } => {
                    content.push(DeltaKind::Reasoning.part(words, None));
                    content.push(opaque(&self.envelope.provider, block.finish()));
                }
                Part::Call(position) => content.extend(calls[position].take().map(ContentPart::ToolCall)),
            }
        }
        Ok(ModelResponse {
            provider_fields: self.retained.finish(&self.envelope.provider, needs_owner),
            provider_tool_calls: count_calls(self.executed_tools.into_values()),
            ..self.envelope.response(content, self.ending.reason())
        })
    }

    /// Returns whether there is more than content that only the provider understands.
    fn is_readable(&self) -> bool {
        let is_unknown = |part: &Part| matches!(part, Part::Content(ContentPart::Opaque(_)));
        let is_known = |part: &Part| match part {
            Part::Content(part) => !matches!(part, ContentPart::Opaque(_) | ContentPart::Reasoning(_)),
            Part::Thinking { .. } => false,
            Part::Call(_) => true,
        };
        self.parts.iter().any(is_known) || !self.parts.iter().any(is_unknown)
    }

    /// Reads a tool that the provider executed itself. A stream may repeat it.
    fn add_executed(&mut self, slot: u64, tool: &Fields<'_>) {
        let name = tool.filled("name").or_else(|| tool.filled("type"));
        let position = tool.count("index").unwrap_or(slot);
        if let Some(name) = name.filter(|_| position < MAX_EXECUTED_TOOLS) {
            self.executed_tools.entry(position).or_insert(name);
        }
    }

    fn take_content(&mut self, content: &RawValue, whole: bool, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        if let Some(text) = fields::borrowed_text(content) {
            match &mut self.think {
                Some(think) => {
                    let split = think.push(&text);
                    self.add_split(split, events);
                }
                None => self.add_delta(DeltaKind::Text, text.into_owned(), events),
            }
        } else {
            for (slot, item) in fields::items(content).into_iter().enumerate() {
                self.take_block(item, slot, whole, events)?;
            }
        }
        Ok(())
    }

    fn add_split(&mut self, split: Split, events: &mut Vec<ModelEvent>) {
        self.add_delta(DeltaKind::Reasoning, split.reasoning, events);
        self.add_delta(DeltaKind::Text, split.text, events);
    }

    fn take_block(
        &mut self,
        raw: &RawValue,
        slot: usize,
        whole: bool,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let Some(block) = fields::object(raw) else {
            self.add_delta(DeltaKind::Text, fields::words(raw), events);
            return Ok(());
        };
        match block.borrowed_text("type").as_deref() {
            Some("thinking" | "reasoning") => self.add_thinking(raw, words(&block), whole, events)?,
            // Servers have several names for text.
            _ if block.has("text") => {
                self.add_delta(DeltaKind::Text, block.words("text").unwrap_or_default(), events);
                let sources = block.list("annotations").or_else(|| block.list("citations"));
                self.add_citations(&sources.unwrap_or_default())?;
            }
            Some("refusal") => self.add_delta(DeltaKind::Refusal, block.words("refusal").unwrap_or_default(), events),
            Some("image_url") => {
                if let Some(image) = image(raw) {
                    self.add_part(image);
                }
            }
            Some(kind) if is_call(kind) => self.calls.take(&block, slot, whole, events)?,
            // Some servers send a structured response as an object.
            None if block.is_empty() => {}
            None => self.add_delta(DeltaKind::Text, raw.get().to_owned(), events),
            _ => {
                let part = opaque(&self.envelope.provider, raw.get().to_owned());
                self.add_part(part);
            }
        }
        Ok(())
    }

    /// Returns the texts so far.
    fn texts(&self) -> Vec<(DeltaKind, String)> {
        let kinds = [DeltaKind::Text, DeltaKind::Reasoning, DeltaKind::Refusal];
        let text = |kind: DeltaKind| {
            let texts = self.parts.iter().filter_map(|part| match (kind, part) {
                (DeltaKind::Text, Part::Content(ContentPart::Text(part))) => Some(part.text.as_str()),
                (DeltaKind::Reasoning, Part::Content(ContentPart::Reasoning(part))) => Some(part.text.as_str()),
                (DeltaKind::Reasoning, Part::Thinking { words, .. }) => Some(words.as_str()),
                (DeltaKind::Refusal, Part::Content(ContentPart::Refusal { text })) => Some(text.as_str()),
                _ => None,
            });
            texts.collect::<String>()
        };
        kinds.into_iter().map(|kind| (kind, text(kind))).collect()
    }

    /// Adds a part, unless a whole message repeats it.
    fn add_part(&mut self, new: ContentPart) {
        let is_same = |part: &Part| matches!(part, Part::Content(part) if *part == new);
        if self.left.is_empty() || !self.parts.iter().any(is_same) {
            self.parts.push(Part::Content(new));
        }
    }

    /// Returns the part of a text that is new.
    fn unsaid(&mut self, kind: DeltaKind, piece: String) -> String {
        match self.left.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, left)) => unsaid(left, piece),
            None => piece,
        }
    }

    fn add_delta(&mut self, kind: DeltaKind, piece: String, events: &mut Vec<ModelEvent>) {
        let piece = self.unsaid(kind, piece);
        if piece.is_empty() {
            return;
        }
        let last = match self.parts.last_mut() {
            Some(Part::Content(part)) => kind.open(part),
            _ => None,
        };
        match last {
            Some(words) => words.push_str(&piece),
            None => self.parts.push(Part::Content(kind.part(piece.clone(), None))),
        }
        events.push(kind.event(piece));
    }

    fn add_thinking(
        &mut self,
        raw: &RawValue,
        piece: String,
        whole: bool,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let has_words = !piece.is_empty();
        let piece = self.unsaid(DeltaKind::Reasoning, piece);
        if has_words && piece.is_empty() {
            return Ok(());
        }
        match self.parts.last_mut() {
            Some(Part::Thinking { words, block }) if !whole && continues_with(block, raw) => {
                words.push_str(&piece);
                merge(block, raw, &mut self.room)?;
            }
            _ => self.parts.push(Part::Thinking {
                words: piece.clone(),
                block: Opaque::new(raw.get()),
            }),
        }
        if !piece.is_empty() {
            events.push(ModelEvent::ReasoningDelta { text: piece });
        }
        Ok(())
    }

    /// Adds new sources to the latest text. Some servers repeat all sources in each chunk.
    fn add_citations(&mut self, sources: &[&RawValue]) -> Result<(), Fault> {
        let new = self.sources.take_new(sources.iter().copied(), &mut self.room)?;
        if new.is_empty() {
            return Ok(());
        }
        let last = self.parts.iter_mut().rev().find_map(|part| match part {
            Part::Content(ContentPart::Text(part)) => Some(&mut part.citations),
            _ => None,
        });
        match last {
            Some(citations) => citations.extend(new),
            None => self.parts.push(Part::Content(ContentPart::Text(TextPart {
                citations: new,
                ..TextPart::default()
            }))),
        }
        Ok(())
    }
}

/// Returns the readable reasoning. If a server sends it under several names, the text is the same.
fn reasoning_words(message: &Fields<'_>) -> String {
    let details = || {
        let details = message.list("reasoning_details")?;
        Some(
            details
                .into_iter()
                .filter_map(fields::object)
                .map(|detail| words(&detail))
                .collect(),
        )
    };
    let plain = message
        .filled("reasoning_content")
        .or_else(|| message.filled("reasoning"));
    plain.or_else(details).unwrap_or_default()
}

/// Reads an image that the model generated.
fn image(raw: &RawValue) -> Option<ContentPart> {
    let url = fields::object(raw)?.object("image_url")?.filled("url")?;
    let source = match inline_data(&url) {
        Some((media_type, data)) => MediaSource::Base64 {
            media_type: media_type.to_owned(),
            data: data.to_owned(),
        },
        None => MediaSource::Url { url },
    };
    Some(ContentPart::Image(ImagePart { source, detail: None }))
}

fn opaque(provider: &str, raw: String) -> ContentPart {
    ContentPart::Opaque(OpaquePart {
        provider: provider.to_owned(),
        raw: RawJson::new(raw),
    })
}
