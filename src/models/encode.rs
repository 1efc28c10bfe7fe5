//! Encodes the common parts of messages of all protocols. Knows no provider's JSON.

use serde::Serialize;
use serde_json::value::RawValue;

use super::wire::{Fields, Map};
use crate::json::RawJson;
use crate::message::{ContentPart, Message, TextPart};

/// An encoded part of a message.
pub(super) type Part = Box<RawValue>;

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

/// Returns whether the marks of a message belong to the provider. Marks return only to their own
/// provider.
pub(super) fn is_own(message: &Message, provider: &str) -> bool {
    let owner = message.provider_fields.as_ref();
    owner.is_some_and(|owner| owner.provider == provider)
}

/// Returns the words of a text or a refusal.
pub(super) fn text_or_refusal(part: &ContentPart) -> Option<&str> {
    match part {
        ContentPart::Text(TextPart { text, .. }) | ContentPart::Refusal { text } => Some(text),
        _ => None,
    }
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
