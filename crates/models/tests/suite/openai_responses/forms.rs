//! Turns a recorded stream of responses into the plain body that means the same, and the other way
//! round. Knows nothing of the code under test.

use serde_json::{Value, json};

use crate::support::sevens;

/// Returns the response that ends a recorded stream, or the error that breaks it off.
pub(crate) fn plain_of_stream(stream: &str) -> String {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut frames = data.map(|data| serde_json::from_str::<Value>(data).unwrap());
    let last = frames.next_back().unwrap();
    if last["type"] == "error" {
        return json!({"error": last}).to_string();
    }
    last["response"].to_string()
}

/// Returns the stream that a server would have sent for a recorded body: each item announced, in
/// pieces and in whole.
pub(crate) fn stream_of_plain(body: &str) -> String {
    let response: Value = serde_json::from_str(body).unwrap();
    let mut opening = response.clone();
    opening["status"] = json!("in_progress");
    opening["output"] = json!([]);
    opening["usage"] = Value::Null;
    let mut frames = vec![
        json!({"type": "response.created", "response": opening}),
        json!({"type": "response.in_progress", "response": opening}),
    ];
    for (index, item) in response["output"].as_array().unwrap().iter().enumerate() {
        frames.extend(item_frames(index, item));
    }
    let status = response["status"].as_str().unwrap();
    frames.push(json!({"type": format!("response.{status}"), "response": response}));
    let numbered = frames.into_iter().enumerate().map(|(number, mut frame)| {
        frame["sequence_number"] = json!(number);
        format!("event: {}\ndata: {frame}\n\n", frame["type"].as_str().unwrap())
    });
    numbered.collect()
}

fn item_frames(index: usize, item: &Value) -> Vec<Value> {
    let mut opening = item.clone();
    opening["status"] = json!("in_progress");
    for list in ["content", "summary"] {
        if item[list].is_array() {
            opening[list] = json!([]);
        }
    }
    if item["arguments"].is_string() {
        opening["arguments"] = json!("");
    }
    let position = json!({"output_index": index, "item_id": item["id"]});
    let frame = |kind: &str, fields: Value| {
        let mut frame = position.clone();
        frame["type"] = json!(format!("response.{kind}"));
        for (name, value) in fields.as_object().unwrap() {
            frame[name] = value.clone();
        }
        frame
    };
    let mut frames = vec![frame("output_item.added", json!({"item": opening}))];
    for (number, part) in item["summary"].as_array().into_iter().flatten().enumerate() {
        let text = part["text"].as_str().unwrap();
        frames.push(frame(
            "reasoning_summary_part.added",
            json!({"summary_index": number, "part": {"type": "summary_text", "text": ""}}),
        ));
        frames.extend(sevens(text).into_iter().map(|piece| {
            let fields = json!({"summary_index": number, "delta": piece});
            frame("reasoning_summary_text.delta", fields)
        }));
        let whole = json!({"summary_index": number, "text": text});
        frames.push(frame("reasoning_summary_text.done", whole));
    }
    for (number, part) in item["content"].as_array().into_iter().flatten().enumerate() {
        let text = part["text"].as_str().unwrap();
        frames.push(frame(
            "content_part.added",
            json!({"content_index": number, "part": {"type": "output_text", "text": "", "annotations": []}}),
        ));
        frames.extend(sevens(text).into_iter().map(|piece| {
            let fields = json!({"content_index": number, "delta": piece});
            frame("output_text.delta", fields)
        }));
        let whole = json!({"content_index": number, "text": text});
        frames.push(frame("output_text.done", whole));
        frames.push(frame(
            "content_part.done",
            json!({"content_index": number, "part": part}),
        ));
    }
    if let Some(arguments) = item["arguments"].as_str() {
        let deltas = sevens(arguments)
            .into_iter()
            .map(|piece| frame("function_call_arguments.delta", json!({"delta": piece})));
        frames.extend(deltas);
        frames.push(frame("function_call_arguments.done", json!({"arguments": arguments})));
    }
    frames.push(frame("output_item.done", json!({"item": item})));
    frames
}
