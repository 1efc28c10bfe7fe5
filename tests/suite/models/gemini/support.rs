//! Builds answers and histories of Gemini's protocol, and decodes and encodes them.

use std::sync::Arc;

use agent_runtime::agent::ports::{ModelError, ModelErrorClass, ModelEvent, ModelRequest};
use agent_runtime::agent::state::ModelResponse;
use agent_runtime::message::{ContentPart, Message, ProviderFields, ReasoningPart, Role, TextPart, ToolCall};
use agent_runtime::models::gemini::{GeminiDecoder, GeminiDialect, encode_request};
use agent_runtime::models::{CapSettings, Decoder as _};
use serde_json::{Value, json};

use crate::models::support::{Counted, message};

pub(super) type Outcome = (Vec<ModelEvent>, Result<ModelResponse, ModelError>);

pub(super) fn decode_with(content_type: Option<&str>, caps: CapSettings, chunks: &[&[u8]]) -> Outcome {
    let mut decoder = GeminiDecoder::new("p", content_type, caps, Arc::new(Counted::default()));
    let mut events = Vec::new();
    let pushed = chunks.iter().try_for_each(|chunk| decoder.push(chunk, &mut events));
    let end = match pushed.and_then(|()| decoder.finish(&mut events)) {
        Err(failure) => Err(failure.error),
        Ok(()) => match events.pop() {
            Some(ModelEvent::Completed(response)) => Ok(*response),
            other => panic!("an answer ended with {other:?}"),
        },
    };
    (events, end)
}

pub(super) fn stream_text(chunks: &[Value]) -> String {
    let frames = chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n"));
    frames.collect::<Vec<_>>().concat()
}

/// Decodes a stream of the chunks.
pub(super) fn stream(chunks: &[Value]) -> Outcome {
    let text = stream_text(chunks);
    decode_with(Some("text/event-stream"), CapSettings::default(), &[text.as_bytes()])
}

/// Decodes one body.
pub(super) fn plain(body: &Value) -> Outcome {
    let text = body.to_string();
    decode_with(
        Some("application/json; charset=UTF-8"),
        CapSettings::default(),
        &[text.as_bytes()],
    )
}

/// A chunk with parts of the answer.
pub(super) fn chunk(parts: &[Value]) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]})
}

/// The last chunk, with parts of the answer.
pub(super) fn last(parts: &[Value], reason: &str) -> Value {
    let mut chunk = chunk(parts);
    chunk["candidates"][0]["finishReason"] = Value::from(reason);
    chunk["usageMetadata"] = json!({"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5});
    chunk
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
            provider: provider.to_owned(),
            fields: Vec::new(),
        }),
        ..message(Role::Assistant, content)
    }
}

pub(super) fn encoded(request: &ModelRequest) -> Value {
    let dialect = GeminiDialect {
        provider: "p".to_owned(),
        max_output_tokens: None,
    };
    serde_json::from_slice(&encode_request(request, &dialect)).unwrap()
}

#[track_caller]
pub(super) fn error(outcome: Outcome) -> (ModelErrorClass, String) {
    let error = outcome.1.unwrap_err();
    (error.class, error.message)
}
