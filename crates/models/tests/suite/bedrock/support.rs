//! Builds answers and histories of Bedrock's Converse, and decodes and encodes them.

use agent::ports::ModelRequest;
use models::{CapSettings, ProviderKind, ProviderSettings};
use serde_json::{Value, json};
use test_support::bedrock_frames::stream_bytes;
use test_support::wires::{self, encode_request};

use crate::support::{Decoded, decode};

pub(super) fn decode_with(caps: CapSettings, chunks: &[&[u8]]) -> Decoded {
    decode(wires::decoder(&settings(), None, caps), chunks)
}

/// Decodes an answer that comes in one piece.
pub(super) fn read(bytes: &[u8]) -> Decoded {
    decode_with(CapSettings::default(), &[bytes])
}

/// Decodes a stream of the events.
pub(super) fn stream(events: &[Value]) -> Decoded {
    read(&stream_bytes(events))
}

/// Decodes one body.
pub(super) fn plain(body: &Value) -> Decoded {
    read(body.to_string().as_bytes())
}

/// A body whose answer has these blocks.
pub(super) fn whole(content: &[Value], reason: &str) -> Value {
    json!({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": reason,
           "usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}})
}

pub(super) fn tool_use(id: &str) -> Value {
    json!({"toolUse": {"toolUseId": id, "name": "t"}})
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
