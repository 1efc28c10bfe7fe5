//! Encrypted reasoning: the marks of a message, sealed for a client that stores the conversation
//! itself.
//!
//! The marks of a message go back to its model alone: signatures, encrypted reasoning, and blocks
//! and fields of its provider. Some providers refuse a conversation without them. The client has
//! the words and the calls, so the marks have only their order.
//!
//! A seal that does not open is no error. Otherwise a conversation could never go on after the key
//! has changed.

use serde::{Deserialize, Serialize};

use crate::http::openai_settings::Seal;
use values::message::{ContentPart, Message, ProviderFields, TextPart, ToolCall, joined_text};
use values::tenant::TenantId;

/// The marks of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::http) struct Marks {
    /// The model, and the fields of its provider.
    provider_fields: ProviderFields,
    /// The parts of the message, in their order.
    parts: Vec<MarkedPart>,
}

/// A part of a message, without the words and the arguments that the client has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct MarkedPart {
    part: ContentPart,
    /// The length of the words that the client has, in bytes.
    bytes: usize,
}

/// The words and the calls of a client that no part has taken yet.
struct Given<'c> {
    texts: &'c str,
    refusals: &'c str,
    calls: Vec<&'c ToolCall>,
}

impl Marks {
    /// Returns the marks of a message; `None` if it has none.
    pub(in crate::http) fn of(message: &Message) -> Option<Self> {
        let provider_fields = message.provider_fields.clone()?;
        let is_marked = !provider_fields.fields.is_empty() || message.content.iter().any(ContentPart::is_owned);
        is_marked.then(|| Self {
            provider_fields,
            parts: message.content.iter().filter_map(MarkedPart::of).collect(),
        })
    }

    /// Seals the marks for a tenant.
    pub(super) fn seal(&self, seal: &Seal, tenant: &TenantId) -> Option<String> {
        seal.seal(tenant, &serde_json::to_vec(self).ok()?)
    }

    /// Opens sealed marks; `None` if this service has not sealed them for the tenant.
    pub(super) fn open(seal: &Seal, tenant: &TenantId, sealed: &str) -> Option<Self> {
        serde_json::from_slice(&seal.open(tenant, sealed)?).ok()
    }

    /// Returns the marks with other ids of calls. A call without another id keeps its own.
    pub(super) fn with_call_ids(mut self, id_of: impl Fn(&str) -> Option<String>) -> Self {
        for marked in &mut self.parts {
            if let ContentPart::ToolCall(call) = &mut marked.part
                && let Some(id) = id_of(&call.id)
            {
                call.id = id;
            }
        }
        self
    }

    /// Returns whether the message has a call.
    pub(super) fn has_call(&self, call_id: &str) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|marked| matches!(&marked.part, ContentPart::ToolCall(call) if call.id == call_id))
    }

    /// Returns the length of the words of the message without its reasoning, in bytes.
    pub(super) fn word_bytes(&self) -> usize {
        self.parts.iter().map(|marked| marked.bytes).sum()
    }

    /// Returns the content of the message, and its model. `content` is that of the client. If it
    /// has other words or calls, the reasoning and the blocks of the provider come first.
    pub(super) fn restore(self, content: Vec<ContentPart>) -> (Vec<ContentPart>, ProviderFields) {
        let is_reasoning = |part: &ContentPart| matches!(part, ContentPart::Reasoning(_));
        let (reasoning, content): (Vec<_>, Vec<_>) = content.into_iter().partition(is_reasoning);
        // Signed reasoning has its words.
        let is_known = self.parts.iter().any(|marked| is_reasoning(&marked.part));
        let reasoning = reasoning.into_iter().filter(|_| !is_known);
        let restored = self.in_order(&content).unwrap_or_else(|| self.before(content));
        (reasoning.chain(restored).collect(), self.provider_fields)
    }

    /// Returns the parts with their words and arguments; `None` if the content has others.
    fn in_order(&self, content: &[ContentPart]) -> Option<Vec<ContentPart>> {
        let (mut refusals, mut calls) = (String::new(), Vec::new());
        for part in content {
            match part {
                ContentPart::Text(_) => (),
                ContentPart::Refusal { text } => refusals.push_str(text),
                ContentPart::ToolCall(call) => calls.push(call),
                _ => return None,
            }
        }
        let texts = joined_text(content);
        let mut given = Given {
            texts: &texts,
            refusals: &refusals,
            calls,
        };
        let parts = self.parts.iter().map(|marked| given.complete(marked));
        let parts = parts.collect::<Option<Vec<_>>>()?;
        given.is_empty().then_some(parts)
    }

    /// Returns the marks that need no words, and then the content with the marks of its calls.
    fn before(&self, content: Vec<ContentPart>) -> Vec<ContentPart> {
        let whole = self.parts.iter().map(|marked| &marked.part);
        let whole = whole.filter(|part| matches!(part, ContentPart::Reasoning(_) | ContentPart::Opaque(_)));
        let content = content.into_iter().map(|part| match part {
            ContentPart::ToolCall(call) => ContentPart::ToolCall(ToolCall {
                signature: self.signature_of(&call.id),
                ..call
            }),
            part => part,
        });
        whole.cloned().chain(content).collect()
    }

    fn signature_of(&self, call_id: &str) -> Option<String> {
        self.parts.iter().find_map(|marked| match &marked.part {
            ContentPart::ToolCall(call) if call.id == call_id => call.signature.clone(),
            _ => None,
        })
    }
}

