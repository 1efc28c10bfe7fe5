//! Builds histories and encodes them as requests of Anthropic Messages.

use agent::ports::{ModelRequest, ToolSpec};
use serde_json::{Value, json};
use values::message::{ContentPart, Message, ProviderFields, ReasoningPart, Role};

use super::support::settings;
use crate::support::{message, request};
use test_support::wires::encode_request;

pub(super) fn encoded(request: &ModelRequest) -> Value {
    serde_json::from_slice(&encode_request(request, &settings(), true)).unwrap()
}

pub(super) fn turns(messages: Vec<Message>) -> Value {
    encoded(&request(messages))["messages"].clone()
}

pub(super) fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: "d".to_owned(),
        parameters: json!({"type": "object", "properties": {"b": {}, "a": {}}}),
        idempotent: true,
        read_only: false,
        destructive: false,
        timeout: None,
    }
}

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(super) fn said(role: &str, content: &[Value]) -> Value {
    json!({"role": role, "content": content})
}

pub(super) fn thought(words: &str, signature: Option<&str>) -> ContentPart {
    ContentPart::Reasoning(ReasoningPart {
        text: words.to_owned(),
        signature: signature.map(str::to_owned),
        ..ReasoningPart::default()
    })
}

/// A message of the assistant that the provider owns.
pub(super) fn owned(provider: &str, content: Vec<ContentPart>) -> Message {
    Message {
        provider_fields: Some(ProviderFields {
            model: Some("m".to_owned()),
            ..ProviderFields::owner(provider)
        }),
        ..message(Role::Assistant, content)
    }
}
