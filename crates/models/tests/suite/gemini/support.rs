//! Builds answers and histories of Gemini's protocol, and decodes and encodes them.

use std::sync::Arc;

use agent::ports::ModelRequest;
use models::{CapSettings, ProviderKind, ProviderSettings};
use serde_json::{Value, json};
use test_support::gemini_chunks::stream_text;
use values::message::{ContentPart, Message, ProviderFields, ReasoningPart, Role, TextPart, ToolCall};

use crate::support::{Counted, Decoded, decode, message};
use test_support::wires::{self, encode_request};

pub(super) fn decode_with(content_type: Option<&str>, caps: CapSettings, chunks: &[&[u8]]) -> Decoded {
    let ids = Arc::new(Counted::default());
    decode(wires::decoder(&settings(), content_type, caps, ids), chunks)
}

/// Decodes a stream of the chunks.
pub(crate) fn stream(chunks: &[Value]) -> Decoded {
    let text = stream_text(chunks);
    decode_with(Some("text/event-stream"), CapSettings::default(), &[text.as_bytes()])
}

/// Decodes one body.
pub(super) fn plain(body: &Value) -> Decoded {
    let text = body.to_string();
    decode_with(
        Some("application/json; charset=UTF-8"),
        CapSettings::default(),
        &[text.as_bytes()],
    )
}

pub(super) fn signed(text: &str, signature: &str) -> ContentPart {
    ContentPart::Text(TextPart {
        text: text.to_owned(),
        signature: Some(signature.to_owned()),
        citations: Vec::new(),
    })
}

pub(super) fn thought(text: &str, signature: Option<&str>) -> ContentPart {
    ContentPart::Reasoning(ReasoningPart {
        text: text.to_owned(),
        signature: signature.map(str::to_owned),
        ..ReasoningPart::default()
    })
}

pub(super) fn call(id: &str, arguments: &str, signature: Option<&str>) -> ContentPart {
    ContentPart::ToolCall(ToolCall {
        id: id.to_owned(),
        name: "t".to_owned(),
        arguments: arguments.to_owned(),
        signature: signature.map(|signature| json!({"thoughtSignature": signature}).to_string()),
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

fn settings() -> ProviderSettings {
    wires::settings("p", ProviderKind::Gemini)
}

pub(super) fn bytes_of(request: &ModelRequest) -> Vec<u8> {
    encode_request(request, &settings(), true)
}

pub(super) fn encoded(request: &ModelRequest) -> Value {
    serde_json::from_slice(&bytes_of(request)).unwrap()
}
