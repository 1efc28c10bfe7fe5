//! Builds answers and histories of Gemini's protocol, and decodes and encodes them.

use agent::ports::ModelRequest;
use models::{CapSettings, ProviderKind, ProviderSettings};
use serde_json::{Value, json};
use test_support::gemini_chunks::stream_text;
use test_support::wires::{self, encode_request};
use values::message::{ContentPart, TextPart, ToolCall};

use crate::support::{Decoded, decode};

pub(super) fn decode_with(content_type: Option<&str>, caps: CapSettings, chunks: &[&[u8]]) -> Decoded {
    decode(wires::decoder(&settings(), content_type, caps), chunks)
}

/// Decodes an answer that comes in one piece.
pub(super) fn read(bytes: &[u8]) -> Decoded {
    decode_with(None, CapSettings::default(), &[bytes])
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

pub(super) fn call(id: &str, arguments: &str, signature: Option<&str>) -> ContentPart {
    ContentPart::ToolCall(ToolCall {
        id: id.to_owned(),
        name: "t".to_owned(),
        arguments: arguments.to_owned(),
        signature: signature.map(|signature| json!({"thoughtSignature": signature}).to_string()),
    })
}

pub(super) fn bytes_of(request: &ModelRequest) -> Vec<u8> {
    encode_request(request, &settings(), true)
}

fn settings() -> ProviderSettings {
    wires::settings("p", ProviderKind::Gemini)
}

pub(super) fn encoded(request: &ModelRequest) -> Value {
    serde_json::from_slice(&bytes_of(request)).unwrap()
}
