//! Builds histories and encodes them as requests of Anthropic Messages.

use agent::ports::{ModelRequest, ToolSpec};
use serde_json::{Value, json};
use test_support::wires::encode_request;
use values::message::Message;

use super::support::settings;
use crate::support::request;

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
        ..ToolSpec::default()
    }
}

pub(super) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(super) fn said(role: &str, content: &[Value]) -> Value {
    json!({"role": role, "content": content})
}
