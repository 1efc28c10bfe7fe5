//! Messages under construction, to which a neighbour of the same role may be joined.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::content::Block;
use super::dialect::Dialect;
use super::reasoning::is_reasoning;
use crate::json::{RawJson, Value};
use crate::message::{ContentPart, Message, ProviderFields, ToolCall};
use crate::models::encode::{Part, raw};
use crate::models::names::{WireIds, arguments, tool_name};
use crate::models::target::Target;
use crate::models::wire::Fields;

/// Separates the texts of joined messages.
const BETWEEN: &str = "\n\n";

/// A message under construction.
#[derive(Debug, Clone)]
pub(super) enum Draft {
    /// A message of the caller.
    Caller(CallerDraft),
    /// A message of the model.
    Model(ModelDraft),
}

impl Draft {
    /// Encodes the message.
    pub(super) fn wire(&self) -> WireMessage<'_> {
        match self {
            Self::Caller(draft) => draft.wire(),
            Self::Model(draft) => draft.wire(),
        }
    }

    /// Returns about how many bytes of memory the message takes.
    pub(super) fn bytes(&self) -> usize {
        serde_json::to_vec(&self.wire()).map_or(0, |bytes| bytes.len())
    }
}

/// A message of the caller.
#[derive(Debug, Clone, Default)]
pub(super) struct CallerDraft {
    /// Its blocks.
    pub(super) content: Vec<Block>,
    /// The speaker's name.
    pub(super) name: Option<String>,
}

impl CallerDraft {
    /// Adds the next message of the caller.
    pub(super) fn join(&mut self, next: Self) {
        let mut content = next.content.into_iter().peekable();
        if let Some(Block::Text(text)) = self.content.last_mut()
            && let Some(Block::Text(more)) = content.peek()
        {
            text.push_str(BETWEEN);
            text.push_str(more);
            content.next();
        }
        self.content.extend(content);
    }

    fn wire(&self) -> WireMessage<'_> {
        let mut wire = WireMessage::new("user");
        match self.content.as_slice() {
            [] => wire.set_text("content", ""),
            [Block::Text(text)] => wire.set_text("content", text),
            blocks => wire.set("content", blocks),
        }
        if let Some(name) = &self.name {
            wire.set_text("name", name);
        }
        wire
    }
}

/// A message of the model.
#[derive(Debug, Clone, Default)]
pub(super) struct ModelDraft {
    text: String,
    refusal: String,
    /// The parts, if some are the provider's own.
    blocks: Option<Vec<Part>>,
    calls: Vec<Part>,
    /// The provider's own fields.
    fields: Vec<(String, Part)>,
}

impl ModelDraft {
    /// Reads a message of the model; `None` if nothing of it is sent back, as with reasoning alone.
    /// Providers reject a message without content.
    pub(super) fn of(message: &Message, dialect: &Dialect, target: &Target, ids: &mut WireIds) -> Option<Self> {
        let own = message.provider_fields.as_ref().filter(|_| target.made(message));
        let calls = message.tool_calls().filter_map(|call| {
            let id = ids.of_call(message.id, call, own.is_some());
            raw(&wire_call(call, &id, own.is_some()))
        });
        let mut draft = Self {
            calls: calls.collect(),
            ..Self::default()
        };
        let mut has_opaque = false;
        for part in &message.content {
            match part {
                ContentPart::Text(part) => draft.text += part.text.as_str(),
                ContentPart::Refusal { text } if dialect.refusal_field => draft.refusal += text,
                ContentPart::Refusal { text } => draft.text += text,
                ContentPart::Opaque(part) => has_opaque |= target.made_part(message, part),
                // Reasoning is sent back only in the provider's own fields.
                _ => {}
            }
        }
        let carries = |own: &ProviderFields| own.fields.iter().any(is_content);
        let has_words = !draft.text.is_empty() || !draft.refusal.is_empty();
        if !has_words && draft.calls.is_empty() && !has_opaque && !own.is_some_and(carries) {
            return None;
        }
        if has_opaque {
            draft.blocks = Some(opaque_blocks(message, dialect, target));
        }
        let fields = own.iter().flat_map(|own| &own.fields);
        draft.fields = fields
            .filter_map(|(name, json)| Some((name.clone(), checked(json.as_str())?)))
            .collect();
        Some(draft)
    }

