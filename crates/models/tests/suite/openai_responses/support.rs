//! Decodes answers and encodes requests of responses for the tests.

use agent::ports::{ModelEvent, ModelRequest};
use models::{CapSettings, ProviderKind, ProviderSettings};
use serde_json::{Value, json};
use test_support::wires::{self, encode_request};

use crate::support::{Decoded, decode};

/// Decodes an answer of the provider `p` that comes in these pieces.
pub(super) fn decode_with(content_type: Option<&str>, caps: CapSettings, chunks: &[&[u8]]) -> Decoded {
    decode(wires::decoder(&settings("p"), content_type, caps), chunks)
}

/// Decodes an answer that comes in one piece.
pub(super) fn read(bytes: &[u8]) -> Decoded {
    decode_with(None, CapSettings::default(), &[bytes])
}

/// Returns the bytes of a stream of these events.
pub(super) fn stream_text(events: &[Value]) -> String {
    let frames: Vec<_> = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    frames.concat()
}

/// Decodes a stream of these events.
pub(super) fn stream(events: &[Value]) -> Decoded {
    let text = stream_text(events);
    decode_with(Some("text/event-stream"), CapSettings::default(), &[text.as_bytes()])
}

/// Decodes one body.
pub(super) fn plain(body: &Value) -> Decoded {
    let text = body.to_string();
    decode_with(Some("application/json"), CapSettings::default(), &[text.as_bytes()])
}

pub(super) fn settings(provider: &str) -> ProviderSettings {
    wires::settings(provider, ProviderKind::OpenAiResponses)
}

/// Returns the request's body for the provider `p`.
pub(super) fn encoded(request: &ModelRequest) -> Value {
    serde_json::from_slice(&encode_request(request, &settings("p"), true)).unwrap()
}

pub(super) fn message_item(text: &str) -> Value {
    json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
           "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

pub(super) fn call_item(arguments: &str) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "t", "arguments": arguments,
           "status": "completed"})
}

pub(super) fn response(status: &str, output: &[Value]) -> Value {
    json!({"object": "response", "id": "resp_1", "model": "m-1", "status": status, "error": null, "output": output})
}

pub(super) fn end(status: &str, output: &[Value]) -> Value {
    json!({"type": format!("response.{status}"), "response": response(status, output)})
}

pub(super) fn text_delta(text: &str) -> Value {
    json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": text})
}

pub(super) fn added(index: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": index, "item": item})
}

pub(super) fn done(index: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": index, "item": item})
}

pub(super) fn texts(events: &[ModelEvent]) -> String {
    let text = |event: &ModelEvent| match event {
        ModelEvent::TextDelta { text } => Some(text.clone()),
        _ => None,
    };
    events.iter().filter_map(text).collect()
}
