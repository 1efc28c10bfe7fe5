//! Builds one completion from its blocks and their pieces. Knows neither streams nor bytes.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::value::RawValue;

use super::usage::usage;
use crate::blocks::{Block, Blocks};
use crate::calls::{Beginning, arguments_of};
use crate::ending::{finish_reason, reason_of};
use crate::envelope::{Envelope, count_calls};
use crate::fault::Fault;
use crate::fields::{self, Fields, unknown_fields};
use crate::opaque::Opaque;
use crate::settings::CapSettings;
use agent::ports::ModelEvent;
use agent::state::{FinishReason, ModelResponse};
use values::ids::IdSource;
use values::json::{Object, Value};
use values::message::ContentPart;
use values::usage::Usage;

/// The most levels of a piece that are merged. A deeper value replaces the earlier one.
const MAX_DEPTH: usize = 8;

/// The type of a call that the provider executes itself. Calls of our tools have another type or
/// none.
const EXECUTED: &str = "server_tool_use";

/// A completion that is being assembled.
#[derive(Debug)]
pub(super) struct Completion {
    blocks: Blocks,
    envelope: Envelope,
    usage: Usage,
    stop_reason: Option<String>,
}

impl Completion {
    /// Makes an empty completion of the provider.
    pub(super) fn new(provider: &str, ids: Arc<dyn IdSource>, caps: CapSettings) -> Self {
        Self {
            blocks: Blocks::new(ids, caps),
            envelope: Envelope::new(provider),
            usage: Usage::default(),
            stop_reason: None,
        }
    }

    /// Returns whether the provider has sent the finish reason.
    pub(super) fn is_finished(&self) -> bool {
        self.stop_reason.is_some()
    }

    /// Reads the finish reason, if present.
    pub(super) fn take_end(&mut self, fields: &Fields<'_>) {
        self.stop_reason = reason_of(fields, "stopReason").or(self.stop_reason.take());
    }

    /// Reads the usage, if present.
    pub(super) fn take_usage(&mut self, fields: &Fields<'_>) {
        if let Some(fields) = fields.object("usage") {
            self.usage = usage(&fields);
        }
    }

    /// Returns the event of the usage, if the provider has reported usage.
    pub(super) fn usage_event(&mut self) -> Option<ModelEvent> {
        self.envelope.changed_usage(self.usage)
    }

    /// Takes a whole block.
    pub(super) fn take_block(&mut self, raw: &RawValue, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let Some(block) = fields::object(raw) else {
            let text = fields::text(raw).ok_or(Fault::Unreadable)?;
            self.blocks.open(None, Block::text())?.0.add_text(text, events);
            return Ok(());
        };
        if block.has("toolUse") {
            self.begin(None, raw, events)?;
            self.end(None);
        } else if let Some(text) = block.words("text") {
            self.blocks.open(None, Block::text())?.0.add_text(text, events);
        } else if let Some(cited) = block.object("citationsContent") {
            let (opened, room) = self.blocks.open(None, Block::text())?;
            for piece in cited.list("content").unwrap_or_default() {
                let text = fields::object(piece).and_then(|piece| piece.words("text"));
                opened.add_text(text.unwrap_or_default(), events);
            }
            for source in cited.list("citations").unwrap_or_default() {
                opened.cite(source, room)?;
            }
        } else if let Some(reasoning) = block.object("reasoningContent") {
            let (opened, _) = self.blocks.open(None, Block::reasoning())?;
            think(opened, &reasoning.object("reasoningText").unwrap_or_default(), events);
            think(opened, &reasoning, events);
        } else if !block.is_empty() {
            self.blocks.open(None, Block::Opaque(Opaque::new(raw.get())))?;
        }
        Ok(())
    }

    /// Reads the beginning of a block. Text and reasoning have no such event.
    pub(super) fn begin(
        &mut self,
        index: Option<u64>,
        raw: &RawValue,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        let start = fields::object(raw).unwrap_or_default();
        match start.object("toolUse") {
            Some(call) if call.borrowed_text("type").as_deref() != Some(EXECUTED) => {
                let beginning = Beginning {
                    id: call.filled("toolUseId"),
                    name: call.filled("name"),
                    arguments: arguments_of(&call),
                    // Requests must not have the type that some models give our calls, `tool_use`.
                    extras: unknown_fields(&call, &["toolUseId", "name", "input", "type"], usize::MAX),
                };
                self.blocks.begin_call(index, beginning, events)?;
            }
            _ if start.is_empty() => {}
            _ => {
                self.blocks.open(index, Block::Opaque(Opaque::new(raw.get())))?;
            }
        }
        Ok(())
    }

