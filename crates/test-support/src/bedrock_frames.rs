//! Streams of Bedrock's Converse: events and exceptions, and the frames around them.

use aws_smithy_eventstream::frame::write_message_to;
use aws_smithy_types::event_stream::{Header, HeaderValue, Message};
use serde_json::{Value, json};

/// Frames a message with these headers.
pub fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let headers = headers
        .iter()
        .map(|(name, value)| Header::new((*name).to_owned(), HeaderValue::String((*value).to_owned().into())));
    let message = Message::new_from_parts(headers.collect::<Vec<_>>(), payload.to_owned());
    let mut bytes = Vec::new();
    write_message_to(&message, &mut bytes).unwrap();
    bytes
}

/// Frames an event: an object of one field, whose name is the event's.
pub fn event(event: &Value) -> Vec<u8> {
    let (name, payload) = event.as_object().unwrap().iter().next().unwrap();
    let headers = [
        (":event-type", name.as_str()),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    frame(&headers, &payload.to_string())
}

/// Frames an exception.
pub fn exception(name: &str, payload: &Value) -> Vec<u8> {
    let headers = [
        (":exception-type", name),
        (":content-type", "application/json"),
        (":message-type", "exception"),
    ];
    frame(&headers, &payload.to_string())
}

pub fn stream_bytes(events: &[Value]) -> Vec<u8> {
    events.iter().flat_map(event).collect()
}

pub fn start(index: u64, start: &Value) -> Value {
    json!({"contentBlockStart": {"contentBlockIndex": index, "start": start, "p": "abc"}})
}

pub fn delta(index: u64, delta: &Value) -> Value {
    json!({"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}})
}

pub fn text_delta(index: u64, text: &str) -> Value {
    delta(index, &json!({"text": text}))
}

pub fn stop(reason: &str) -> Value {
    json!({"messageStop": {"stopReason": reason}})
}

pub fn metadata() -> Value {
    json!({"metadata": {"usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}}})
}
