//! Turns a recorded stream into the plain body that means the same, and the other way round. Knows
//! nothing of the code under test.

use serde_json::{Map, Value, json};

use crate::support::sevens;

/// Returns the JSON objects of a recorded stream.
fn frames(stream: &str) -> Vec<Value> {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    data.filter(|data| *data != "[DONE]")
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

/// Folds a recorded stream into one body. An error in the stream stands in the body.
pub(crate) fn plain_of_stream(stream: &str) -> String {
    let mut message = Map::new();
    let mut body = json!({"object": "chat.completion"});
    let mut finish = Value::Null;
    for frame in frames(stream) {
        for field in ["id", "model", "usage", "error"] {
            if !frame[field].is_null() {
                body[field] = frame[field].clone();
            }
        }
        for choice in frame["choices"].as_array().into_iter().flatten() {
            if !choice["finish_reason"].is_null() {
                finish = choice["finish_reason"].clone();
            }
            for (name, value) in choice["delta"].as_object().into_iter().flatten() {
                fold(&mut message, name, value);
            }
        }
    }
    body["choices"] = json!([{"index": 0, "message": message, "finish_reason": finish}]);
    body.to_string()
}

fn fold(message: &mut Map<String, Value>, name: &str, value: &Value) {
    match (message.get_mut(name), value) {
        (Some(Value::String(known)), Value::String(text)) if name != "role" && name != "channel" => {
            known.push_str(text);
        }
        (Some(Value::Array(known)), Value::Array(items)) if name == "tool_calls" => {
            for item in items {
                match known.iter_mut().find(|known| known["index"] == item["index"]) {
                    Some(known) => {
                        let text =
                            |value: &Value| value["function"]["arguments"].as_str().unwrap_or_default().to_owned();
                        known["function"]["arguments"] = Value::from(text(known) + &text(item));
                    }
                    None => known.push(item.clone()),
                }
            }
        }
        (Some(Value::Array(known)), Value::Array(items)) => known.extend(items.iter().cloned()),
        (Some(_), Value::Null) => {}
        _ => {
            message.insert(name.to_owned(), value.clone());
        }
    }
}

/// Cuts a recorded body into a stream, as servers do it: texts in pieces, calls in fragments, usage
/// in a chunk of its own.
pub(crate) fn stream_of_plain(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap();
    let Some(choice) = body["choices"].get(0) else {
        return format!("data: {body}\n\ndata: [DONE]\n\n");
    };
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    for (name, value) in choice["message"].as_object().unwrap() {
        match (name.as_str(), value) {
            ("role", _) => {}
            ("tool_calls", Value::Array(calls)) => deltas.extend(calls.iter().enumerate().flat_map(call_deltas)),
            ("content", Value::Array(blocks)) => deltas.extend(blocks.iter().flat_map(block_deltas)),
            ("content" | "reasoning" | "reasoning_content", Value::String(text)) => {
                deltas.extend(sevens(text).into_iter().map(|piece| json!({name: piece})));
            }
            _ => deltas.push(json!({name: value})),
        }
    }
    let chunk = |choices: Value| json!({"id": body["id"], "model": body["model"], "choices": choices});
    let delta = |delta: Value| chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]));
    let mut frames: Vec<Value> = deltas.into_iter().map(delta).collect();
    frames.push(chunk(
        json!([{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]),
    ));
    let mut last = chunk(json!([]));
    last["usage"] = body["usage"].clone();
    frames.push(last);
    let data = frames.iter().map(|frame| format!(": keep-alive\n\ndata: {frame}\n\n"));
    data.collect::<String>() + "data: [DONE]\n\n"
}

fn call_deltas((index, call): (usize, &Value)) -> Vec<Value> {
    let mut first = call.clone();
    first["index"] = Value::from(index);
    first["function"]["arguments"] = Value::from("");
    let arguments = sevens(call["function"]["arguments"].as_str().unwrap());
    let rest = arguments
        .into_iter()
        .map(|piece| json!({"index": index, "function": {"arguments": piece}}));
    std::iter::once(first)
        .chain(rest)
        .map(|call| json!({"tool_calls": [call]}))
        .collect()
}

fn block_deltas(block: &Value) -> Vec<Value> {
    let wrap = |block: Value| json!({"content": [block]});
    match block["type"].as_str() {
        Some("text") => sevens(block["text"].as_str().unwrap())
            .into_iter()
            .map(|piece| wrap(json!({"type": "text", "text": piece})))
            .collect(),
        Some("thinking") => sevens(block["thinking"][0]["text"].as_str().unwrap())
            .into_iter()
            .map(|piece| wrap(json!({"type": "thinking", "thinking": [{"type": "text", "text": piece}]})))
            .collect(),
        _ => vec![wrap(block.clone())],
    }
}
