//! The calls of an agent in its output: those of its own tools, and no others. Each response is the
//! same when it is created, streamed, retrieved and listed.

use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::tools::mine;
use super::{FaceApp, items, on_every_database, text};
use crate::support::members::{assert_members, column, extended};
use crate::support::mock_model::tool_results;
use crate::support::test_app::sse_data;

on_every_database! {
    a_call_of_nobody_is_not_shown_and_broken_arguments_are_none,
    executed_calls_are_shown_beside_open_ones,
    words_beside_calls_are_not_shown_if_the_output_is_json,
    an_approved_call_of_a_conversation_names_its_request,
}

/// The events of a streamed response.
async fn streamed(app: &FaceApp, body: &Value) -> Vec<Value> {
    let stream = app
        .respond(&extended(body.clone(), &json!({"stream": true})))
        .await
        .text();
    let events = stream.strip_suffix("data: [DONE]\n\n");
    sse_data(events.unwrap_or_else(|| panic!("{stream}")))
}

fn types(response: &Value) -> Vec<&Value> {
    column(&response["output"], "type")
}

/// Asks for a response twice. Returns the first one, once the second one, which is streamed, and
/// what is retrieved have the same items.
async fn shown(app: &FaceApp, body: &Value) -> Value {
    let response = app.response(body).await;
    let path = format!("/v1/responses/{}", response["id"].as_str().unwrap());
    assert_eq!(app.get(&path).await, response);
    let events = streamed(app, body).await;
    assert_eq!(types(&events[events.len() - 1]["response"]), types(&response));
    let added = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.added");
    let added: Vec<_> = added.map(|event| &event["item"]["type"]).collect();
    assert_eq!(added, types(&response));
    response
}

/// The items of a conversation, oldest first.
async fn listed(app: &FaceApp, conversation: &Value) -> Value {
    let path = format!("/v1/conversations/{}/items?order=asc", conversation.as_str().unwrap());
    app.get(&path).await["data"].clone()
}

async fn a_call_of_nobody_is_not_shown_and_broken_arguments_are_none(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let response = shown(&app, &json!({"input": "stammer", "tools": mine()})).await;
    assert_eq!(types(&response), ["mcp_call", "message"]);
    let call = &response["output"][0];
    assert_members!(call, {"name": "look", "arguments": "{}", "output": null, "status": "failed"});
    // The model reads why each call was refused.
    assert_eq!(tool_results(&app.last_request()).len(), 3);
    assert_eq!(app.look.begun(), 0);
    app.finish().await;
}

async fn executed_calls_are_shown_beside_open_ones(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let calls = json!([["c1", "look", {"ms": 1}], ["c2", "mine", {"x": 1}]]).to_string();
    let body = json!({"input": calls, "tools": mine()});
    let response = shown(&app, &body).await;
    assert_eq!(types(&response), ["mcp_call", "function_call"]);
    let said = |text: &str| json!({"role": "user", "content": text});
    let reference = json!({"type": "item_reference", "id": response["output"][0]["id"]});
    app.response(&json!({"input": [said("one"), reference, said("two")]}))
        .await;
    assert_eq!(tool_results(&app.last_request()), [r#"{"ms":1}"#]);
    let conversation = app.conversation().await;
    let response = app
        .response(&extended(body, &json!({"conversation": conversation})))
        .await;
    let listed = listed(&app, &conversation).await;
    assert_eq!(&listed.as_array().unwrap()[1..], response["output"].as_array().unwrap());
    app.finish().await;
}

async fn words_beside_calls_are_not_shown_if_the_output_is_json(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let format = json!({"type": "json_schema", "name": "shape", "schema": schema});
    let body = json!({"input": "narrate", "text": {"format": format}});
    let response = shown(&app, &body).await;
    assert_eq!(types(&response), ["mcp_call", "message"]);
    assert_eq!(text(&response), r#"{"a": 1}"#);
    let conversation = app.conversation().await;
    app.response(&extended(body, &json!({"conversation": conversation})))
        .await;
    let listed = listed(&app, &conversation).await;
    assert_eq!(column(&listed, "type"), ["message", "mcp_call", "message"]);
    app.finish().await;
}

async fn an_approved_call_of_a_conversation_names_its_request(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let calls = json!([["c1", "deploy", {"ms": 1}]]).to_string();
    for streams in [false, true] {
        let conversation = app.conversation().await;
        let asked = app
            .response(&json!({"input": calls, "conversation": conversation}))
            .await;
        let request = &asked["output"][0]["id"];
        let approval = json!({"type": "mcp_approval_response", "approval_request_id": request, "approve": true});
        let body = json!({"input": [approval], "conversation": conversation});
        let next = if streams {
            let events = streamed(&app, &body).await;
            events[events.len() - 1]["response"].clone()
        } else {
            app.response(&body).await
        };
        app.until_idle().await;
        let path = format!("/v1/responses/{}", next["id"].as_str().unwrap());
        assert_eq!(app.get(&path).await, next);
        let call = items(&next, "mcp_call")[0];
        assert_eq!(call["approval_request_id"], *request);
        assert!(listed(&app, &conversation).await.as_array().unwrap().contains(call));
    }
    app.finish().await;
}
