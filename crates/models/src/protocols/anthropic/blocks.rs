//! Encodes the parts of messages as the protocol's blocks. A part always encodes to the same bytes.

use serde_json::json;
use serde_json::value::RawValue;

use super::media;
use super::server_tools::ServerTools;
use crate::conversation::MessageEncoder;
use crate::encode::{Part, is_visible, lines, object, raw, verbatim};
use crate::fields::Fields;
use crate::names::{IdRule, WireIds, arguments, tool_name};
use crate::target::Target;
use values::json::Value;
use values::message::{ContentPart, Message, ReasoningPart, ToolCall, ToolResult};

/// The text of an error result without text.
const WORDLESS_ERROR: &str = "The tool failed without a message.";

/// Encodes messages for a model.
#[derive(Debug, Clone)]
pub(super) struct BlockEncoder {
    /// The model that reads the messages.
    pub(super) target: Target,
    seen: usize,
    tools: ServerTools,
    ids: WireIds,
}

impl BlockEncoder {
    /// Makes an encoder.
    pub(super) fn new(target: Target) -> Self {
        Self {
            target,
            seen: 0,
            tools: ServerTools::default(),
            ids: WireIds::new(IdRule::Plain(128)),
        }
    }
}

impl MessageEncoder for BlockEncoder {
    const MODEL: &'static str = "assistant";
    const CONTENT: &'static str = "content";

    fn is_like(&self, other: &Self) -> bool {
        self.target == other.target
    }

    fn read_ahead<'a>(&mut self, messages: impl Iterator<Item = &'a Message>) {
        self.tools.read(messages, &self.target);
    }

    fn settles_with<'a>(&self, messages: impl Iterator<Item = &'a Message>) -> bool {
        let mut tools = self.tools.clone();
        tools.read(messages, &self.target);
        tools.are_all_answered()
    }

    fn bytes(&self) -> usize {
        self.ids.bytes() + self.tools.bytes()
    }

    fn text(text: &str) -> Option<Part> {
        raw(&json!({"type": "text", "text": text}))
    }

    fn media(&mut self, part: &ContentPart) -> Option<Value> {
        Some(media::block(self.target.attachment(part, &mut self.seen)?))
    }

    fn model_parts(&mut self, message: &Message) -> Vec<Part> {
        let own = self.target.made(message);
        let mut pieces: Vec<Piece<'_>> = message
            .content
            .iter()
            .filter_map(|part| self.piece(part, message, own))
            .collect();
        if !own {
            // Results must follow calls directly, so the protocol requires calls last. Other
            // providers may put calls anywhere.
            pieces.sort_by_key(|piece| matches!(piece, Piece::Call(_)));
        }
        // The completion was cut during reasoning. The protocol rejects reasoning that no other
        // block follows.
        while let Some(Piece::Thinking(_)) = pieces.last() {
            pieces.pop();
        }
        if let Some(Piece::Text { text, .. }) = pieces.last_mut() {
            // The protocol rejects a final message that ends with whitespace.
            *text = text.trim_end();
        }
        pieces.into_iter().filter_map(Piece::encode).collect()
    }

    /// Encodes a result. A result with text only becomes one string, which may be empty, unlike a
    /// block. But the protocol rejects an empty error.
    fn result(&mut self, result: &ToolResult) -> (Option<Part>, Vec<Part>) {
        let others = if result.is_error {
            // The protocol accepts only text in an error.
            self.visible_parts(&result.content, |part| part.as_text().map(|_| ""))
        } else {
            Vec::new()
        };
        (self.result_block(result), others)
    }
}

impl BlockEncoder {
    fn piece<'p>(&mut self, part: &'p ContentPart, message: &Message, own: bool) -> Option<Piece<'p>> {
        match part {
            ContentPart::Text(part) if is_visible(&part.text) => {
                let citations = part.citations.iter().filter(|_| own);
                Some(Piece::Text {
                    text: &part.text,
                    citations: citations.filter_map(|citation| verbatim(&citation.0)).collect(),
                })
            }
            ContentPart::Refusal { text } if is_visible(text) => Some(Piece::Text {
                text,
                citations: Vec::new(),
            }),
            ContentPart::Reasoning(part) if own => thinking(part).map(Piece::Thinking),
            ContentPart::ToolCall(part) => call(part, &self.ids.of_call(message.id, part, own), own).map(Piece::Call),
            ContentPart::Opaque(part) if self.target.made_part(message, part) && self.tools.allows(part) => {
                verbatim(&part.raw).map(Piece::Opaque)
            }
            _ => None,
        }
    }

    fn result_block(&mut self, result: &ToolResult) -> Option<Part> {
        let id = self.ids.of_result(result);
        let is_media = |part: &ContentPart| matches!(part, ContentPart::Image(_) | ContentPart::Document(_));
        let content = if !result.is_error && result.content.iter().any(is_media) {
            raw(&self.visible_parts(&result.content, ContentPart::as_text))?
        } else {
            let text = lines(&result.content);
            if result.is_error && !is_visible(&text) {
                raw(WORDLESS_ERROR)?
            } else {
                raw(&text)?
            }
        };
        let mut fields = vec![
            ("type", raw("tool_result")?),
            ("tool_use_id", raw(&id)?),
            ("content", content),
        ];
        if result.is_error {
            fields.push(("is_error", raw(&true)?));
        }
        object(&fields)
    }
}

enum Piece<'a> {
    Text { text: &'a str, citations: Vec<Part> },
    Thinking(Part),
    Call(Part),
    Opaque(Part),
}

impl Piece<'_> {
    fn encode(self) -> Option<Part> {
        match self {
            Self::Text { text, citations } if citations.is_empty() => BlockEncoder::text(text),
            Self::Text { text, citations } => object(&[
                ("type", raw("text")?),
                ("text", raw(text)?),
                ("citations", raw(&citations)?),
            ]),
            Self::Thinking(block) | Self::Call(block) | Self::Opaque(block) => Some(block),
        }
    }
}

/// Encodes thinking that its provider signed or encrypted. The protocol rejects other thinking.
fn thinking(part: &ReasoningPart) -> Option<Part> {
    match (&part.encrypted, &part.signature) {
        (Some(data), _) => raw(&json!({"type": "redacted_thinking", "data": data})),
        (None, Some(signature)) => raw(&json!({"type": "thinking", "thinking": part.text, "signature": signature})),
        (None, None) => None,
    }
}

/// Encodes a call. Arguments that are a JSON object go back verbatim.
fn call(call: &ToolCall, id: &str, own: bool) -> Option<Part> {
    let mut fields = vec![
        ("type", raw("tool_use")?),
        ("id", raw(id)?),
        ("name", raw(&tool_name(&call.name))?),
        ("input", RawValue::from_string(arguments(call).into_owned()).ok()?),
    ];
    let mark = call.signature.as_deref().filter(|_| own).and_then(Fields::parse);
    let mark = mark.unwrap_or_default();
    for (name, value) in mark.iter() {
        // Of two fields with one name, the first goes back.
        if !fields.iter().any(|(known, _)| *known == name) {
            fields.push((name, value.to_owned()));
        }
    }
    object(&fields)
}
