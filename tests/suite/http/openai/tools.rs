//! Tools of the caller, and approvals of calls of the agent's own tools.

use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::{OpenAiApp, assert_error, items, on_every_database, text};
use crate::support::mock_model::tool_results;

on_every_database! {
    a_call_of_the_caller_is_answered_by_its_output,
    every_open_call_needs_an_output,
    two_answers_to_one_response_are_two_branches,
    a_whole_conversation_needs_no_base,
    an_approval_lets_the_call_happen,
    a_denial_reaches_the_model,
}

fn mine() -> Value {
    let parameters = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
    json!([{"type": "function", "name": "mine", "parameters": parameters, "strict": null}])
}

/// A response with a call of a tool of the caller.
async fn asked(app: &OpenAiApp, calls: Value) -> Value {
    let response = app
        .response(&json!({"input": calls.to_string(), "tools": mine()}))
        .await;
    assert_eq!(response["status"], "completed");
    response
}

fn output(call_id: &str, output: &Value) -> Value {
    json!({"type": "function_call_output", "call_id": call_id, "output": output})
}

async fn a_call_of_the_caller_is_answered_by_its_output(database: TestDatabase) {
    let app = OpenAiApp::start(&database).await;
    let first = asked(&app, json!([["c1", "mine", {"x": 1}]])).await;
    let calls = items(&first, "function_call");
    assert_eq!(
        (&calls[0]["call_id"], &calls[0]["name"]),
        (&json!("c1"), &json!("mine"))
    );
    assert_eq!(calls[0]["arguments"], r#"{"x":1}"#);
    // A client may send the call again with its output.
    let input = json!([calls[0], output("c1", &json!("five")), {"role": "user", "content": "go on"}]);
    let next = app
        .response(&json!({"input": input, "previous_response_id": first["id"]}))
        .await;
    assert_eq!(text(&next), "echo: go on");
    let asked = app.last_request();
    assert_eq!(tool_results(&asked), ["five"]);
    // Tools are those of one request.
    assert_eq!(asked["tools"].as_array().unwrap().len(), 2);
    app.finish().await;
}

async fn every_open_call_needs_an_output(database: TestDatabase) {
    let app = OpenAiApp::start(&database).await;
    let first = asked(&app, json!([["c1", "mine", {}], ["c2", "mine", {}]])).await;
    for (input, words) in [
        (json!("hi"), "No tool output found for function call c1."),
        (
            json!([output("c1", &json!("a"))]),
            "No tool output found for function call c2.",
        ),
        (
            json!([
                output("c1", &json!("a")),
                output("c2", &json!("b")),
                output("c3", &json!("c"))
            ]),
            "No tool call found for function call output with call_id c3.",
        ),
        (
            json!([
                output("c1", &json!("a")),
                output("c2", &json!("b")),
                output("c1", &json!("c"))
            ]),
            "There is another output for the call c1.",
        ),
    ] {
        let answer = app
            .respond(&json!({"input": input, "previous_response_id": first["id"]}))
            .await;
        assert_eq!(answer.status, 400);
        let message = answer.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains(words), "{message}");
    }
    let input = json!([
        output("c2", &json!("b")),
        output("c1", &json!([{"type": "input_text", "text": "a"}]))
    ]);
    let next = app
        .response(&json!({"input": input, "previous_response_id": first["id"]}))
        .await;
    assert_eq!(text(&next), "read: a | b");
    app.finish().await;
}

async fn two_answers_to_one_response_are_two_branches(database: TestDatabase) {
    let app = OpenAiApp::start(&database).await;
    let first = asked(&app, json!([["c1", "mine", {}]])).await;
    for said in ["a", "b"] {
        let input = json!([output("c1", &json!(said))]);
        let next = app
            .response(&json!({"input": input, "previous_response_id": first["id"]}))
            .await;
        assert_eq!(text(&next), format!("read: {said}"));
    }
    app.finish().await;
}

async fn a_whole_conversation_needs_no_base(database: TestDatabase) {
    let app = OpenAiApp::start(&database).await;
    let input = json!([
        {"role": "user", "content": "q"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"},
        {"type": "function_call", "call_id": "c1", "name": "mine", "arguments": "{}", "status": "completed"},
        output("c1", &json!("r")),
    ]);
    let response = app.response(&json!({"input": input, "store": false})).await;
    assert_eq!(text(&response), "read: r");
    app.finish().await;
}

/// A response with a request for an approval of a call.
async fn asks_for_approval(app: &OpenAiApp) -> (Value, Value) {
    let first = asked(app, json!([["c1", "deploy", {"ms": 1}]])).await;
    let request = items(&first, "mcp_approval_request")[0].clone();
    assert_eq!(
        (&request["name"], &request["arguments"]),
        (&json!("deploy"), &json!(r#"{"ms":1}"#))
    );
    (first, request)
}

async fn an_approval_lets_the_call_happen(database: TestDatabase) {
    let app = OpenAiApp::start(&database).await;
    let (first, request) = asks_for_approval(&app).await;
    assert_eq!(app.deploy.begun(), 0);
    let approval = json!({"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": true});
    let answer = app.respond(&json!({"input": [approval]})).await;
    assert_error(&answer, 400, "invalid_field", &json!("input[0].approval_request_id"));
    let next = app
        .response(&json!({"input": [approval], "previous_response_id": first["id"]}))
        .await;
    assert_eq!(text(&next), r#"read: {"ms":1}"#);
    assert_eq!((app.deploy.begun(), app.look.begun()), (1, 0));
    app.finish().await;
}

async fn a_denial_reaches_the_model(database: TestDatabase) {
    let app = OpenAiApp::start(&database).await;
    let (first, request) = asks_for_approval(&app).await;
    let denial = json!({
        "type": "mcp_approval_response", "approval_request_id": request["id"], "approve": false, "reason": "not today",
    });
    let next = app
        .response(&json!({"input": [denial], "previous_response_id": first["id"]}))
        .await;
    assert!(text(&next).contains("not today"), "{next:#}");
    assert_eq!(app.deploy.begun(), 0);
    app.finish().await;
}
