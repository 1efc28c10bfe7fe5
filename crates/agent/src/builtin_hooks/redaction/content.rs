//! Redacts messages and their parts. A message or a part without a match is not copied.
//!
//! A signed or encrypted block must return to the provider unchanged or not at all. So a reasoning
//! block, an opaque block or an opaque field with a match is dropped. A signed text or call must
//! not be dropped, so only its matches and its signature are removed.

use std::borrow::Cow;
use std::sync::Arc;

use super::redactor::Redactor;
use values::message::{
    ContentPart, DocumentPart, ImagePart, MediaSource, Message, ProviderFields, ReasoningPart, TextPart, ToolCall,
    ToolResult,
};

/// Replaces the name of a tool that contains a match.
const NAMELESS: &str = "redacted";

/// Methods that redact a text or a value return `None` if it has no match.
impl Redactor<'_> {
    /// Redacts matches in a message. Returns `None` if nothing is left. A message without a match
    /// stays the same.
    pub(super) fn message(&self, message: Arc<Message>) -> Option<Arc<Message>> {
        let name = message.name.as_deref().and_then(|name| self.text(name));
        let content = self.content(&message.content);
        let fields = message.provider_fields.clone();
        let fields = fields.and_then(|fields| self.provider_fields(fields));
        let has_metadata = self.finds_in_object(&message.metadata);
        if name.is_none() && content.is_none() && fields == message.provider_fields && !has_metadata {
            return Some(message);
        }
        let was_empty = message.content.is_empty() && message.provider_fields.is_none();
        let mut redacted = Arc::unwrap_or_clone(message);
        self.object(&mut redacted.metadata);
        redacted.name = name.or(redacted.name.take());
        redacted.content = content.unwrap_or(redacted.content);
        redacted.provider_fields = fields;
        let is_empty = redacted.content.is_empty() && redacted.provider_fields.is_none();
        (was_empty || !is_empty).then(|| Arc::new(redacted))
    }

    /// Redacts matches in parts, including matches that span several texts.
    pub(super) fn content(&self, content: &[ContentPart]) -> Option<Vec<ContentPart>> {
        let parts: Vec<Cow<'_, ContentPart>> = content.iter().filter_map(|part| self.part(part)).collect();
        let texts = || parts.iter().filter_map(|part| part.as_text());
        let joined = texts().nth(1).is_some().then(|| texts().collect::<String>());
        let across = joined.and_then(|joined| self.text(&joined));
        let is_same = parts.len() == content.len() && parts.iter().all(|part| matches!(part, Cow::Borrowed(_)));
        if is_same && across.is_none() {
            return None;
        }
        let Some(across) = across else {
            return Some(parts.into_iter().map(Cow::into_owned).collect());
        };
        let mut whole = Some(ContentPart::text(across));
        let parts = parts.into_iter().filter_map(|part| {
            if part.as_text().is_some() {
                whole.take()
            } else {
                Some(part.into_owned())
            }
        });
        Some(parts.collect())
    }

    /// Drops opaque fields that contain a match. Returns `None` if no field is left.
    pub(super) fn provider_fields(&self, mut fields: ProviderFields) -> Option<ProviderFields> {
        let was_empty = fields.fields.is_empty();
        fields.fields.retain(|(_, raw)| !self.finds_in_raw(raw));
        (was_empty || !fields.fields.is_empty()).then_some(fields)
    }

    /// Redacts matches in a part. Returns `None` if nothing is left.
    fn part<'p>(&self, part: &'p ContentPart) -> Option<Cow<'p, ContentPart>> {
        let redacted = match part {
            ContentPart::Text(part) => self.text_part(part).map(ContentPart::Text),
            ContentPart::Refusal { text } => self.text(text).map(|text| ContentPart::Refusal { text }),
            ContentPart::Reasoning(reasoning) => match self.text(&reasoning.text) {
                Some(_) if reasoning.signature.is_some() || reasoning.encrypted.is_some() => return None,
                text => text.map(|text| {
                    ContentPart::Reasoning(ReasoningPart {
                        text,
                        ..reasoning.clone()
                    })
                }),
            },
            ContentPart::ToolCall(call) => self.tool_call(call).map(ContentPart::ToolCall),
            ContentPart::ToolResult(result) => self.tool_result(result).map(ContentPart::ToolResult),
            ContentPart::Image(ImagePart { source, detail }) => self.source(source).map(|source| {
                ContentPart::Image(ImagePart {
                    source,
                    detail: detail.clone(),
                })
            }),
            ContentPart::Document(document) => self.document(document).map(ContentPart::Document),
            ContentPart::Opaque(part) if self.finds_in_raw(&part.raw) => return None,
            ContentPart::Opaque(_) => None,
            ContentPart::Unknown(value) => self.finds_in_value(value).then(|| {
                let mut value = value.clone();
                self.value(&mut value);
                ContentPart::Unknown(value)
            }),
        };
        Some(redacted.map_or(Cow::Borrowed(part), Cow::Owned))
    }

    fn text_part(&self, part: &TextPart) -> Option<TextPart> {
        let text = self.text(&part.text);
        let mut citations = part.citations.clone();
        citations.retain(|citation| !self.finds_in_raw(&citation.0));
        (text.is_some() || citations.len() < part.citations.len()).then(|| TextPart {
            signature: part.signature.clone().filter(|_| text.is_none()),
            text: text.unwrap_or_else(|| part.text.clone()),
            citations,
        })
    }

    fn tool_call(&self, call: &ToolCall) -> Option<ToolCall> {
        let (name, arguments) = (self.tool_name(&call.name), self.arguments(&call.arguments));
        (name.is_some() || arguments.is_some()).then(|| ToolCall {
            id: call.id.clone(),
            name: name.unwrap_or_else(|| call.name.clone()),
            arguments: arguments.unwrap_or_else(|| call.arguments.clone()),
            signature: None,
        })
    }

    fn tool_result(&self, result: &ToolResult) -> Option<ToolResult> {
        let (name, content) = (self.tool_name(&result.name), self.content(&result.content));
        (name.is_some() || content.is_some()).then(|| ToolResult {
            call_id: result.call_id.clone(),
            name: name.unwrap_or_else(|| result.name.clone()),
            content: content.unwrap_or_else(|| result.content.clone()),
            is_error: result.is_error,
        })
    }

    fn document(&self, document: &DocumentPart) -> Option<DocumentPart> {
        let name = document.name.as_deref().and_then(|name| self.text(name));
        let source = self.source(&document.source);
        (name.is_some() || source.is_some()).then(|| DocumentPart {
            source: source.unwrap_or_else(|| document.source.clone()),
            name: name.or_else(|| document.name.clone()),
        })
    }

    /// Redacts the name of a tool. Providers allow few characters in it.
    fn tool_name(&self, name: &str) -> Option<String> {
        self.finds_in(name).then(|| NAMELESS.to_owned())
    }

    fn source(&self, source: &MediaSource) -> Option<MediaSource> {
        match source {
            MediaSource::Url { url } => self.text(url).map(|url| MediaSource::Url { url }),
            MediaSource::Base64 { .. } | MediaSource::ProviderFile { .. } => None,
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
            let content = redactor.content(&content);
            assert_eq!(content.is_some(), given != redacted, "{given}");
            let content = content.map_or(given.clone(), |content| json!(content));
            assert_eq!(content, redacted, "{given}");
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
        let redacted = |fields: Value| redactor.message(Arc::new(message(sealed.clone(), fields)));
        assert_eq!(redacted(json!([["a", "{\"b\":\"sk-1\"}"]])), None);
        let retained = redacted(json!([["a", "{\"b\":\"sk-1\"}"], ["c", "1"]])).unwrap();
        assert_eq!(retained.name.as_deref(), Some("[k]"));
        assert_eq!(json!(retained.metadata), json!({"k": ["[k]"]}));
        assert_eq!(retained.provider_fields.as_ref().unwrap().fields.len(), 1);
    }
}