impl MarkedPart {
    /// Makes the part; `None` if the model needs nothing of it back.
    fn of(part: &ContentPart) -> Option<Self> {
        let (part, bytes) = match part {
            ContentPart::Text(text) => {
                let marks = TextPart {
                    text: String::new(),
                    citations: text.citations.clone(),
                    signature: text.signature.clone(),
                };
                (ContentPart::Text(marks), text.text.len())
            }
            ContentPart::Refusal { text } => (ContentPart::Refusal { text: String::new() }, text.len()),
            ContentPart::ToolCall(call) => {
                let marks = ToolCall {
                    id: call.id.clone(),
                    name: String::new(),
                    arguments: String::new(),
                    signature: call.signature.clone(),
                };
                (ContentPart::ToolCall(marks), 0)
            }
            ContentPart::Reasoning(_) | ContentPart::Opaque(_) if part.is_owned() => (part.clone(), 0),
            _ => return None,
        };
        Some(Self { part, bytes })
    }
}

impl Given<'_> {
    /// Returns a part with its words or its arguments.
    fn complete(&mut self, marked: &MarkedPart) -> Option<ContentPart> {
        Some(match marked.part.clone() {
            ContentPart::Text(part) => ContentPart::Text(TextPart {
                text: take(&mut self.texts, marked.bytes)?,
                ..part
            }),
            ContentPart::Refusal { .. } => ContentPart::Refusal {
                text: take(&mut self.refusals, marked.bytes)?,
            },
            ContentPart::ToolCall(ToolCall { id, signature, .. }) => {
                let at = self.calls.iter().position(|call| call.id == id)?;
                let call = self.calls.remove(at).clone();
                ContentPart::ToolCall(ToolCall { signature, ..call })
            }
            part => part,
        })
    }

    fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.refusals.is_empty() && self.calls.is_empty()
    }
}

/// Takes so many bytes of words; `None` if there are fewer.
fn take(words: &mut &str, bytes: usize) -> Option<String> {
    let (taken, rest) = words.split_at_checked(bytes)?;
    *words = rest;
    Some(taken.to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use values::clock::Timestamp;
    use values::ids::MessageId;
    use values::json::RawJson;
    use values::message::Role;

    fn parts(content: Value) -> Vec<ContentPart> {
        serde_json::from_value(content).unwrap()
    }

    fn message(fields: Vec<(String, RawJson)>, content: Value) -> Message {
        let id = MessageId::from_uuid(Uuid::from_u128(7));
        let mut message = Message::new(id, Role::Assistant, parts(content), Timestamp::UNIX_EPOCH);
        message.provider_fields = Some(ProviderFields {
            model: Some("m".to_owned()),
            fields,
            ..ProviderFields::owner("p")
        });
        message
    }

    fn signed() -> Message {
        let content = json!([
            {"type": "reasoning", "text": "hm", "signature": "s"},
            {"type": "text", "text": "é", "signature": "t"},
            {"type": "opaque", "provider": "p", "raw": "{}"},
            {"type": "text", "text": "a"},
            {"type": "tool_call", "id": "c", "name": "f", "arguments": "{}", "signature": "u"},
        ]);
        message(Vec::new(), content)
    }

    /// The signed message as a client sends it back, with these words.
    fn given(text: &str) -> Vec<ContentPart> {
        parts(json!([
            {"type": "reasoning", "text": "hm"}, {"type": "text", "text": text},
            {"type": "tool_call", "id": "c", "name": "f", "arguments": "{}"},
        ]))
    }

    #[test]
    fn sealed_marks_come_back_for_their_tenant_alone() {
        let marks = Marks::of(&signed()).unwrap();
        let seal = Seal::random().unwrap();
        let (acme, globex) = ("acme".parse().unwrap(), "globex".parse().unwrap());
        let sealed = marks.seal(&seal, &acme).unwrap();
        assert_eq!(Marks::open(&seal, &acme, &sealed), Some(marks));
        assert_eq!(Marks::open(&seal, &globex, &sealed), None);
    }

    #[test]
    fn a_message_is_restored_from_its_words_and_its_marks() {
        let message = signed();
        let marks = Marks::of(&message).unwrap();
        assert_eq!(marks.word_bytes(), "éa".len());
        let restored = marks.restore(given("éa"));
        assert_eq!(restored, (message.content, message.provider_fields.unwrap()));
    }

    #[test]
    fn other_words_follow_the_reasoning_of_the_model() {
        let message = signed();
        let [reasoning, _, opaque, _, call] = &message.content[..] else {
            panic!("{message:?}");
        };
        for text in ["b", "éab", "aé"] {
            let (content, _) = Marks::of(&message).unwrap().restore(given(text));
            let expected = [reasoning.clone(), opaque.clone(), ContentPart::text(text), call.clone()];
            assert_eq!(content, expected);
        }
    }

    #[test]
    fn only_what_the_model_needs_back_is_sealed() {
        let words = json!([{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "a secret"}]);
        assert_eq!(Marks::of(&message(Vec::new(), words.clone())), None);
        let fields = vec![("reasoning_content".to_owned(), RawJson::new("\"hm\""))];
        let message = message(fields, words);
        let marks = Marks::of(&message).unwrap();
        let sealed = serde_json::to_string(&marks).unwrap();
        assert!(!sealed.contains("secret"), "{sealed}");
        assert_eq!(sealed.matches("hm").count(), 1, "{sealed}");
        let restored = marks.restore(message.content.clone());
        assert_eq!(restored, (message.content, message.provider_fields.unwrap()));
    }
}
