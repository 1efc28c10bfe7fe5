//! Redacts messages and their parts.
//!
//! A signed or encrypted block must return to the provider unchanged or not at all. So a reasoning
//! block, an opaque block or an opaque field with a match is dropped. A signed text or call must
//! not be dropped, so only its matches and its signature are removed.

use std::sync::Arc;

use super::redactor::Redactor;
use values::message::{
    ContentPart, MediaSource, Message, ProviderFields, ReasoningPart, TextPart, ToolCall, ToolResult,
};

/// Replaces the name of a tool that contains a match.
const NAMELESS: &str = "redacted";

impl Redactor<'_> {
    /// Redacts matches in a message. Returns `None` if nothing is left. A message without a match
    /// stays the same.
    pub(super) fn message(&self, message: Arc<Message>) -> Option<Arc<Message>> {
        if !self.finds_in_message(&message) {
            return Some(message);
        }
        self.redacted_message(Arc::unwrap_or_clone(message)).map(Arc::new)
    }

    fn redacted_message(&self, mut message: Message) -> Option<Message> {
        self.object(&mut message.metadata);
        let was_empty = message.content.is_empty() && message.provider_fields.is_none();
        let redacted = Message {
            name: message.name.map(|name| self.text(&name).into_owned()),
            content: self.content(message.content),
            provider_fields: message.provider_fields.and_then(|fields| self.provider_fields(fields)),
            ..message
        };
        let is_empty = redacted.content.is_empty() && redacted.provider_fields.is_none();
        (was_empty || !is_empty).then_some(redacted)
    }

    /// Redacts matches in parts, including matches that span several texts.
    pub(super) fn content(&self, content: Vec<ContentPart>) -> Vec<ContentPart> {
        let mut parts: Vec<ContentPart> = content.into_iter().filter_map(|part| self.part(part)).collect();
        if self.finds_across(&parts) {
            let joined: String = parts.iter().filter_map(ContentPart::as_text).collect();
            let mut whole = Some(ContentPart::text(self.text(&joined)));
            parts = parts
                .into_iter()
                .filter_map(|part| match part {
                    ContentPart::Text(_) => whole.take(),
                    part => Some(part),
                })
                .collect();
        }
        parts
    }

    /// Drops opaque fields that contain a match. Returns `None` if no field is left.
    pub(super) fn provider_fields(&self, fields: ProviderFields) -> Option<ProviderFields> {
        let was_empty = fields.fields.is_empty();
        let clean = fields.fields.into_iter().filter(|(_, raw)| !self.finds_in_raw(raw));
        let fields = ProviderFields {
            fields: clean.collect(),
            ..fields
        };
        (was_empty || !fields.fields.is_empty()).then_some(fields)
    }

    fn part(&self, part: ContentPart) -> Option<ContentPart> {
        Some(match part {
            ContentPart::Text(part) => ContentPart::Text(self.text_part(part)),
            ContentPart::Refusal { text } => ContentPart::Refusal {
                text: self.text(&text).into_owned(),
            },
            ContentPart::Reasoning(part) => ContentPart::Reasoning(self.reasoning(part)?),
            ContentPart::ToolCall(call) => ContentPart::ToolCall(self.tool_call(call)),
            ContentPart::ToolResult(result) => ContentPart::ToolResult(ToolResult {
                name: self.tool_name(result.name),
                content: self.content(result.content),
                ..result
            }),
            ContentPart::Image(mut image) => {
                image.source = self.source(image.source);
                ContentPart::Image(image)
            }
            ContentPart::Document(mut document) => {
                document.source = self.source(document.source);
                document.name = document.name.map(|name| self.text(&name).into_owned());
                ContentPart::Document(document)
            }
            ContentPart::Opaque(part) if self.finds_in_raw(&part.raw) => return None,
            ContentPart::Opaque(part) => ContentPart::Opaque(part),
            ContentPart::Unknown(mut value) => {
                self.value(&mut value);
                ContentPart::Unknown(value)
            }
        })
    }

    fn text_part(&self, mut part: TextPart) -> TextPart {
        part.citations.retain(|citation| !self.finds_in_raw(&citation.0));
        if self.finds_in(&part.text) {
            part.text = self.text(&part.text).into_owned();
            part.signature = None;
        }
        part
    }

    fn reasoning(&self, part: ReasoningPart) -> Option<ReasoningPart> {
        if !self.finds_in(&part.text) {
            return Some(part);
        }
        let is_sealed = part.signature.is_some() || part.encrypted.is_some();
        (!is_sealed).then(|| ReasoningPart {
            text: self.text(&part.text).into_owned(),
            ..part
        })
    }

    fn tool_call(&self, call: ToolCall) -> ToolCall {
        let arguments = self.arguments(&call.arguments);
        let name = self.tool_name(call.name.clone());
        let is_same = arguments == call.arguments && name == call.name;
        ToolCall {
            id: call.id,
            name,
            arguments,
            signature: call.signature.filter(|_| is_same),
        }
    }

    /// Redacts the name of a tool. Providers allow few characters in it.
    fn tool_name(&self, name: String) -> String {
        if self.finds_in(&name) {
            NAMELESS.to_owned()
        } else {
            name
        }
    }

    fn source(&self, source: MediaSource) -> MediaSource {
        match source {
            MediaSource::Url { url } => MediaSource::Url {
                url: self.text(&url).into_owned(),
            },
            MediaSource::Base64 { .. } | MediaSource::ProviderFile { .. } => source,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::patterns::{Patterns, RedactionConfig};
    use super::*;
    use values::json::Value;

    fn patterns() -> Patterns {
        let config = json!({"patterns": [{"name": "key", "regex": r"sk-\d+", "replacement": "[k]"}]});
        let config: RedactionConfig = serde_json::from_value(config).unwrap();
        Patterns::of(&config).unwrap()
    }

    #[test]
    fn each_part_loses_the_secret_and_sealed_ones_stay_whole_or_go() {
        let patterns = patterns();
        let call = |name: &str, arguments: &str| json!({"type": "tool_call", "id": "c", "name": name, "arguments": arguments, "signature": "s"});
        for (given, redacted) in [
            (
                json!([{"type": "text", "text": "a sk-1"}]),
                json!([{"type": "text", "text": "a [k]"}]),
            ),
            (
                json!([{"type": "text", "text": "sk-1", "signature": "s"}]),
                json!([{"type": "text", "text": "[k]"}]),
            ),
            (
                json!([{"type": "text", "text": "fine", "signature": "s", "citations": ["{\"q\":\"sk\\u002d1\"}", "{}"]}]),
                json!([{"type": "text", "text": "fine", "signature": "s", "citations": ["{}"]}]),
            ),
            // A match over two texts.
            (
                json!([{"type": "text", "text": "a sk"}, {"type": "refusal", "text": "no"}, {"type": "text", "text": "-1 b"}]),
                json!([{"type": "text", "text": "a [k] b"}, {"type": "refusal", "text": "no"}]),
            ),
            (
                json!([{"type": "refusal", "text": "sk-1"}]),
                json!([{"type": "refusal", "text": "[k]"}]),
            ),
            (
                json!([{"type": "reasoning", "text": "sk-1"}]),
                json!([{"type": "reasoning", "text": "[k]"}]),
            ),
            (
                json!([{"type": "reasoning", "text": "sk-1", "signature": "s"}]),
                json!([]),
            ),
            (
                json!([{"type": "reasoning", "text": "sk-1", "encrypted": "e"}]),
                json!([]),
            ),
            (
                json!([{"type": "reasoning", "text": "hm", "signature": "sk-1", "encrypted": "sk-1"}]),
                json!([{"type": "reasoning", "text": "hm", "signature": "sk-1", "encrypted": "sk-1"}]),
            ),
            (
                json!([call("t", "{\"a\": \"b\"}")]),
                json!([call("t", "{\"a\": \"b\"}")]),
            ),
            (
                json!([call("sk-1", "{\"a\":\"sk-1\"}")]),
                json!([{"type": "tool_call", "id": "c", "name": "redacted", "arguments": "{\"a\":\"[k]\"}"}]),
            ),
            (
                json!([{"type": "tool_result", "call_id": "c", "name": "t", "content": [{"type": "text", "text": "sk-1"}]}]),
                json!([{"type": "tool_result", "call_id": "c", "name": "t", "content": [{"type": "text", "text": "[k]"}]}]),
            ),
            (
                json!([{"type": "image", "source": {"kind": "url", "url": "http://h/?k=sk-1"}}]),
                json!([{"type": "image", "source": {"kind": "url", "url": "http://h/?k=[k]"}}]),
            ),
            (
                json!([{"type": "document", "name": "sk-1.pdf", "source": {"kind": "base64", "media_type": "a/b", "data": "c2stMQ=="}}]),
                json!([{"type": "document", "name": "[k].pdf", "source": {"kind": "base64", "media_type": "a/b", "data": "c2stMQ=="}}]),
            ),
            (
                json!([{"type": "opaque", "provider": "p", "raw": "{\"a\":\"sk-1\"}"}]),
                json!([]),
            ),
            (
                json!([{"type": "opaque", "provider": "p", "raw": "{\"a\": 1}"}]),
                json!([{"type": "opaque", "provider": "p", "raw": "{\"a\": 1}"}]),
            ),
            (
                json!([{"type": "hologram", "of": ["sk-1"]}]),
                json!([{"type": "hologram", "of": ["[k]"]}]),
            ),
        ] {
            let content: Vec<ContentPart> = serde_json::from_value(given.clone()).unwrap();
            let redactor = Redactor::new(&patterns, &|| false);
            assert_eq!(redactor.finds_in_content(&content), given != redacted, "{given}");
            let content = redactor.content(content);
            assert_eq!(serde_json::to_value(content).unwrap(), redacted, "{given}");
        }
    }

    #[test]
    fn a_message_of_which_nothing_is_left_is_dropped() {
        let patterns = patterns();
        let redactor = Redactor::new(&patterns, &|| false);
        let message = |content: Value, fields: Value| -> Message {
            serde_json::from_value(json!({
                "id": "01a1fd8f-1377-7581-847a-0e0a2f37f5f2", "role": "assistant", "name": "sk-1", "content": content,
                "provider_fields": {"provider": "p", "fields": fields}, "metadata": {"k": ["sk-1"]},
                "created_at": "2026-01-01T00:00:00Z",
            }))
            .unwrap()
        };
        let sealed = json!([{"type": "reasoning", "text": "sk-1", "signature": "s"}]);
        assert_eq!(
            redactor.redacted_message(message(sealed.clone(), json!([["a", "{\"b\":\"sk-1\"}"]]))),
            None
        );
        let retained = redactor
            .redacted_message(message(sealed, json!([["a", "{\"b\":\"sk-1\"}"], ["c", "1"]])))
            .unwrap();
        assert_eq!(retained.name.as_deref(), Some("[k]"));
        assert_eq!(json!(retained.metadata), json!({"k": ["[k]"]}));
        assert_eq!(retained.provider_fields.unwrap().fields.len(), 1);
    }
}
