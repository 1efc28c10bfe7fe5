//! Encodes the parts of messages as the protocol's parts. A part always encodes to the same bytes.

use serde_json::json;
use serde_json::value::RawValue;

use super::media;
use crate::conversation::MessageEncoder;
use crate::encode::{Part, object, raw, verbatim};
use crate::fields::Fields;
use crate::files::Attachment;
use crate::names::{IdRule, WireIds, arguments, tool_name};
use crate::target::Target;
use values::json::{RawJson, Value};
use values::message::{ContentPart, Message, ToolCall, ToolResult};

/// Replaces the signature of a call that another model made. Newer models reject a call without a
/// signature, and accept this text for calls of other models
/// (<https://ai.google.dev/gemini-api/docs/thought-signatures>).
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Encodes messages for a model.
#[derive(Debug, Clone)]
pub(super) struct PartEncoder {
    target: Target,
    seen: usize,
    /// Whether the model requires signatures.
    signed: bool,
    ids: WireIds,
}

impl PartEncoder {
    /// Makes an encoder. `signed`: whether the model requires signatures.
    pub(super) fn new(target: Target, signed: bool) -> Self {
        Self {
            target,
            seen: 0,
            signed,
            ids: WireIds::new(IdRule::Any),
        }
    }
}

impl MessageEncoder for PartEncoder {
    const MODEL: &'static str = "model";
    const CONTENT: &'static str = "parts";

    fn is_like(&self, other: &Self) -> bool {
        (&self.target, self.signed) == (&other.target, other.signed)
    }

    fn bytes(&self) -> usize {
        self.ids.bytes()
    }

    fn text(text: &str) -> Option<Part> {
        raw(&json!({"text": text}))
    }

    fn media(&mut self, part: &ContentPart) -> Option<Value> {
        Some(media::part(self.target.attachment(part, &mut self.seen)?))
    }

    fn model_parts(&mut self, message: &Message) -> Vec<Part> {
        let own = self.target.made(message);
        let mut needs_signature = self.signed;
        let mut pieces: Vec<Piece> = Vec::new();
        for part in &message.content {
            pieces.extend(match part {
                ContentPart::Text(part) => text_piece(&part.text, part.signature.as_deref().filter(|_| own), false),
                ContentPart::Refusal { text } => text_piece(text, None, false),
                ContentPart::Reasoning(part) if own => text_piece(&part.text, part.signature.as_deref(), true),
                ContentPart::ToolCall(part) => {
                    let id = self.ids.of_call(message.id, part, own);
                    // Only the first of several parallel calls has the signature.
                    let substitute = std::mem::take(&mut needs_signature).then_some(NO_SIGNATURE);
                    call(part, &id, own, substitute).map(Piece::Complete)
                }
                ContentPart::Opaque(part) if self.target.made_part(message, part) => opaque(&part.raw),
                _ => None,
            });
        }
        // The completion was cut during reasoning, or before the provider's own tool finished.
        while matches!(pieces.last(), Some(Piece::Unfinished(_))) {
            pieces.pop();
        }
        let parts = pieces.into_iter().map(|piece| match piece {
            Piece::Complete(part) | Piece::Unfinished(part) => part,
        });
        parts.collect()
    }

    /// Encodes a result: its text as an object, and separately its images and files, which only the
    /// newest models accept inside.
    fn result(&mut self, result: &ToolResult) -> (Option<Part>, Vec<Part>) {
        let id = self.ids.of_result(result);
        let (mut words, mut media) = (Vec::new(), Vec::new());
        for part in &result.content {
            match (part.as_text(), self.target.attachment(part, &mut self.seen)) {
                (Some(text), _) => words.push(text.to_owned()),
                (None, Some(Attachment::Words(text))) => words.push(text),
                (None, attachment) => media.extend(attachment.and_then(|attachment| raw(&media::part(attachment)))),
            }
        }
        let mut words = words.join("\n");
        if !media.is_empty() {
            if words.is_empty() {
                "The result follows as an attachment.".clone_into(&mut words);
            }
            let label = format!("Attachments of the result of {} ({id}):", result.name);
            media.splice(0..0, Self::text(&label));
        }
        let field = if result.is_error { "error" } else { "output" };
        let response = raw(&json!({
            "functionResponse": {"id": id, "name": tool_name(&result.name), "response": {field: words}},
        }));
        (response, media)
    }
}

enum Piece {
    Complete(Part),
    /// A part that another part must follow.
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
    let part = object(&part)?;
    Some(if is_thought {
        Piece::Unfinished(part)
    } else {
        Piece::Complete(part)
    })
}

fn opaque(part: &RawJson) -> Option<Piece> {
    let fields = Fields::parse(part.as_str())?;
    let is_unfinished = ["executableCode", "toolCall"].into_iter().any(|kind| fields.has(kind));
    let part = verbatim(part)?;
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
        ("name", raw(&tool_name(&call.name))?),
        ("args", arguments),
    ];
    let mut part = vec![("functionCall", object(&function)?)];
    let around = call.signature.as_deref().filter(|_| own).and_then(Fields::parse);
    let around = around.unwrap_or_default();
    for (name, value) in around.iter().filter(|(name, _)| *name != "functionCall") {
        part.push((name, value.to_owned()));
    }
    if let Some(substitute) = substitute.filter(|_| !around.has("thoughtSignature")) {
        part.push(("thoughtSignature", raw(substitute)?));
    }
    object(&part)
}
