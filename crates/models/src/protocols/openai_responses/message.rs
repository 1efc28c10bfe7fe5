//! A message item under construction: texts, refusals and other content, by position.

use std::collections::BTreeMap;
use std::mem;

use serde_json::value::RawValue;

use super::partial_text::{Fragment, PartialText};
use crate::fault::Fault;
use crate::fields::{self, Fields, MOST_UNKNOWN, unknown_fields};
use crate::room::Room;
use agent::ports::ModelEvent;
use values::json::{RawJson, Value};
use values::message::{Citation, ContentPart, OpaquePart, ReasoningPart, TextPart};

/// Fields of a message that are read. Other fields return to the provider with the message.
const KNOWN: [&str; 5] = ["type", "id", "role", "status", "content"];

/// The kind of a message's part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holds {
    /// Text of the completion.
    Text,
    /// Text of a refusal.
    Refusal,
    /// Reasoning, which some servers put here.
    Reasoning,
    /// Something else.
    Other,
}

/// A message under construction.
#[derive(Debug, Default)]
pub(super) struct Message {
    parts: BTreeMap<(u64, Holds), Part>,
    extras: Option<String>,
    /// The number of parts and citations that are not counted yet.
    made: usize,
}

#[derive(Debug, Default)]
struct Part {
    text: PartialText,
    citations: Vec<Citation>,
    /// The whole part, if it is not text.
    raw: String,
}

impl Message {
    /// Takes words of a part.
    pub(super) fn take_text(&mut self, position: (u64, Holds), fragment: Fragment, events: &mut Vec<ModelEvent>) {
        let added = self.part(position).text.take(fragment);
        emit(position.1, added, events);
    }

    /// Adds a source of a text.
    pub(super) fn cite(&mut self, index: u64, source: &RawValue) {
        self.made += 1;
        let part = self.part((index, Holds::Text));
        part.citations.push(Citation(RawJson::new(source.get())));
    }

    /// Sets a whole part, and returns its key.
    pub(super) fn complete_part(&mut self, index: u64, raw: &RawValue, events: &mut Vec<ModelEvent>) -> (u64, Holds) {
        let part = fields::object(raw).unwrap_or_default();
        let (holds, text) = match part.borrowed_text("type").as_deref() {
            Some("refusal") => (Holds::Refusal, part.words("refusal")),
            Some("reasoning_text" | "summary_text") => (Holds::Reasoning, part.words("text")),
            // Some gateways have other names for text, or send it without a part around it.
            _ if part.has("text") => (Holds::Text, part.words("text")),
            _ => match fields::text(raw) {
                Some(text) => (Holds::Text, Some(text)),
                None => (Holds::Other, None),
            },
        };
        let position = (index, holds);
        let sources = part.list("annotations").unwrap_or_default();
        let known = self.part(position);
        if holds == Holds::Other {
            raw.get().clone_into(&mut known.raw);
        }
        let new = sources.len().saturating_sub(known.citations.len());
        if !sources.is_empty() {
            let sources = sources.into_iter().map(|source| Citation(RawJson::new(source.get())));
            known.citations = sources.collect();
        }
        self.made += new;
        self.take_text(position, Fragment::Whole(text.unwrap_or_default()), events);
        position
    }

    /// Reads the whole item. Drops parts that it does not contain.
    pub(super) fn complete(
        &mut self,
        item: &Fields<'_>,
        room: &mut Room,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        self.extras = unknown_fields(item, &KNOWN, MOST_UNKNOWN);
        let Some(content) = item.get("content") else {
            return Ok(());
        };
        let list = fields::items(content);
        if list.is_empty() {
            return Ok(());
        }
        let mut positions = Vec::new();
        for (index, part) in (0..).zip(list) {
            positions.push(self.complete_part(index, part, events));
            // Each part may have a long list of citations.
            room.take(self.take_made())?;
        }
        self.parts
            .retain(|position, _| positions.binary_search(position).is_ok());
        Ok(())
    }

    /// Returns how many parts and citations were added since the last call.
    pub(super) fn take_made(&mut self) -> usize {
        mem::take(&mut self.made)
    }

    /// Appends the parts. A text has the mark of its message if the message has additional fields,
    /// or if it must be distinguished from the message right before it: `id` is given then. Returns
    /// whether there is a mark.
    pub(super) fn finish(self, provider: &str, id: Option<&str>, content: &mut Vec<ContentPart>) -> bool {
        let mark = mark(id, self.extras);
        for ((_, holds), part) in self.parts {
            let text = part.text.finish();
            let part = match holds {
                Holds::Other => ContentPart::Opaque(OpaquePart {
                    provider: provider.to_owned(),
                    raw: RawJson::new(message_of(&part.raw)),
                }),
                _ if text.is_empty() && part.citations.is_empty() => continue,
                Holds::Text => ContentPart::Text(TextPart {
                    text,
                    citations: part.citations,
                    signature: mark.clone(),
                }),
                Holds::Refusal => ContentPart::Refusal { text },
                Holds::Reasoning => ContentPart::Reasoning(ReasoningPart {
                    text,
                    ..ReasoningPart::default()
                }),
            };
            content.push(part);
        }
        mark.is_some()
    }

    fn part(&mut self, position: (u64, Holds)) -> &mut Part {
        self.parts.entry(position).or_insert_with(|| {
            self.made += 1;
            Part::default()
        })
    }
}

fn emit(holds: Holds, text: String, events: &mut Vec<ModelEvent>) {
    let event = match holds {
        _ if text.is_empty() => return,
        Holds::Text => ModelEvent::TextDelta { text },
        Holds::Refusal => ModelEvent::RefusalDelta { text },
        Holds::Reasoning => ModelEvent::ReasoningDelta { text },
        Holds::Other => return,
    };
    events.push(event);
}

fn mark(id: Option<&str>, extras: Option<String>) -> Option<String> {
    let id = id.map(|id| format!("{{\"id\":{}", Value::from(id)));
    match (id, extras) {
        (Some(id), Some(extras)) => Some(format!("{id},{}", &extras[1..])),
        (Some(id), None) => Some(id + "}"),
        (None, extras) => extras,
    }
}

/// Wraps a part into a message. A part alone is not an item, so it can't be sent back without one.
fn message_of(part: &str) -> String {
    format!(r#"{{"type":"message","role":"assistant","content":[{part}]}}"#)
}
