//! Messages under construction, to which a neighbour of the same role may be joined.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::json;
use serde_json::value::RawValue;

use super::content::Block;
use super::reasoning::is_reasoning;
use super::server::Server;
use crate::encode::{Part, raw};
use crate::fields::{Fields, Map};
use crate::names::{WireIds, arguments, tool_name};
use crate::target::Target;
use values::json::RawJson;
use values::message::{ContentPart, Message, ToolCall};

/// The role of the caller.
pub(super) const CALLER: &str = "user";
/// The role of the model.
pub(super) const MODEL: &str = "assistant";
/// The role of a result of a tool.
pub(super) const RESULT: &str = "tool";

/// Separates the texts of joined messages.
const BETWEEN: &str = "\n\n";
/// Fields that a message has without the provider's own.
const BASIC_FIELDS: [&str; 4] = ["role", "content", "refusal", "tool_calls"];

/// A message under construction.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    /// The role of the speaker.
    pub(super) role: &'static str,
    content: Vec<Block>,
    refusal: String,
    calls: Vec<Part>,
    /// Further fields, such as the provider's own.
    fields: Vec<(String, Part)>,
}

impl Draft {
    /// Makes a message.
    pub(super) fn new(role: &'static str, content: Vec<Block>) -> Self {
        Self {
            role,
            content,
            refusal: String::new(),
            calls: Vec::new(),
            fields: Vec::new(),
        }
    }

    /// Makes a message of words.
    pub(super) fn saying(role: &'static str, text: impl Into<String>) -> Self {
        Self::new(role, vec![Block::Text(text.into())])
    }

    /// Reads a message of the model; `None` if nothing of it is sent back, as with reasoning alone.
    /// Providers reject a message without content.
    pub(super) fn of_model(message: &Message, server: Server, target: &Target, ids: &mut WireIds) -> Option<Self> {
        let own = message.provider_fields.as_ref().filter(|_| target.made(message));
        let mut draft = Self::new(MODEL, Vec::new());
        let calls = message.tool_calls().filter_map(|call| {
            let id = ids.of_call(message.id, call, own.is_some());
            wire_call(call, &id, own.is_some())
        });
        draft.calls = calls.collect();
        for part in &message.content {
            match part {
                ContentPart::Text(part) => draft.write(&part.text),
                ContentPart::Refusal { text } if server.has_refusal_field() => draft.refusal += text,
                ContentPart::Refusal { text } => draft.write(text),
                ContentPart::Opaque(part) if target.made_part(message, part) => {
                    draft.content.extend(checked(&part.raw).map(Block::Raw));
                }
                // Reasoning is sent back only in the provider's own fields.
                _ => {}
            }
        }
        let fields = own.iter().flat_map(|own| &own.fields);
        for (name, json) in fields.filter(|(name, _)| !BASIC_FIELDS.contains(&name.as_str())) {
            if let Some(value) = checked(json) {
                draft.add_field(name, value);
            }
        }
        (!draft.is_empty()).then_some(draft)
    }

    /// Adds a field with a text.
    pub(super) fn with(mut self, name: &str, text: &str) -> Self {
        self.fields.extend(raw(text).map(|text| (name.to_owned(), text)));
        self
    }

    /// Adds the speaker's name. A name that the protocol does not accept is dropped, so that the
    /// request does not fail.
    pub(super) fn named(self, name: Option<&str>) -> Self {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let is_accepted = |name: &&str| !name.is_empty() && name.len() <= 64 && name.chars().all(is_plain);
        match name.filter(is_accepted) {
            Some(name) => self.with("name", name),
            None => self,
        }
    }

    /// Returns whether the next message has the same speaker. All messages of the model do: a name
    /// of one is a field of its provider.
    pub(super) fn is_continued_by(&self, next: &Self) -> bool {
        let name = |draft: &Self| draft.field("name").map(|name| name.get().to_owned());
        self.role == next.role && (self.role == MODEL || name(self) == name(next))
    }

    /// Adds the next message of the same speaker.
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
        if !self.refusal.is_empty() && !next.refusal.is_empty() {
            self.refusal.push_str(BETWEEN);
        }
        self.refusal.push_str(&next.refusal);
        self.calls.extend(next.calls);
        for (name, value) in next.fields {
            self.add_field(&name, value);
        }
    }

    /// Returns about how many bytes of memory the message takes.
    pub(super) fn bytes(&self) -> usize {
        let fields = self.fields.iter().map(|(_, value)| value);
        let parts = self.calls.iter().chain(fields).map(|part| part.get().len());
        self.content.iter().map(Block::bytes).chain(parts).sum::<usize>() + self.refusal.len()
    }

    /// Adds words to the text.
    fn write(&mut self, words: &str) {
        match self.content.last_mut() {
            Some(Block::Text(text)) => text.push_str(words),
            _ if words.is_empty() => {}
            _ => self.content.push(Block::Text(words.to_owned())),
        }
    }

    /// Adds a field. Of two with the same name, the first counts.
    fn add_field(&mut self, name: &str, value: Part) {
        if self.field(name).is_none() {
            self.fields.push((name.to_owned(), value));
        }
    }

    /// Returns whether the message has no content. A field other than reasoning counts as content.
    fn is_empty(&self) -> bool {
        let carries = self.fields.iter().any(|(name, _)| !is_reasoning(name));
        self.content.is_empty() && self.refusal.is_empty() && self.calls.is_empty() && !carries
    }

    fn field(&self, name: &str) -> Option<&RawValue> {
        let field = self.fields.iter().find(|(known, _)| known == name);
        field.map(|(_, value)| &**value)
    }
}

impl Serialize for Draft {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_map(None)?;
        fields.serialize_entry("role", self.role)?;
        match self.content.as_slice() {
            [] if self.calls.is_empty() && self.refusal.is_empty() => fields.serialize_entry("content", "")?,
            [] => fields.serialize_entry("content", &())?,
            [Block::Text(text)] => fields.serialize_entry("content", text)?,
            blocks => fields.serialize_entry("content", blocks)?,
        }
        if !self.refusal.is_empty() {
            fields.serialize_entry("refusal", &self.refusal)?;
        }
        if !self.calls.is_empty() {
            fields.serialize_entry("tool_calls", &self.calls)?;
        }
        for (name, value) in &self.fields {
            fields.serialize_entry(name, value)?;
        }
        fields.end()
    }
}

/// Encodes a call. Arguments that are a JSON object go back verbatim.
fn wire_call(call: &ToolCall, id: &str, own: bool) -> Option<Part> {
    let function = json!({"arguments": arguments(call), "name": tool_name(&call.name)});
    let mut fields = vec![
        ("id", raw(id)?),
        ("type", raw("function")?),
        ("function", raw(&function)?),
    ];
    let signature = call.signature.as_deref().filter(|_| own).and_then(Fields::parse);
    let signature = signature.unwrap_or_default();
    for (name, value) in signature.iter() {
        if !fields.iter().any(|(known, _)| *known == name) {
            fields.push((name, value.to_owned()));
        }
    }
    raw(&Map(&fields))
}

fn checked(json: &RawJson) -> Option<Part> {
    RawValue::from_string(json.as_str().to_owned()).ok()
}
