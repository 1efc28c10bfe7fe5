//! Builds streams of Anthropic Messages and decodes them.

use models::{CapSettings, ProviderKind, ProviderSettings};
use serde_json::{Value, json};
use test_support::wires;

use crate::support::{Decoded, decode};

pub(super) fn decode_with(content_type: Option<&str>, caps: CapSettings, chunks: &[&[u8]]) -> Decoded {
    decode(wires::decoder(&settings(), content_type, caps), chunks)
}

pub(super) fn settings() -> ProviderSettings {
    wires::settings("p", ProviderKind::Anthropic)
}

/// Decodes an answer that comes in one piece.
pub(super) fn read(bytes: &[u8]) -> Decoded {
    decode_with(None, CapSettings::default(), &[bytes])
}

/// Decodes a stream of the events.
pub(super) fn stream(events: &[Value]) -> Decoded {
    let frame = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("x"));
    let text: String = events.iter().map(frame).collect();
    decode_with(Some("text/event-stream"), CapSettings::default(), &[text.as_bytes()])
}

pub(super) fn plain(body: &Value) -> Decoded {
    decode_with(
        Some("application/json"),
        CapSettings::default(),
        &[body.to_string().as_bytes()],
    )
}

pub(super) fn start() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "model": "claude", "usage": {"input_tokens": 3, "output_tokens": 1}}})
}

pub(super) fn block(index: u64, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

pub(super) fn delta(index: u64, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

pub(super) fn text_delta(index: u64, text: &str) -> Value {
    delta(index, &json!({"type": "text_delta", "text": text}))
}

pub(super) fn input_delta(index: u64, piece: &str) -> Value {
    delta(index, &json!({"type": "input_json_delta", "partial_json": piece}))
}

pub(super) fn end(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}})
}

pub(super) fn stop() -> Value {
    json!({"type": "message_stop"})
}

pub(super) fn ping() -> Value {
    json!({"type": "ping"})
}

pub(super) fn tool_use(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "t", "input": {}})
}