    /// Makes a message of words.
    pub(super) fn saying(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            ..Self::default()
        }
    }

    /// Adds the next message of the model.
    pub(super) fn join(&mut self, mut next: Self) {
        if self.blocks.is_some() || next.blocks.is_some() {
            let mut blocks = self.take_blocks();
            blocks.extend(next.take_blocks());
            self.blocks = Some(blocks);
        }
        for (text, more) in [(&mut self.text, next.text), (&mut self.refusal, next.refusal)] {
            if !text.is_empty() && !more.is_empty() {
                text.push_str(BETWEEN);
            }
            text.push_str(&more);
        }
        self.calls.extend(next.calls);
        for (name, value) in next.fields {
            if !self.fields.iter().any(|(known, _)| *known == name) {
                self.fields.push((name, value));
            }
        }
    }

    fn take_blocks(&mut self) -> Vec<Part> {
        let text = || (!self.text.is_empty()).then(|| raw(&Block::Text(self.text.clone())));
        self.blocks
            .take()
            .unwrap_or_else(|| text().flatten().into_iter().collect())
    }

    fn wire(&self) -> WireMessage<'_> {
        let mut wire = WireMessage::new("assistant");
        let has_more = !self.calls.is_empty() || !self.refusal.is_empty();
        match &self.blocks {
            Some(blocks) => wire.set("content", blocks),
            None if self.text.is_empty() && has_more => wire.set("content", &Value::Null),
            None => wire.set_text("content", &self.text),
        }
        if !self.refusal.is_empty() {
            wire.set_text("refusal", &self.refusal);
        }
        if !self.calls.is_empty() {
            wire.set("tool_calls", &self.calls);
        }
        for (name, value) in &self.fields {
            wire.set_part(name, value);
        }
        wire
    }
}

/// Encodes the parts of a message with provider-specific parts.
fn opaque_blocks(message: &Message, dialect: &Dialect, target: &Target) -> Vec<Part> {
    let of_text = |text: &str| raw(&Block::Text(text.to_owned()));
    let parts = message.content.iter().filter_map(|part| match part {
        ContentPart::Text(part) if !part.text.is_empty() => of_text(&part.text),
        ContentPart::Refusal { text } if !dialect.refusal_field => of_text(text),
        ContentPart::Opaque(part) if target.made_part(message, part) => checked(part.raw.as_str()),
        _ => None,
    });
    parts.collect()
}

/// Returns whether a provider's own field counts as content in a message without text.
fn is_content((name, raw): &(String, RawJson)) -> bool {
    !is_reasoning(name) && checked(raw.as_str()).is_some()
}

/// Encodes a call. Arguments that are a JSON object go back verbatim.
fn wire_call<'a>(call: &'a ToolCall, id: &'a str, own: bool) -> WireMessage<'a> {
    let mut wire = WireMessage(Vec::new());
    wire.set_text("id", id);
    wire.set_text("type", "function");
    wire.set(
        "function",
        &json!({"arguments": arguments(call), "name": tool_name(&call.name)}),
    );
    let signature = call.signature.as_deref().filter(|_| own).and_then(Fields::parse);
    for (name, value) in signature.unwrap_or_default().iter() {
        wire.set_part(name.to_owned(), value);
    }
    wire
}

fn checked(raw: &str) -> Option<Part> {
    RawValue::from_string(raw.to_owned()).ok()
}

/// The fields of a message in their order.
#[derive(Debug)]
pub(super) struct WireMessage<'a>(Vec<(Cow<'a, str>, WireValue<'a>)>);

/// A field of a message. Most are texts, which may be large and are not copied.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum WireValue<'a> {
    Text(Cow<'a, str>),
    Json(Part),
}

impl Serialize for WireMessage<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'a> WireMessage<'a> {
    fn new(role: &'a str) -> Self {
        let mut message = Self(Vec::new());
        message.set_text("role", role);
        message
    }

    /// Makes a message with a text.
    pub(super) fn plain(role: &'a str, content: impl Into<Cow<'a, str>>) -> Self {
        let mut message = Self::new(role);
        message.set_text("content", content);
        message
    }

    /// Adds a text.
    pub(super) fn set_text(&mut self, name: &'a str, text: impl Into<Cow<'a, str>>) {
        self.0.push((name.into(), WireValue::Text(text.into())));
    }

    fn set(&mut self, name: &'a str, value: &(impl Serialize + ?Sized)) {
        if let Some(value) = raw(value) {
            self.0.push((name.into(), WireValue::Json(value)));
        }
    }

    /// Adds a verbatim field, unless the message has it already.
    fn set_part(&mut self, name: impl Into<Cow<'a, str>>, value: &RawValue) {
        let name = name.into();
        if !self.0.iter().any(|(known, _)| *known == name) {
            self.0.push((name, WireValue::Json(value.to_owned())));
        }
    }
}
