//! Encodes the parts of one message as the protocol's blocks. A part always encodes to the same
//! bytes.

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::media;
use super::names::Names;
use crate::json::RawJson;
use crate::message::{ContentPart, Message, ReasoningPart, TextPart, ToolCall, ToolResult};
use crate::models::names::{arguments, tool_name};
use crate::models::wire::{Fields, Map};

/// An encoded block.
pub(super) type Block = Box<RawValue>;

/// The text of a result without text and files: the protocol refuses an empty one.
const NO_OUTPUT: &str = "(no output)";

/// Stands for the system tools that were called, where no tool is offered. It is none of theirs: a
/// model could call that.
const SYSTEM_TOOL: &str = "system_tool";

/// Encodes a block of words.
pub(super) fn text(text: &str) -> Option<Block> {
    raw(&json!({"text": text}))
}

/// Encodes a message of the caller, without results of calls. The protocol refuses blank text, so
/// it is left out.
pub(super) fn caller_blocks(message: &Message, names: &mut Names) -> Vec<Block> {
    let blocks = message.content.iter().filter_map(|part| match part {
        ContentPart::Text(TextPart { text: words, .. }) | ContentPart::Refusal { text: words } => text_block(words),
        part => raw(&media::block(part, names)?),
    });
    let mut blocks: Vec<_> = blocks.collect();
    let has = |kind: &str| {
        blocks
            .iter()
            .any(|block| Fields::parse(block.get()).is_some_and(|fields| fields.has(kind)))
    };
    if has("document") && !has("text") {
        // The protocol refuses files without words.
        blocks.extend(text("The file is attached."));
    }
    blocks
}

/// Encodes a message of the model. Fields of a provider go back to that provider alone.
pub(super) fn model_blocks(message: &Message, provider: &str, names: &mut Names) -> Vec<Block> {
    let owner = message.provider_fields.as_ref();
    let own = owner.is_some_and(|owner| owner.provider == provider);
    let mut pieces: Vec<Piece> = Vec::new();
    for part in &message.content {
        pieces.extend(match part {
            ContentPart::Text(part) if own && !part.citations.is_empty() => cited(part).map(Piece::Content),
            ContentPart::Text(TextPart { text, .. }) | ContentPart::Refusal { text } => {
                text_block(text).map(Piece::Content)
            }
            ContentPart::Reasoning(part) if own => reasoning(part).map(Piece::Reasoning),
            ContentPart::ToolCall(part) => call(message, part, own, names).map(Piece::Call),
            ContentPart::Opaque(part) if part.provider == provider => opaque(&part.raw, names).map(Piece::Content),
            _ => None,
        });
    }
    if !own {
        // Results must follow calls directly, so models want calls last. Other providers put them
        // anywhere.
        pieces.sort_by_key(|piece| matches!(piece, Piece::Call(_)));
    }
    // The completion was cut during reasoning. Reasoning without a successor is refused.
    while let Some(Piece::Reasoning(_)) = pieces.last() {
        pieces.pop();
    }
    let blocks = pieces.into_iter().map(|piece| match piece {
        Piece::Content(block) | Piece::Reasoning(block) | Piece::Call(block) => block,
    });
    blocks.collect()
}

enum Piece {
    Content(Block),
    Reasoning(Block),
    Call(Block),
}

fn text_block(words: &str) -> Option<Block> {
    (!words.trim().is_empty()).then(|| text(words))?
}

fn cited(part: &TextPart) -> Option<Block> {
    let citations: Vec<_> = part
        .citations
        .iter()
        .filter_map(|citation| object(&citation.0))
        .collect();
    let content = raw(&[json!({"text": part.text})])?;
    let cited = raw(&Map(&[("content", content), ("citations", raw(&citations)?)]))?;
    raw(&Map(&[("citationsContent", cited)]))
}

/// Encodes reasoning that its model signed or encrypted; other reasoning is refused.
fn reasoning(part: &ReasoningPart) -> Option<Block> {
    match (&part.encrypted, &part.signature) {
        (Some(data), _) => raw(&json!({"reasoningContent": {"redactedContent": data}})),
        (None, Some(signature)) => {
            raw(&json!({"reasoningContent": {"reasoningText": {"text": part.text, "signature": signature}}}))
        }
        (None, None) => None,
    }
}

/// Encodes a call. Arguments that are a JSON object go back verbatim.
fn call(message: &Message, call: &ToolCall, own: bool, names: &mut Names) -> Option<Block> {
    let input = RawValue::from_string(arguments(call).into_owned()).ok()?;
    let name = tool_name(&call.name);
    names.called(&name);
    let mut fields = vec![
        ("toolUseId", raw(names.ids.of_call(message.id, call).as_ref())?),
        ("name", raw(name.as_ref())?),
        ("input", input),
    ];
    let extras = call.signature.as_deref().filter(|_| own).and_then(Fields::parse);
    let extras = extras.unwrap_or_default();
    let extras = extras.iter().map(|(name, value)| (name, value.to_owned()));
    fields.extend(extras.filter(|(name, _)| !["toolUseId", "name", "input"].contains(name)));
    raw(&Map(&[("toolUse", raw(&Map(&fields))?)]))
}

/// Encodes a result.
pub(super) fn result(result: &ToolResult, names: &mut Names) -> Option<Block> {
    let id = names.ids.of_result(result).into_owned();
    let content = result.content.iter().filter_map(|part| match part.as_text() {
        Some(words) => text_block(words),
        None => raw(&media::block(part, names)?),
    });
    let mut content: Vec<_> = content.collect();
    if content.is_empty() {
        content.extend(text(NO_OUTPUT));
    }
    let mut fields = vec![("toolUseId", raw(&id)?), ("content", raw(&content)?)];
    if result.is_error {
        fields.push(("status", raw("error")?));
    }
    raw(&Map(&[("toolResult", raw(&Map(&fields))?)]))
}

/// Returns a block as the provider gave it.
fn opaque(raw: &RawJson, names: &mut Names) -> Option<Block> {
    if Fields::parse(raw.as_str())?.has("toolUse") {
        names.called(SYSTEM_TOOL);
    }
    object(raw)
}

fn object(raw: &RawJson) -> Option<Block> {
    Fields::parse(raw.as_str())?;
    RawValue::from_string(raw.as_str().trim().to_owned()).ok()
}

/// Encodes a value; every map has text keys, so this can't fail.
pub(super) fn raw(value: &(impl Serialize + ?Sized)) -> Option<Block> {
    serde_json::value::to_raw_value(value).ok()
}
