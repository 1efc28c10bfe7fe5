//! Clients that store the conversation themselves, and send the output of a response back.

use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::{FaceApp, on_every_database};
use crate::support::members::{column, extended};
use crate::support::test_app::sse_data;

on_every_database! {
    a_client_that_stores_the_conversation_sends_the_reasoning_back,
    references_bring_the_reasoning_back,
    chat_clients_get_the_arguments_of_the_model,
}

fn mine() -> Value {
    json!([{"type": "function", "name": "mine", "parameters": {"type": "object"}}])
}

fn output() -> Value {
    json!({"type": "function_call_output", "call_id": "c1", "output": "five"})
}

/// The items of a stream, as clients collect them.
fn streamed_items(stream: &str) -> Vec<Value> {
    let events = sse_data(stream.strip_suffix("data: [DONE]\n\n").unwrap());
    let mut items = Vec::new();
    for event in &events {
        match event["type"].as_str().unwrap() {
            "response.output_item.added" => assert_eq!(event["output_index"], items.len(), "{event}"),
            "response.output_item.done" => items.push(event["item"].clone()),
            _ => (),
        }
    }
    assert_eq!(events[events.len() - 1]["response"]["output"], json!(items));
    items
}

async fn a_client_that_stores_the_conversation_sends_the_reasoning_back(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let tools = json!({"tools": mine()});
    let first = app.response(&extended(json!({"input": "ponder"}), &tools)).await;
    assert_eq!(column(&first["output"], "encrypted_content"), [&Value::Null; 3]);
    let next = json!({"input": [output()], "previous_response_id": first["id"]});
    app.response(&extended(next, &tools)).await;
    let expected = app.last_request()["messages"].clone();
    assert_eq!(expected[2]["reasoning_content"], "hm");

    let more = json!({"tools": mine(), "store": false, "include": ["reasoning.encrypted_content"]});
    let question = json!({"role": "user", "content": "ponder"});
    let streams = extended(json!({"input": [question], "stream": true}), &more);
    let items = streamed_items(&app.respond(&streams).await.text());
    assert_eq!(column(&json!(items), "type"), ["reasoning", "message", "function_call"]);
    assert_eq!(items[0]["summary"][0]["text"], "hm");
    assert!(items[0]["encrypted_content"].is_string());
    assert_eq!(items[2]["arguments"], r#"{"x": 1}"#, "as the model wrote them");
    let input = [&[question][..], &items[..], &[output()][..]].concat();
    app.response(&extended(json!({"input": input}), &more)).await;
    assert_eq!(
        app.last_request()["messages"],
        expected,
        "to the byte as if it were stored"
    );
    app.finish().await;
}

/// The messages of a request without the ids of calls. An executed call has another one if it is
/// named as an item.
fn without_call_ids(request: &Value) -> Value {
    let mut messages = request["messages"].clone();
    for message in messages.as_array_mut().unwrap() {
        let message = message.as_object_mut().unwrap();
        message.remove("tool_call_id");
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            call["id"] = Value::Null;
        }
    }
    messages
}

async fn references_bring_the_reasoning_back(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let tools = json!({"tools": mine()});
    let user = |text: &str| json!({"role": "user", "content": text});
    for (question, next) in [("ponder", output()), ("muse", user("next"))] {
        let first = app.response(&extended(json!({"input": question}), &tools)).await;
        let more = json!({"input": [next], "previous_response_id": first["id"]});
        app.response(&extended(more, &tools)).await;
        let expected = app.last_request();
        assert_eq!(expected["messages"][2]["reasoning_content"], "hm");
        let items = first["output"].as_array().unwrap().iter();
        let references = items.map(|item| json!({"type": "item_reference", "id": item["id"]}));
        let references: Vec<_> = references.collect();
        let input = [&[user(question)][..], &references[..], &[next][..]].concat();
        app.response(&extended(json!({"input": input}), &tools)).await;
        assert_eq!(without_call_ids(&app.last_request()), without_call_ids(&expected));
    }
    app.finish().await;
}

async fn chat_clients_get_the_arguments_of_the_model(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let function = json!({"name": "mine", "parameters": {"type": "object"}});
    let messages = json!([{"role": "user", "content": "ponder"}]);
    let body = json!({"messages": messages, "tools": [{"type": "function", "function": function}]});
    let completion = app.complete(&body).await.ok();
    let call = &completion["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(call["function"]["arguments"], r#"{"x": 1}"#);
    app.finish().await;
}
