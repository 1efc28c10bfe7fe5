//! Encodes the parts of messages as the protocol's blocks. A part always encodes to the same bytes.

use rpds::RedBlackTreeSetSync;
use serde_json::json;
use serde_json::value::RawValue;

use super::media;
use super::names::DocumentNames;
use crate::conversation::MessageEncoder;
use crate::encode::{Part, is_visible, marked, object, raw, text_or_refusal, verbatim};
use crate::fields::Fields;
use crate::files::Attachment;
use crate::names::{ID_BYTES, IdRule, WireIds, arguments, tool_name};
use crate::target::Target;
use values::json::{RawJson, Value};
use values::message::{ContentPart, Message, ReasoningPart, TextPart, ToolCall, ToolResult};

/// The text of a result without text and files, since the protocol rejects an empty result.
const NO_OUTPUT: &str = "(no output)";

/// Replaces the called system tools if no tool is offered. It is not a real system tool, since a
/// model could call that.
const SYSTEM_TOOL: &str = "system_tool";

/// Encodes messages for a model.
#[derive(Debug, Clone)]
pub(super) struct BlockEncoder {
    target: Target,
    seen: usize,
    ids: WireIds,
    documents: DocumentNames,
    /// The tools that were called.
    pub(super) called: RedBlackTreeSetSync<String>,
}

impl BlockEncoder {
    /// Makes an encoder.
    pub(super) fn new(target: Target) -> Self {
        Self {
            target,
            seen: 0,
            ids: WireIds::new(IdRule::Plain(64)),
            documents: DocumentNames::default(),
            called: RedBlackTreeSetSync::new_sync(),
        }
    }
}

impl MessageEncoder for BlockEncoder {
    const MODEL: &'static str = "assistant";
    const CONTENT: &'static str = "content";

    fn is_like(&self, other: &Self) -> bool {
        self.target == other.target
    }

    fn bytes(&self) -> usize {
        self.ids.bytes() + self.documents.bytes() + self.called.size() * ID_BYTES
    }

    fn text(text: &str) -> Option<Part> {
        raw(&json!({"text": text}))
    }

    fn media(&mut self, part: &ContentPart) -> Option<Value> {
        match self.target.attachment(part, &mut self.seen)? {
            Attachment::Words(words) => Some(json!({"text": words})),
            _ => media::block(part, &mut self.documents),
        }
    }

    fn caller_parts(&mut self, message: &Message) -> Vec<Part> {
        let mut blocks = self.visible_parts(&message.content, text_or_refusal);
        let has = |kind: &str| {
            let mut fields = blocks.iter().filter_map(|block| Fields::parse(block.get()));
            fields.any(|fields| fields.has(kind))
        };
        if has("document") && !has("text") {
            // The protocol rejects files without text.
            blocks.extend(Self::text("The file is attached."));
        }
        blocks
    }

    fn model_parts(&mut self, message: &Message) -> Vec<Part> {
        let own = self.target.made(message);
        let parts = message.content.iter();
        let mut pieces: Vec<Piece> = parts.filter_map(|part| self.piece(part, message, own)).collect();
        if !own {
            // Results must follow calls directly, so models require calls last. Other providers may
            // put calls anywhere.
            pieces.sort_by_key(|piece| matches!(piece, Piece::Call(_)));
        }
        // The completion was cut during reasoning. The service rejects reasoning that no other
        // block follows.
        while let Some(Piece::Reasoning(_)) = pieces.last() {
            pieces.pop();
        }
        let blocks = pieces.into_iter().map(|piece| match piece {
            Piece::Content(block) | Piece::Reasoning(block) | Piece::Call(block) => block,
        });
        blocks.collect()
    }

    fn result(&mut self, result: &ToolResult) -> (Option<Part>, Vec<Part>) {
        (self.result_block(result), Vec::new())
    }
}

impl BlockEncoder {
    fn piece(&mut self, part: &ContentPart, message: &Message, own: bool) -> Option<Piece> {
        match part {
            ContentPart::Text(part) if own && !part.citations.is_empty() => cited(part).map(Piece::Content),
            ContentPart::Text(TextPart { text, .. }) | ContentPart::Refusal { text } => {
                is_visible(text).then(|| Self::text(text).map(Piece::Content))?
            }
            ContentPart::Reasoning(part) if own => reasoning(part).map(Piece::Reasoning),
            ContentPart::ToolCall(part) => self.call(part, message, own).map(Piece::Call),
            ContentPart::Opaque(part) if self.target.made_part(message, part) => {
                self.opaque(&part.raw).map(Piece::Content)
            }
            _ => None,
        }
    }

    /// Encodes a call. Arguments that are a JSON object go back verbatim.
    fn call(&mut self, call: &ToolCall, message: &Message, own: bool) -> Option<Part> {
        let name = tool_name(&call.name);
        self.add_called(&name);
        let fields = vec![
            ("toolUseId", raw(&self.ids.of_call(message.id, call, own))?),
            ("name", raw(&name)?),
            ("input", RawValue::from_string(arguments(call).into_owned()).ok()?),
        ];
        let call = marked(fields, call.signature.as_deref().filter(|_| own), &[])?;
        object(&[("toolUse", call)])
    }

    /// Returns a block as the provider gave it.
    fn opaque(&mut self, block: &RawJson) -> Option<Part> {
        if Fields::parse(block.as_str())?.has("toolUse") {
            self.add_called(SYSTEM_TOOL);
        }
        verbatim(block)
    }

    fn add_called(&mut self, tool: &str) {
        if !self.called.contains(tool) {
            self.called.insert_mut(tool.to_owned());
        }
    }

    fn result_block(&mut self, result: &ToolResult) -> Option<Part> {
        let id = self.ids.of_result(result);
        let mut content = self.visible_parts(&result.content, ContentPart::as_text);
        if content.is_empty() {
            content.extend(Self::text(NO_OUTPUT));
        }
        let mut fields = vec![("toolUseId", raw(&id)?), ("content", raw(&content)?)];
        if result.is_error {
            fields.push(("status", raw("error")?));
        }
        object(&[("toolResult", object(&fields)?)])
    }
}

enum Piece {
    Content(Part),
    Reasoning(Part),
    Call(Part),
}

fn cited(part: &TextPart) -> Option<Part> {
    let citations = part.citations.iter().filter_map(|citation| verbatim(&citation.0));
    let citations: Vec<_> = citations.collect();
    let content = raw(&[json!({"text": part.text})])?;
    let cited = object(&[("content", content), ("citations", raw(&citations)?)])?;
    object(&[("citationsContent", cited)])
}

/// Encodes reasoning that its model signed or encrypted. The service rejects other reasoning.
fn reasoning(part: &ReasoningPart) -> Option<Part> {
    match (&part.encrypted, &part.signature) {
        (Some(data), _) => raw(&json!({"reasoningContent": {"redactedContent": data}})),
        (None, Some(signature)) => {
            raw(&json!({"reasoningContent": {"reasoningText": {"text": part.text, "signature": signature}}}))
        }
        (None, None) => None,
    }
}
