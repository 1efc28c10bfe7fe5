//! Streams of Gemini's protocol, and their chunks.

use serde_json::{Value, json};

pub fn stream_text(chunks: &[Value]) -> String {
    let frames = chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n"));
    frames.collect::<Vec<_>>().concat()
}

/// A chunk with parts of the answer.
pub fn chunk(parts: &[Value]) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "index": 0}]})
}

/// The last chunk, with parts of the answer.
pub fn last(parts: &[Value], reason: &str) -> Value {
    let mut chunk = chunk(parts);
    chunk["candidates"][0]["finishReason"] = Value::from(reason);
    chunk["usageMetadata"] = json!({"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5});
    chunk
}
