//! Encodes the parts of one message as the protocol's parts. A part always encodes to the same
//! bytes.

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::media;
use crate::json::RawJson;
use crate::message::{ContentPart, Message, TextPart, ToolCall, ToolResult};
use crate::models::names::{WireIds, arguments, tool_name};
use crate::models::wire::{Fields, Map};

/// An encoded part.
pub(super) type Part = Box<RawValue>;

/// Replaces the signature of a call that the model has not made: newer models refuse a call without
/// one, and take this text for calls of other models
/// (<https://ai.google.dev/gemini-api/docs/thought-signatures>).
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Encodes words.
pub(super) fn text(text: &str) -> Option<Part> {
    raw(&json!({"text": text}))
}

/// Encodes a message of the caller, without results of calls. The protocol refuses empty parts.
pub(super) fn caller_parts(message: &Message, provider: &str) -> impl Iterator<Item = Part> {
    message.content.iter().filter_map(move |part| match part {
        ContentPart::Text(TextPart { text: words, .. }) | ContentPart::Refusal { text: words } => {
            (!words.trim().is_empty()).then(|| text(words))?
        }
        part => raw(&media::part(part, provider)?),
    })
}

/// Encodes a message of the model. Fields of a provider go back to that provider alone; `signed`:
/// whether the model wants signatures.
pub(super) fn model_parts(message: &Message, provider: &str, signed: bool, ids: &mut WireIds) -> Vec<Part> {
    let owner = message.provider_fields.as_ref();
    let own = owner.is_some_and(|owner| owner.provider == provider);
    let mut needs_signature = signed;
    let mut pieces: Vec<Piece> = Vec::new();
    for part in &message.content {
        let piece = match part {
            ContentPart::Text(part) => text_piece(&part.text, part.signature.as_deref().filter(|_| own), false),
            ContentPart::Refusal { text } => text_piece(text, None, false),
            ContentPart::Reasoning(part) if own => text_piece(&part.text, part.signature.as_deref(), true),
            ContentPart::ToolCall(part) => {
                let id = ids.of_call(message.id, part);
                // Of calls that were made together, the first one has the signature.
                let substitute = std::mem::take(&mut needs_signature).then_some(NO_SIGNATURE);
                call(part, &id, own, substitute).map(Piece::Complete)
            }
            ContentPart::Opaque(part) if part.provider == provider => opaque(&part.raw),
            _ => None,
        };
        pieces.extend(piece);
    }
    // The completion was cut during reasoning, or before a tool of the provider had finished.
    while matches!(pieces.last(), Some(Piece::Unfinished(_))) {
        pieces.pop();
    }
    let parts = pieces.into_iter().map(|piece| match piece {
        Piece::Complete(part) | Piece::Unfinished(part) => part,
    });
    parts.collect()
}

enum Piece {
    Complete(Part),
    /// A part that something has to follow.
    Unfinished(Part),
}

fn text_piece(text: &str, signature: Option<&str>, is_thought: bool) -> Option<Piece> {
    if text.is_empty() && signature.is_none() {
        return None;
    }
    let mut part = vec![("text", raw(text)?)];
    if is_thought {
        part.push(("thought", raw(&true)?));
    }
    if let Some(signature) = signature {
        part.push(("thoughtSignature", raw(signature)?));
    }
    let part = raw(&Map(&part))?;
    Some(if is_thought {
        Piece::Unfinished(part)
    } else {
        Piece::Complete(part)
    })
}

fn opaque(part: &RawJson) -> Option<Piece> {
    let fields = Fields::parse(part.as_str())?;
    let part = RawValue::from_string(part.as_str().trim().to_owned()).ok()?;
    let is_unfinished = ["executableCode", "toolCall"].into_iter().any(|kind| fields.has(kind));
    Some(if is_unfinished {
        Piece::Unfinished(part)
    } else {
        Piece::Complete(part)
    })
}

/// Encodes a call. Arguments that are a JSON object go back verbatim.
fn call(call: &ToolCall, id: &str, own: bool, substitute: Option<&str>) -> Option<Part> {
    let arguments = RawValue::from_string(arguments(call).into_owned()).ok()?;
    let function = [
        ("id", raw(id)?),
        ("name", raw(tool_name(&call.name).as_ref())?),
        ("args", arguments),
    ];
    let mut part = vec![("functionCall", raw(&Map(&function))?)];
    let around = call.signature.as_deref().filter(|_| own).and_then(Fields::parse);
    let around = around.unwrap_or_default();
    for (name, value) in around.iter().filter(|(name, _)| *name != "functionCall") {
        part.push((name, value.to_owned()));
    }
    if let Some(substitute) = substitute.filter(|_| !around.has("thoughtSignature")) {
        part.push(("thoughtSignature", raw(substitute)?));
    }
    raw(&Map(&part))
}

/// Encodes a result: words in an object, and apart from it the pictures and files, which only the
/// newest models take inside.
pub(super) fn result(result: &ToolResult, provider: &str, ids: &mut WireIds) -> (Option<Part>, Vec<Part>) {
    let id = ids.of_result(result);
    let texts: Vec<&str> = result.content.iter().filter_map(ContentPart::as_text).collect();
    let mut words = texts.join("\n");
    let mut media: Vec<Part> = result
        .content
        .iter()
        .filter_map(|part| raw(&media::part(part, provider)?))
        .collect();
    if !media.is_empty() {
        if words.is_empty() {
            "The result follows as an attachment.".clone_into(&mut words);
        }
        let label = format!("Attachments of the result of {} ({id}):", result.name);
        media.splice(0..0, text(&label));
    }
    let field = if result.is_error { "error" } else { "output" };
    let response = raw(&json!({
        "functionResponse": {"id": id, "name": tool_name(&result.name), "response": {field: words}},
    }));
    (response, media)
}

/// Encodes a value; every map has text keys, so this can't fail.
fn raw(value: &(impl Serialize + ?Sized)) -> Option<Part> {
    serde_json::value::to_raw_value(value).ok()
}
