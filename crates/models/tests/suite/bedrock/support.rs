//! Builds answers and histories of Bedrock's Converse, and decodes and encodes them.

use std::sync::Arc;

use agent::ports::ModelRequest;
use aws_smithy_eventstream::frame::write_message_to;
use aws_smithy_types::event_stream::{Header, HeaderValue, Message as Frame};
use models::{CapSettings, ProviderKind, ProviderSettings};
use serde_json::{Value, json};
use test_support::bedrock_frames::stream_bytes;
use values::message::{ContentPart, Message, ProviderFields, ReasoningPart, Role, ToolCall};

use crate::support::{Counted, Decoded, decode, message};
use test_support::wires::{self, encode_request};

pub(super) fn decode_with(caps: CapSettings, chunks: &[&[u8]]) -> Decoded {
    let ids = Arc::new(Counted::default());
    decode(wires::decoder(&settings(), None, caps, ids), chunks)
}

/// Decodes a stream of the events.
pub(super) fn stream(events: &[Value]) -> Decoded {
    decode_with(CapSettings::default(), &[&stream_bytes(events)])
}

/// Decodes one body.
pub(super) fn plain(body: &Value) -> Decoded {
    decode_with(CapSettings::default(), &[body.to_string().as_bytes()])
}

/// A body whose answer has these blocks.
pub(super) fn whole(content: &[Value], reason: &str) -> Value {
    json!({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": reason,
           "usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}})
}

pub(super) fn tool_use(id: &str) -> Value {
    json!({"toolUse": {"toolUseId": id, "name": "t"}})
}

pub(super) fn thought(text: &str, signature: Option<&str>) -> ContentPart {
    ContentPart::Reasoning(ReasoningPart {
        text: text.to_owned(),
        signature: signature.map(str::to_owned),
        ..ReasoningPart::default()
    })
}

pub(super) fn redacted(data: &str) -> ContentPart {
    ContentPart::Reasoning(ReasoningPart {
        encrypted: Some(data.to_owned()),
        ..ReasoningPart::default()
    })
}

pub(super) fn call(id: &str, arguments: &str) -> ContentPart {
    ContentPart::ToolCall(ToolCall {
        id: id.to_owned(),
        name: "t".to_owned(),
        arguments: arguments.to_owned(),
        signature: None,
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

pub(super) fn bytes_of(request: &ModelRequest) -> Vec<u8> {
    encode_request(request, &settings(), true)
}

pub(super) fn settings() -> ProviderSettings {
    wires::settings("p", ProviderKind::Bedrock)
}

pub(super) fn encoded(request: &ModelRequest) -> Value {
    serde_json::from_slice(&bytes_of(request)).unwrap()
}
