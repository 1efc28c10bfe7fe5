//! Encodes the parts of one message as the protocol's blocks. A part always encodes to the same
//! bytes.

use serde::Serialize;
use serde_json::value::RawValue;

use super::media;
use super::server_tools::ServerTools;
use crate::json::RawJson;
use crate::message::{ContentPart, Message, ReasoningPart, TextPart, ToolCall, ToolResult};
use crate::models::names::{WireIds, arguments, tool_name};
use crate::models::wire::{Fields, Map};

/// An encoded block.
pub(super) type Block = Box<RawValue>;

/// Encodes a block of words.
pub(super) fn text(text: &str) -> Option<Block> {
    raw(&serde_json::json!({"type": "text", "text": text}))
}

/// Encodes a message of the caller, without results of calls. The protocol refuses blank text, so
/// it is left out.
pub(super) fn caller_blocks(message: &Message, provider: &str) -> impl Iterator<Item = Block> {
    message.content.iter().filter_map(move |part| match part {
        ContentPart::Text(TextPart { text: words, .. }) | ContentPart::Refusal { text: words } => {
            is_visible_text(words).then(|| text(words))?
        }
        part => raw(&media::block(part, provider)?),
    })
}

/// Encodes a message of the model. Fields of a provider go back to that provider alone.
pub(super) fn model_blocks(message: &Message, provider: &str, tools: &ServerTools, ids: &mut WireIds) -> Vec<Block> {
    let owner = message.provider_fields.as_ref();
    let own = owner.is_some_and(|owner| owner.provider == provider);
    let mut pieces: Vec<Piece<'_>> = message
        .content
        .iter()
        .filter(|part| !matches!(part, ContentPart::Opaque(part) if !tools.allows(part)))
        .filter_map(|part| Piece::of(part, message, provider, own, ids))
        .collect();
    if !own {
        // Results must follow calls directly, so the protocol wants calls last. Other providers put
        // them anywhere.
        pieces.sort_by_key(|piece| matches!(piece, Piece::Call(_)));
    }
    // The completion was cut during reasoning. The protocol refuses reasoning without a successor.
    while let Some(Piece::Thinking(_)) = pieces.last() {
        pieces.pop();
    }
    if let Some(Piece::Text { text, .. }) = pieces.last_mut() {
        // The protocol refuses a final message that ends with white space.
        *text = text.trim_end();
    }
    pieces.into_iter().filter_map(Piece::encode).collect()
}

enum Piece<'a> {
    Text { text: &'a str, citations: Vec<Block> },
    Thinking(Block),
    Call(Block),
    Opaque(Block),
}

impl<'a> Piece<'a> {
    fn of(part: &'a ContentPart, message: &Message, provider: &str, own: bool, ids: &mut WireIds) -> Option<Self> {
        match part {
            ContentPart::Text(part) if is_visible_text(&part.text) => Some(Self::Text {
                text: &part.text,
                citations: part
                    .citations
                    .iter()
                    .filter(|_| own)
                    .filter_map(|citation| object(&citation.0))
                    .collect(),
            }),
            ContentPart::Refusal { text } if is_visible_text(text) => Some(Self::Text {
                text,
                citations: Vec::new(),
            }),
            ContentPart::Reasoning(part) if own => thinking(part).map(Self::Thinking),
            ContentPart::ToolCall(part) => call(part, &ids.of_call(message.id, part), own).map(Self::Call),
            ContentPart::Opaque(part) if part.provider == provider => object(&part.raw).map(Self::Opaque),
            _ => None,
        }
    }

    fn encode(self) -> Option<Block> {
        match self {
            Self::Text { text: words, citations } if citations.is_empty() => text(words),
            Self::Text { text, citations } => raw(&CitedText {
                r#type: "text",
                text,
                citations,
            }),
            Self::Thinking(block) | Self::Call(block) | Self::Opaque(block) => Some(block),
        }
    }
}

#[derive(Serialize)]
struct CitedText<'a> {
    r#type: &'static str,
    text: &'a str,
    citations: Vec<Block>,
}

/// Encodes thinking that its provider signed or encrypted; other thinking is refused.
fn thinking(part: &ReasoningPart) -> Option<Block> {
    match (&part.encrypted, &part.signature) {
        (Some(data), _) => raw(&serde_json::json!({"type": "redacted_thinking", "data": data})),
        (None, Some(signature)) => {
            raw(&serde_json::json!({"type": "thinking", "thinking": part.text, "signature": signature}))
        }
        (None, None) => None,
    }
}

/// Encodes a call. Arguments that are a JSON object go back verbatim.
fn call(call: &ToolCall, id: &str, own: bool) -> Option<Block> {
    let input = RawValue::from_string(arguments(call).into_owned()).ok();
    let mut fields: Vec<(&str, Block)> = vec![
        ("type", raw("tool_use")?),
        ("id", raw(id)?),
        ("name", raw(tool_name(&call.name).as_ref())?),
        ("input", input?),
    ];
    let extras = call.signature.as_deref().filter(|_| own).and_then(Fields::parse);
    let extras = extras.unwrap_or_default();
    for (name, value) in extras.iter() {
        if !fields.iter().any(|(known, _)| *known == name) {
            fields.push((name, value.to_owned()));
        }
    }
    raw(&Map(&fields))
}

/// The text of an error result without text.
const WORDLESS_ERROR: &str = "The tool failed without a message.";

/// Encodes a result. Words alone are one text, which may be empty where a block may not; but the
/// protocol refuses an empty error.
pub(super) fn result(result: &ToolResult, provider: &str, ids: &mut WireIds) -> Option<Block> {
    let id = ids.of_result(result).into_owned();
    let is_media = |part: &ContentPart| matches!(part, ContentPart::Image(_) | ContentPart::Document(_));
    let has_media = result.content.iter().any(is_media);
    let content = if result.is_error
        && !has_media
        && !result
            .content
            .iter()
            .filter_map(ContentPart::as_text)
            .any(is_visible_text)
    {
        raw(WORDLESS_ERROR)?
    } else if has_media {
        let blocks = result.content.iter().filter_map(|part| match part.as_text() {
            Some(words) => is_visible_text(words).then(|| text(words))?,
            None => raw(&media::block(part, provider)?),
        });
        raw(&blocks.collect::<Vec<_>>())?
    } else {
        let texts: Vec<&str> = result.content.iter().filter_map(ContentPart::as_text).collect();
        raw(&texts.join("\n"))?
    };
    let mut fields = vec![
        ("type", raw("tool_result")?),
        ("tool_use_id", raw(&id)?),
        ("content", content),
    ];
    if result.is_error {
        fields.push(("is_error", raw(&true)?));
    }
    raw(&Map(&fields))
}

fn is_visible_text(text: &str) -> bool {
    !text.trim().is_empty()
}

fn object(raw: &RawJson) -> Option<Block> {
    object_text(raw.as_str())
}

fn object_text(text: &str) -> Option<Block> {
    Fields::parse(text)?;
    RawValue::from_string(text.trim().to_owned()).ok()
}

/// Encodes a value; every map has text keys, so this can't fail.
fn raw(value: &(impl Serialize + ?Sized)) -> Option<Block> {
    serde_json::value::to_raw_value(value).ok()
}
