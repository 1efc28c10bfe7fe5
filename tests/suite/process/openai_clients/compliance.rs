//! What the specification of Open Responses requires of every response and of every stream. Its
//! compliance suite is in no registry, so the cases are written anew.
//!
//! Left out are its cases of WebSocket and of compaction, which the service does not have.

use reqwest::Method;
use serde_json::{Value, json};

use super::World;

/// The fields of a response, which are present even if they are null.
const FIELDS: [&str; 31] = [
    "id",
    "object",
    "created_at",
    "completed_at",
    "status",
    "incomplete_details",
    "model",
    "previous_response_id",
    "instructions",
    "output",
    "error",
    "tools",
    "tool_choice",
    "truncation",
    "parallel_tool_calls",
    "text",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "top_logprobs",
    "temperature",
    "reasoning",
    "usage",
    "max_output_tokens",
    "max_tool_calls",
    "store",
    "background",
    "service_tier",
    "metadata",
    "safety_identifier",
    "prompt_cache_key",
];
/// Whether a value has a type of JSON.
type IsType = fn(&Value) -> bool;
/// Those of them that are never null, with the JSON type of each.
const NEVER_NULL: [(&str, IsType); 18] = [
    ("id", Value::is_string),
    ("object", Value::is_string),
    ("created_at", Value::is_u64),
    ("status", Value::is_string),
    ("model", Value::is_string),
    ("output", Value::is_array),
    ("tools", Value::is_array),
    ("truncation", Value::is_string),
    ("parallel_tool_calls", Value::is_boolean),
    ("text", Value::is_object),
    ("top_p", Value::is_number),
    ("presence_penalty", Value::is_number),
    ("frequency_penalty", Value::is_number),
    ("top_logprobs", Value::is_u64),
    ("temperature", Value::is_number),
    ("store", Value::is_boolean),
    ("service_tier", Value::is_string),
    ("metadata", Value::is_object),
];
/// A picture of one pixel.
const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhK\
    mMIQAAAABJRU5ErkJggg==";

fn message(role: &str, content: &Value) -> Value {
    json!({"type": "message", "role": role, "content": content})
}

/// The cases: the input and the tools of a request, and the type of the last item of the response.
fn cases() -> Vec<(&'static str, Value, &'static str)> {
    let image = json!([{"type": "input_text", "text": "Look"}, {"type": "input_image", "image_url": PIXEL}]);
    let turns = json!([
        message("user", &json!("My name is Ada.")),
        message("assistant", &json!("Hello, Ada.")),
        message("user", &json!("Who am I?")),
    ]);
    let instructed = json!([
        message("system", &json!("You are a pirate.")),
        message("user", &json!("Hello")),
    ]);
    let weather = json!({"type": "function", "name": "weather", "description": "Returns the weather.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}});
    vec![
        ("basic", json!({"input": [message("user", &json!("Hello"))]}), "message"),
        ("system prompt", json!({"input": instructed}), "message"),
        (
            "tool calling",
            json!({"input": "weather", "tools": [weather]}),
            "function_call",
        ),
        ("image input", json!({"input": [message("user", &image)]}), "message"),
        ("several turns", json!({"input": turns}), "message"),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_and_their_streams_have_the_required_form() {
    let world = World::start().await;
    for (case, request, last_type) in cases() {
        let mut body = request;
        body["model"] = json!("plain");
        let response = world.service.post("/v1/responses", body.clone()).await;
        check_response(case, &response);
        let last = response["output"].as_array().unwrap().last().unwrap();
        assert_eq!(last["type"], last_type, "{case}");
        if last_type == "message" {
            assert_eq!(last["phase"], "final_answer", "{case}");
        }

        body["stream"] = json!(true);
        let (_, stream) = world.service.call(Method::POST, "/v1/responses", Some(body)).await;
        let streamed = check_stream(case, stream.as_str().unwrap());
        check_response(case, &streamed);
        assert_eq!(
            shape(&streamed["output"]),
            shape(&response["output"]),
            "{case}: the stream ends with another output"
        );
    }
    world.service.stop().await;
}

fn check_response(case: &str, response: &Value) {
    for field in FIELDS {
        assert!(response.get(field).is_some(), "{case}: no {field} in {response:#}");
    }
    for (field, is_typed) in NEVER_NULL {
        assert!(is_typed(&response[field]), "{case}: {field} is {}", response[field]);
    }
    assert_eq!(response["status"], "completed", "{case}: {response:#}");
    assert!(response["completed_at"].is_u64(), "{case}");
    assert!(response["text"]["format"]["type"].is_string(), "{case}");
    assert_eq!(
        response["text"].get("verbosity"),
        None,
        "{case}: it is absent, not null"
    );
    for pointer in [
        "/usage/input_tokens",
        "/usage/output_tokens",
        "/usage/total_tokens",
        "/usage/input_tokens_details/cached_tokens",
        "/usage/output_tokens_details/reasoning_tokens",
    ] {
        let tokens = response.pointer(pointer);
        assert!(tokens.is_some_and(Value::is_u64), "{case}: {pointer}");
    }
    for tool in response["tools"].as_array().unwrap() {
        for field in ["type", "name", "description", "parameters", "strict"] {
            assert!(tool.get(field).is_some(), "{case}: no {field} in {tool}");
        }
    }
    for item in response["output"].as_array().unwrap() {
        assert!(
            item["id"].is_string() && item["status"] == "completed",
            "{case}: {item:#}"
        );
        for part in item["content"].as_array().into_iter().flatten() {
            assert!(
                part["annotations"].is_array() && part["logprobs"].is_array(),
                "{case}: {part:#}"
            );
        }
    }
}

/// Checks a stream, and returns the response at its end.
fn check_stream(case: &str, stream: &str) -> Value {
    let mut events = Vec::new();
    let frames: Vec<&str> = stream.split("\n\n").filter(|frame| !frame.is_empty()).collect();
    let (end, frames) = frames.split_last().unwrap();
    assert_eq!(*end, "data: [DONE]", "{case}");
    for frame in frames.iter().filter(|frame| !frame.starts_with(':')) {
        let (name, data) = frame.split_once('\n').unwrap();
        let event: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(name.strip_prefix("event: "), event["type"].as_str(), "{case}");
        assert_eq!(event["sequence_number"], events.len(), "{case}: {event:#}");
        events.push(event);
    }
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types[..2], ["response.created", "response.in_progress"], "{case}");
    assert_eq!(types.last(), Some(&"response.completed"), "{case}");
    let of_type = |wanted: &str| -> Vec<&Value> {
        let items = events.iter().filter(|event| event["type"] == wanted);
        items.map(|event| &event["output_index"]).collect()
    };
    assert_eq!(
        of_type("response.output_item.added"),
        of_type("response.output_item.done"),
        "{case}: each item is added and done once, in order"
    );
    events.pop().unwrap()["response"].take()
}

/// Returns items without what differs from run to run.
fn shape(output: &Value) -> Vec<Value> {
    let items = output.as_array().unwrap().iter().cloned();
    items
        .map(|mut item| {
            let fields = item.as_object_mut().unwrap();
            fields.remove("id");
            fields.remove("call_id");
            item
        })
        .collect()
}
