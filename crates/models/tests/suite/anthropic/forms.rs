//! Turns a recorded stream of Anthropic Messages into the plain body that means the same, and the
//! other way round. Knows nothing of the code under test.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::sevens;

/// Folds a recorded stream into one body. An error in the stream is the body.
pub(crate) fn plain_of_stream(stream: &str) -> String {
    let mut body = json!({});
    let mut blocks: BTreeMap<u64, Value> = BTreeMap::new();
    let mut inputs: BTreeMap<u64, String> = BTreeMap::new();
    for data in stream.lines().filter_map(|line| line.strip_prefix("data:")) {
        let event: Value = serde_json::from_str(data).unwrap();
        let index = event["index"].as_u64().unwrap_or_default();
        match event["type"].as_str().unwrap() {
            "error" => return event.to_string(),
            "message_start" => body = event["message"].clone(),
            "content_block_start" => {
                blocks.insert(index, event["content_block"].clone());
            }
            "content_block_delta" if event["delta"]["type"] == "input_json_delta" => {
                let piece = event["delta"]["partial_json"].as_str().unwrap();
                inputs.entry(index).or_default().push_str(piece);
            }
            "content_block_delta" => fold(blocks.get_mut(&index).unwrap(), &event["delta"]),
            "message_delta" => {
                body["stop_reason"] = event["delta"]["stop_reason"].clone();
                for (name, count) in event["usage"].as_object().unwrap() {
                    body["usage"][name] = count.clone();
                }
            }
            _ => {}
        }
    }
    for (index, input) in inputs.into_iter().filter(|(_, input)| !input.is_empty()) {
        blocks.get_mut(&index).unwrap()["input"] = serde_json::from_str(&input).unwrap();
    }
    body["content"] = blocks.into_values().collect();
    body.to_string()
}

fn fold(block: &mut Value, delta: &Value) {
    if delta["type"] == "citations_delta" {
        let mut known = block["citations"].as_array().cloned().unwrap_or_default();
        known.push(delta["citation"].clone());
        block["citations"] = Value::from(known);
        return;
    }
    for (name, piece) in delta.as_object().unwrap().iter().filter(|(name, _)| *name != "type") {
        let known = block[name].as_str().unwrap_or_default().to_owned();
        block[name] = Value::from(known + piece.as_str().unwrap());
    }
}

/// Cuts a recorded body into a stream, as the API does it: blocks in pieces, pings between them,
/// the end in an event of its own.
pub(crate) fn stream_of_plain(body: &str) -> String {
    let mut message: Value = serde_json::from_str(body).unwrap();
    let content = message["content"].take();
    let stop_reason = message["stop_reason"].take();
    let usage = message["usage"].clone();
    message["content"] = json!([]);
    message["usage"]["output_tokens"] = Value::from(1);
    let mut events = vec![json!({"type": "message_start", "message": message})];
    for (index, block) in content.as_array().unwrap().iter().enumerate() {
        let (start, deltas) = pieces_of(block);
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        events.push(json!({"type": "ping"}));
        let deltas = deltas.into_iter();
        events.extend(deltas.map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let delta = json!({"stop_reason": stop_reason, "stop_sequence": null});
    events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
    events.push(json!({"type": "message_stop"}));
    let frame = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    events.iter().map(frame).collect()
}

/// Returns how a block begins, and its pieces.
fn pieces_of(block: &Value) -> (Value, Vec<Value>) {
    let mut start = block.clone();
    let cut = |name: &str, kind: &str| {
        let pieces = sevens(block[name].as_str().unwrap()).into_iter();
        pieces
            .map(|piece| json!({"type": kind, name: piece}))
            .collect::<Vec<_>>()
    };
    let deltas = match block["type"].as_str().unwrap() {
        "text" => {
            start["text"] = Value::from("");
            let mut deltas = cut("text", "text_delta");
            if let Some(citations) = block["citations"].as_array() {
                start["citations"] = json!([]);
                let citations = citations.iter();
                deltas.extend(citations.map(|citation| json!({"type": "citations_delta", "citation": citation})));
            }
            deltas
        }
        "thinking" => {
            (start["thinking"], start["signature"]) = (Value::from(""), Value::from(""));
            let mut deltas = cut("thinking", "thinking_delta");
            deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
            deltas
        }
        "tool_use" | "server_tool_use" => {
            start["input"] = json!({});
            let input = block["input"].to_string();
            let pieces = sevens(if input == "{}" { "" } else { &input });
            let pieces = std::iter::once(String::new()).chain(pieces);
            pieces
                .map(|piece| json!({"type": "input_json_delta", "partial_json": piece}))
                .collect()
        }
        _ => Vec::new(),
    };
    (start, deltas)
}
