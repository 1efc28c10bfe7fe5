//! The recorded traffic of responses, both ways: answers mean what they show, and go back as the
//! items that they were.

use agent::ports::{ModelRequest, ToolSpec};
use models::CapSettings;
use serde_json::{Value, json};
use test_support::wires::encode_request;
use values::message::{ContentPart, Message, Role, ToolCall};

use super::super::recordings::{Exchange, RESPONSES, exchanges};
use super::forms::plain_of_stream;
use super::support::{decode_with, encoded, settings};
use crate::support::{answered, made_by, message, request, result, user};

/// Returns the items of a recorded answer.
fn output(exchange: &Exchange) -> Vec<Value> {
    let recorded = &exchange.response;
    let body = if recorded.content_type.starts_with("text/event-stream") {
        plain_of_stream(&recorded.body)
    } else {
        recorded.body.clone()
    };
    let response: Value = serde_json::from_str(&body).unwrap();
    response["output"].as_array().unwrap().clone()
}

/// Drops what may differ: the ids and states of items that a stateless request names nowhere, and
/// what is only for reading.
fn meaning(item: &Value) -> Value {
    let mut item = item.clone();
    let fields = item.as_object_mut().unwrap();
    fields.remove("status");
    if fields.get("type").is_none_or(|kind| kind != "reasoning") {
        fields.remove("id");
    }
    if let Some(role) = fields.get("role").cloned() {
        fields.insert("type".to_owned(), json!("message"));
        let kind = if role == "assistant" {
            "output_text"
        } else {
            "input_text"
        };
        if let Some(text) = fields["content"].as_str().map(str::to_owned) {
            fields.insert("content".to_owned(), json!([{"type": kind, "text": text}]));
        }
        for part in fields["content"].as_array_mut().unwrap() {
            for name in ["annotations", "logprobs"] {
                part.as_object_mut().unwrap().remove(name);
            }
        }
    }
    item
}

fn meanings(items: &[Value]) -> Vec<Value> {
    items.iter().map(meaning).collect()
}

fn decoded(exchange: &Exchange) -> Message {
    let recorded = &exchange.response;
    let bytes = recorded.body.as_bytes();
    let (_, end) = decode_with(Some(&recorded.content_type), CapSettings::default(), &[bytes]);
    answered(&end.unwrap())
}

#[test]
fn recorded_answers_go_back_as_the_items_that_they_were() {
    for (label, exchange) in exchanges(&RESPONSES) {
        let history = request(vec![user("hi"), decoded(&exchange)]);
        let body = encoded(&history);
        let sent = body["input"].as_array().unwrap();
        let items = output(&exchange);
        assert_eq!(meanings(&sent[1..]), meanings(&items), "{label}");
        // Bytes, not only values: the text of the encrypted form is in the request as it came.
        let text = String::from_utf8(encode_request(&history, &settings("p"), true)).unwrap();
        let encrypted = items.iter().filter_map(|item| item.get("encrypted_content"));
        for encrypted in encrypted {
            assert!(text.contains(&format!("\"encrypted_content\":{encrypted}")), "{label}");
        }
        let other = encode_request(&history, &settings("other"), true);
        assert!(
            !String::from_utf8(other).unwrap().contains("encrypted_content\":"),
            "{label}"
        );
    }
}

/// Reads a recorded item as the message that it must have come from.
fn neutral(item: &Value) -> Message {
    let text = |name: &str| item[name].as_str().unwrap().to_owned();
    match item["type"].as_str() {
        Some("function_call") => message(
            Role::Assistant,
            vec![ContentPart::ToolCall(ToolCall {
                id: text("call_id"),
                name: text("name"),
                arguments: text("arguments"),
                signature: None,
            })],
        ),
        Some("function_call_output") => result(&text("call_id"), vec![ContentPart::text(text("output"))]),
        None if item["role"] == "user" => user(&text("content")),
        _ => panic!("{item}"),
    }
}

#[test]
fn recorded_requests_are_rebuilt_from_neutral_messages() {
    for (label, exchange) in exchanges(&RESPONSES) {
        let recorded = &exchange.request.body;
        let input = recorded["input"].as_array().unwrap();
        let tools = recorded["tools"].as_array().into_iter().flatten().map(|tool| ToolSpec {
            name: tool["name"].as_str().unwrap().to_owned(),
            description: tool["description"].as_str().unwrap().to_owned(),
            parameters: tool["parameters"].clone(),
            ..ToolSpec::default()
        });
        let model = recorded["model"].as_str().unwrap();
        let body = encoded(&ModelRequest {
            model: model.to_owned(),
            tools: tools.collect(),
            ..request(input.iter().map(|item| made_by(neutral(item), model)).collect())
        });
        assert_eq!(meanings(body["input"].as_array().unwrap()), meanings(input), "{label}");
        assert_eq!(body["model"], recorded["model"], "{label}");
        assert_eq!(
            (&body["store"], body.get("previous_response_id")),
            (&json!(false), None)
        );
        let sent = body["tools"].as_array().map_or(&[][..], Vec::as_slice);
        let wanted = recorded["tools"].as_array().map_or(&[][..], Vec::as_slice);
        assert_eq!(sent.len(), wanted.len(), "{label}");
        for (sent, wanted) in sent.iter().zip(wanted) {
            let mut wanted = wanted.clone();
            // The recorded client rewrote its schemas into strict ones; ours go out as they are.
            wanted["strict"] = json!(false);
            assert_eq!(sent, &wanted, "{label}");
        }
    }
}

/// The recorded client went on with what it had decoded; so do we, and must send the same.
#[test]
fn a_recorded_conversation_is_replayed() {
    let exchanges = exchanges(&RESPONSES);
    let mut compared = 0;
    for pair in exchanges.windows(2) {
        let [(label, first), (next, second)] = pair else {
            unreachable!()
        };
        if label.split('#').next() != next.split('#').next() {
            continue;
        }
        // That client called a call by the name of its item, which stateless requests do not know.
        let mut wanted = second.request.body["input"].to_string();
        for item in output(first) {
            if let (Some(id), Some(call_id)) = (item["id"].as_str(), item["call_id"].as_str()) {
                wanted = wanted.replace(id, call_id);
            }
        }
        let wanted: Vec<Value> = serde_json::from_str(&wanted).unwrap();
        let earlier = first.request.body["input"].as_array().unwrap();
        let mut history: Vec<_> = earlier.iter().map(neutral).collect();
        history.push(decoded(first));
        history.extend(wanted[earlier.len() + output(first).len()..].iter().map(neutral));
        let body = encoded(&request(history));
        assert_eq!(meanings(body["input"].as_array().unwrap()), meanings(&wanted), "{next}");
        compared += 1;
    }
    assert!(compared > 0, "no recording has a second turn");
}
