//! Encodes the common parts of messages of all protocols. Knows no provider's JSON.

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::fields::{Fields, Map};
use values::json::RawJson;
use values::message::{ContentPart, Message, TextPart};

/// An encoded part of a message.
pub(super) type Part = Box<RawValue>;

/// The items of a JSON list, encoded. A copy shares the bytes of the retained items.
#[derive(Debug, Clone, Default)]
pub(super) struct Items {
    /// The bytes of the retained items. Each piece has at most half of the bytes of the previous
    /// piece, so there are few, and a byte is rarely copied.
    retained: Vec<Bytes>,
    /// The bytes of the other items.
    added: Vec<u8>,
}

impl Items {
    /// Adds an item. This can't fail, since every map has text keys.
    pub(super) fn push(&mut self, item: &(impl Serialize + ?Sized)) {
        if !self.is_empty() {
            self.added.push(b',');
        }
        serde_json::to_writer(&mut self.added, item).unwrap_or_default();
    }

    /// Adds items that are encoded already.
    pub(super) fn extend(&mut self, items: impl IntoIterator<Item = Part>) {
        for item in items {
            self.push(&item);
        }
    }

    /// Returns whether there are no items.
    pub(super) fn is_empty(&self) -> bool {
        self.retained.is_empty() && self.added.is_empty()
    }

    /// Returns the number of bytes.
    pub(super) fn bytes(&self) -> usize {
        self.retained.iter().map(Bytes::len).sum::<usize>() + self.added.len()
    }

    /// Returns the items in the form that is cheap to copy.
    pub(super) fn retained(mut self) -> Self {
        let mut added = self.added;
        while let Some(piece) = self.retained.pop_if(|piece| piece.len() < 2 * added.len()) {
            added = [&piece, added.as_slice()].concat();
        }
        if !added.is_empty() {
            self.retained.push(added.into());
        }
        Self {
            added: Vec::new(),
            ..self
        }
    }

    fn write(&self, body: &mut Vec<u8>) {
        for piece in &self.retained {
            body.extend_from_slice(piece);
        }
        body.extend_from_slice(&self.added);
    }
}

/// The body of a request: an object with a list of items.
#[derive(Debug)]
pub(super) struct Body<'a> {
    /// The fields before the list, as the text of an object.
    pub(super) before: String,
    /// The name of the list.
    pub(super) list: &'static str,
    /// The parts of the list.
    pub(super) items: Vec<&'a Items>,
    /// The fields after the list, as the text of an object.
    pub(super) after: String,
}

impl<'a> Body<'a> {
    /// Encodes the fields around the list. This can't fail, since every map has text keys and every
    /// raw value was checked.
    pub(super) fn new(
        before: &impl Serialize,
        (list, items): (&'static str, Vec<&'a Items>),
        after: &impl Serialize,
    ) -> Self {
        Self {
            before: serde_json::to_string(before).unwrap_or_default(),
            list,
            items,
            after: serde_json::to_string(after).unwrap_or_default(),
        }
    }

    /// Returns the text.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        let (before, after) = (fields(&self.before), fields(&self.after));
        let length = self.items.iter().map(|items| items.bytes()).sum::<usize>();
        let mut body = Vec::with_capacity(before.len() + length + after.len() + self.list.len() + 16);
        body.push(b'{');
        body.extend_from_slice(before.as_bytes());
        if !before.is_empty() {
            body.push(b',');
        }
        body.extend_from_slice(format!("\"{}\":[", self.list).as_bytes());
        for (at, items) in self.items.iter().filter(|items| !items.is_empty()).enumerate() {
            if at > 0 {
                body.push(b',');
            }
            items.write(&mut body);
        }
        body.push(b']');
        if !after.is_empty() {
            body.push(b',');
        }
        body.extend_from_slice(after.as_bytes());
        body.push(b'}');
        body
    }
}

/// Returns the text of an object without its braces.
fn fields(object: &str) -> &str {
    let fields = object.strip_prefix('{').and_then(|fields| fields.strip_suffix('}'));
    fields.unwrap_or_default()
}

/// Encodes a value. This can't fail, since every map has text keys.
pub(super) fn raw(value: &(impl Serialize + ?Sized)) -> Option<Part> {
    serde_json::value::to_raw_value(value).ok()
}

/// Encodes an object.
pub(super) fn object(fields: &[(&str, Part)]) -> Option<Part> {
    raw(&Map(fields))
}

/// Encodes an object with the additional fields of a mark, also if two have the same name. Fields
/// of the object take precedence, and fields in `left_out` are dropped.
pub(super) fn marked(fields: Vec<(&str, Part)>, mark: Option<&str>, left_out: &[&str]) -> Option<Part> {
    let mark = mark.and_then(Fields::parse).unwrap_or_default();
    let known: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    let mut all: Vec<(&str, Part)> = fields;
    let unknown = |name: &str| !known.contains(&name) && !left_out.contains(&name);
    for (name, value) in mark.iter().filter(|(name, _)| unknown(name)) {
        all.push((name, value.to_owned()));
    }
    object(&all)
}

/// Returns an object verbatim; `None` for any other JSON.
pub(super) fn verbatim(json: &RawJson) -> Option<Part> {
    Fields::parse(json.as_str())?;
    RawValue::from_string(json.as_str().to_owned()).ok()
}

/// Returns the words of a text or a refusal.
pub(super) fn text_or_refusal(part: &ContentPart) -> Option<&str> {
    match part {
        ContentPart::Text(TextPart { text, .. }) | ContentPart::Refusal { text } => Some(text),
        _ => None,
    }
}

/// Returns instructions in the middle of a conversation as text of the caller, for servers that
/// accept instructions only at the beginning. Returns `None` if they are blank.
pub(super) fn instruction(message: &Message) -> Option<String> {
    let text = message.joined_text();
    is_visible(&text).then(|| format!("<system>\n{}\n</system>", text.trim()))
}

/// Returns whether a text is not blank. Some protocols reject blank text.
pub(super) fn is_visible(text: &str) -> bool {
    !text.trim().is_empty()
}

/// Returns the texts of a result, one per line.
pub(super) fn lines(content: &[ContentPart]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(ContentPart::as_text).collect();
    texts.join("\n")
}