    /// Reads a piece of a block. A piece without an index belongs to the latest block. A piece that
    /// fits no block begins a new one.
    pub(super) fn add(
        &mut self,
        index: Option<u64>,
        delta: &Fields<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), Fault> {
        if let Some(text) = delta.words("text") {
            let (block, _) = self.blocks.get_or_open(index, Block::text())?;
            block.add_text(text, events);
        } else if let Some(source) = delta.get("citation") {
            let (block, room) = self.blocks.get_or_open(index, Block::text())?;
            block.cite(source, room)?;
        } else if let Some(reasoning) = delta.object("reasoningContent") {
            let (block, _) = self.blocks.get_or_open(index, Block::reasoning())?;
            think(block, &reasoning, events);
        } else if !delta.is_empty() {
            self.add_other(index, delta, events)?;
        }
        Ok(())
    }

    fn add_other(&mut self, index: Option<u64>, delta: &Fields<'_>, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        match (self.blocks.get(index), delta.object("toolUse")) {
            (Some((Block::Call(known), _)), Some(call)) => known.push(call.words("input").unwrap_or_default(), events),
            (Some((Block::Opaque(known), room)), _) => known.merge(delta.iter(), MAX_DEPTH, room)?,
            (_, Some(_)) => return Err(Fault::StrayArguments),
            (_, None) => {
                let (block, room) = self.blocks.open(index, Block::Opaque(Opaque::new("{}")))?;
                if let Block::Opaque(block) = block {
                    block.merge(delta.iter(), MAX_DEPTH, room)?;
                }
            }
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
        let mut content = self.blocks.finish(is_whole, &self.envelope.provider, text_of, events);
        let is_content = |part: &ContentPart| !matches!(part, ContentPart::Reasoning(_));
        if let (FinishReason::ContentFilter, Some(reason)) = (&finish_reason, self.stop_reason)
            && !content.iter().any(is_content)
        {
            let text = format!("The provider withheld the response: {reason}");
            events.push(ModelEvent::RefusalDelta { text: text.clone() });
            content.push(ContentPart::Refusal { text });
        }
        ModelResponse {
            provider_tool_calls: counted(&content),
            ..self.envelope.response(content, finish_reason)
        }
    }
}

fn think(block: &mut Block, piece: &Fields<'_>, events: &mut Vec<ModelEvent>) {
    if let Block::Reasoning(part) = block {
        for (known, name) in [
            (&mut part.signature, "signature"),
            (&mut part.encrypted, "redactedContent"),
        ] {
            if let Some(text) = piece.filled(name) {
                known.get_or_insert_default().push_str(&text);
            }
        }
    }
    block.add_reasoning(piece.text("text").unwrap_or_default(), events);
}

/// Returns the JSON of a block. The input of a call arrives as pieces of JSON text and is sent back
/// as the parsed value.
fn text_of(block: Opaque) -> String {
    block.finish_mended(|merged| {
        let call = merged.get_mut("toolUse");
        if let Some(input) = call.and_then(|call| call.get_mut("input"))
            && let Some(value) = input.as_str().map(serde_json::from_str)
        {
            *input = value.unwrap_or_else(|_| Value::Object(Object::new()));
        }
    })
}

/// Counts the calls of tools that the service executes itself, by tool. Other calls have a
/// different form.
fn counted(content: &[ContentPart]) -> BTreeMap<String, u64> {
    count_calls(content.iter().filter_map(|part| {
        let ContentPart::Opaque(part) = part else { return None };
        let call = Fields::parse(part.raw.as_str())?.object("toolUse")?;
        Some(call.filled("name").unwrap_or_else(|| "unnamed".to_owned()))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::room::Room;

    #[test]
    fn the_pieces_of_an_input_go_back_as_its_value() {
        for (start, deltas, expected) in [
            (
                r#"{"toolUse":{"toolUseId":"a","name":"t","type":"server_tool_use"}}"#,
                &[r#"{"toolUse":{"input":"{\"q\":"}}"#, r#"{"toolUse":{"input":"1}"}}"#][..],
                r#"{"toolUse":{"input":{"q":1},"name":"t","toolUseId":"a","type":"server_tool_use"}}"#,
            ),
            (
                r#"{"toolUse":{"name":"t"}}"#,
                &[r#"{"toolUse":{"input":"{\"cut"}}"#],
                r#"{"toolUse":{"input":{},"name":"t"}}"#,
            ),
        ] {
            let mut block = Opaque::new(start);
            for delta in deltas {
                let delta = Fields::parse(delta).unwrap();
                block.merge(delta.iter(), MAX_DEPTH, &mut Room::new(100)).unwrap();
            }
            assert_eq!(text_of(block), expected);
        }
    }
}
