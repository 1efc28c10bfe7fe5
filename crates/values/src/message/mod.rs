//! The neutral message model: messages of every provider map to it without loss. No IO, no
//! provider's format.

mod content;
mod media_type;
mod picture;
mod tags;

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{Array, ArrayBuilder, ObjectBuilder, Type};

pub use self::content::{
    Citation, ContentPart, DocumentPart, ImagePart, MediaSource, OpaquePart, ReasoningPart, TextPart, ToolCall,
    ToolResult, is_plain_id,
};
pub use self::media_type::is_text_type;
pub use self::picture::{picture_problem, picture_side};
pub use self::tags::{Coverage, MessageTags, Section};
use crate::clock::Timestamp;
use crate::ids::MessageId;
use crate::json::{Object, RawJson, Unread};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Instructions above the conversation.
    System,
    /// The caller's side.
    User,
    /// The model.
    Assistant,
    /// Results of tool calls.
    Tool,
}

/// One message of a history.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Message {
    /// Names the message within its history.
    pub id: MessageId,
    /// The author.
    pub role: Role,
    /// The name of the author, where several share a role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The content parts, in order.
    pub content: Vec<ContentPart>,
    /// The execution and the step that produced it, and its section.
    #[serde(default, skip_serializing_if = "MessageTags::is_empty")]
    pub tags: MessageTags,
    /// Fields of the provider's message that must go back unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_fields: Option<ProviderFields>,
    /// Key-value pairs of the caller.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub metadata: Object,
    /// When the message entered the history.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    #[serde(serialize_with = "crate::clock::write_time")]
    pub created_at: Timestamp,
    /// Unknown fields that a later version stored; see [`Unread`].
    #[serde(skip)]
    pub unread: Unread,
}

/// The model that made a message, and opaque fields that only this model can read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ProviderFields {
    /// The provider's configured name, such as `openrouter`.
    pub provider: String,
    /// The provider's own name for the model. Without it, no model gets the fields back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The fields, verbatim and in the order of arrival.
    #[schema(schema_with = name_and_value_pairs)]
    pub fields: Vec<(String, RawJson)>,
}

impl ProviderFields {
    /// Names only the provider: the parts of the message have the fields that go back to it.
    pub fn owner(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            model: None,
            fields: Vec::new(),
        }
    }
}

fn name_and_value_pairs() -> Array {
    let pair = ArrayBuilder::new().items(ObjectBuilder::new().schema_type(Type::String));
    let pair = pair.min_items(Some(2)).max_items(Some(2));
    ArrayBuilder::new()
        .items(pair)
        .description(Some(
            "The fields, each a name and its JSON, verbatim and in the order of arrival.",
        ))
        .build()
}

impl Message {
    /// Makes a message without tags.
    pub fn new(id: MessageId, role: Role, content: Vec<ContentPart>, created_at: Timestamp) -> Self {
        Self {
            id,
            role,
            name: None,
            content,
            tags: MessageTags::default(),
            provider_fields: None,
            metadata: Object::new(),
            created_at,
            unread: Unread::default(),
        }
    }

    /// Makes a message of one text.
    pub fn text(id: MessageId, role: Role, text: impl Into<String>, created_at: Timestamp) -> Self {
        Self::new(id, role, vec![ContentPart::text(text)], created_at)
    }

    /// Returns the same message with other tags.
    #[must_use]
    pub fn with_tags(self, tags: MessageTags) -> Self {
        Self { tags, ..self }
    }

    /// Returns the texts of the message, joined.
    pub fn joined_text(&self) -> String {
        joined_text(&self.content)
    }

    /// Iterates over the tool calls that the message asks for.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|part| match part {
            ContentPart::ToolCall(call) => Some(call),
            _ => None,
        })
    }

    /// Iterates over the tool results that the message brings.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.content.iter().filter_map(|part| match part {
            ContentPart::ToolResult(result) => Some(result),
            _ => None,
        })
    }
}

/// Returns the texts of the parts, joined; other kinds of parts are left out.
pub fn joined_text(content: &[ContentPart]) -> String {
    content.iter().filter_map(ContentPart::as_text).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json::{Value, weight};

    #[test]
    fn a_message_weighs_at_least_the_texts_that_it_holds() {
        let long = "x".repeat(100_000);
        let text = |part: Value| json!({"content": [part]});
        let source = json!({"kind": "base64", "media_type": "image/png", "data": long});
        let result =
            json!({"type": "tool_result", "call_id": "c", "name": "n", "content": [{"type": "refusal", "text": long}]});
        for message in [
            json!({"provider_fields": {"provider": "p", "fields": [["reasoning_details", long]]}}),
            json!({"name": long}),
            json!({"metadata": {"a": [{"b": long}]}}),
            text(json!({"type": "text", "text": long})),
            text(json!({"type": "text", "text": "", "signature": long})),
            text(json!({"type": "text", "text": "", "citations": [long]})),
            text(json!({"type": "text", "text": "", "citations": vec!["{}"; 2_000]})),
            text(json!({"type": "image", "source": source})),
            text(json!({"type": "document", "source": source, "name": "a"})),
            text(json!({"type": "document", "source": {"kind": "url", "url": "u"}, "name": long})),
            text(json!({"type": "tool_call", "id": "c", "name": "n", "arguments": long})),
            text(json!({"type": "tool_call", "id": "c", "name": "n", "arguments": "{}", "signature": long})),
            text(result),
            text(json!({"type": "reasoning", "text": long})),
            text(json!({"type": "reasoning", "text": "", "signature": long})),
            text(json!({"type": "reasoning", "text": "", "encrypted": long})),
            text(json!({"type": "opaque", "provider": "p", "raw": long})),
            text(json!({"type": "hologram", "depth": [long]})),
            json!({"content": vec![json!({"type": "text", "text": ""}); 1_000]}),
        ] {
            let mut whole = json!({
                "id": "01a2029f-3aaa-7738-ac15-a93ea52f3917", "role": "assistant", "content": [],
                "created_at": "2026-01-02T03:04:05Z",
            });
            let fields = message.as_object().unwrap().clone();
            whole.as_object_mut().unwrap().extend(fields);
            let read: Message = serde_json::from_value(whole).unwrap();
            let weight = weight(&read);
            assert!(
                (100_000..300_000).contains(&weight),
                "{weight}: {:.200}",
                message.to_string()
            );
        }
    }
}
