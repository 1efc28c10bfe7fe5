//! Builds answers and histories of Bedrock's Converse, and decodes and encodes them.

use std::sync::Arc;

use agent::ports::ModelRequest;
use aws_smithy_eventstream::frame::write_message_to;
use aws_smithy_types::event_stream::{Header, HeaderValue, Message as Frame};
use models::bedrock::{ConverseDecoder, ConverseDialect, encode_request};
use models::{CapSettings, ProviderCapabilities};
use serde_json::{Value, json};
use values::message::{ContentPart, Message, ProviderFields, ReasoningPart, Role, ToolCall};

use crate::models::support::{Counted, Decoded, decode, message};

pub(super) fn decode_with(caps: CapSettings, chunks: &[&[u8]]) -> Decoded {
    let decoder = ConverseDecoder::of_aws("p", caps, Arc::new(Counted::default()));
    decode(decoder, chunks)
}

/// Frames a message with these headers.
pub(in crate::models) fn frame(headers: &[(&str, &str)], payload: &str) -> Vec<u8> {
    let headers = headers
        .iter()
        .map(|(name, value)| Header::new((*name).to_owned(), HeaderValue::String((*value).to_owned().into())));
    let message = Frame::new_from_parts(headers.collect::<Vec<_>>(), payload.to_owned());
    let mut bytes = Vec::new();
    write_message_to(&message, &mut bytes).unwrap();
    bytes
}

/// Frames an event: an object of one field, whose name is the event's.
pub(in crate::models) fn event(event: &Value) -> Vec<u8> {
    let (name, payload) = event.as_object().unwrap().iter().next().unwrap();
    let headers = [
        (":event-type", name.as_str()),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    frame(&headers, &payload.to_string())
}

/// Frames an exception.
pub(super) fn exception(name: &str, payload: &Value) -> Vec<u8> {
    let headers = [
        (":exception-type", name),
        (":content-type", "application/json"),
        (":message-type", "exception"),
    ];
    frame(&headers, &payload.to_string())
}

pub(super) fn stream_bytes(events: &[Value]) -> Vec<u8> {
    events.iter().flat_map(event).collect()
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

pub(super) fn start(index: u64, start: &Value) -> Value {
    json!({"contentBlockStart": {"contentBlockIndex": index, "start": start, "p": "abc"}})
}

pub(super) fn delta(index: u64, delta: &Value) -> Value {
    json!({"contentBlockDelta": {"contentBlockIndex": index, "delta": delta}})
}

pub(super) fn text_delta(index: u64, text: &str) -> Value {
    delta(index, &json!({"text": text}))
}

pub(super) fn stop(reason: &str) -> Value {
    json!({"messageStop": {"stopReason": reason}})
}

pub(super) fn metadata() -> Value {
    json!({"metadata": {"usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}}})
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
    let dialect = ConverseDialect {
        provider: "p".to_owned(),
        max_output_tokens: None,
        capabilities: ProviderCapabilities::default(),
    };
    encode_request(request, &dialect)
}

pub(super) fn encoded(request: &ModelRequest) -> Value {
    serde_json::from_slice(&bytes_of(request)).unwrap()
}
