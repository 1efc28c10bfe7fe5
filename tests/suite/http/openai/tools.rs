//! Tools of the caller, and approvals of calls of the agent's own tools.

use reqwest::Method;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::{FaceApp, assert_error, items, on_every_database, text};
use crate::support::answer::read;
use crate::support::members::{column, extended};
use crate::support::mock_model::tool_results;
use crate::support::test_app::{run_path, sse_data};

on_every_database! {
    a_call_of_the_caller_is_answered_by_its_output,
    every_open_call_needs_an_output,
    two_answers_to_one_response_are_two_branches,
    one_call_at_most_is_asked_of_the_model,
    a_whole_conversation_needs_no_base,
    a_response_that_is_not_stored_answers_a_stored_one,
    an_approval_lets_the_call_happen,
    an_approval_names_the_response_that_it_continues,
    a_call_of_a_deleted_response_can_be_approved,
    a_denial_reaches_the_model,
    a_message_to_a_conversation_denies_what_needs_an_approval,
    a_call_that_needs_an_approval_fails_a_response_that_is_not_stored,
}

pub(super) fn mine() -> Value {
    let parameters = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
    json!([{"type": "function", "name": "mine", "parameters": parameters, "strict": null}])
}

/// A response with a call of a tool of the caller.
async fn asked(app: &FaceApp, calls: Value) -> Value {
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
    let app = FaceApp::start(&database).await;
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
    let path = format!("/v1/responses/{}/input_items?order=asc", next["id"].as_str().unwrap());
    assert_eq!(app.get(&path).await["data"][0]["output"], "five", "as it was sent");
    let asked = app.last_request();
    assert_eq!(tool_results(&asked), ["five"]);
    // Tools are those of one request.
    assert_eq!(asked["tools"].as_array().unwrap().len(), 2);
    app.finish().await;
}

async fn every_open_call_needs_an_output(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
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
    let app = FaceApp::start(&database).await;
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

async fn one_call_at_most_is_asked_of_the_model(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    for (asked, passed_on) in [(json!(false), json!(false)), (json!(true), Value::Null)] {
        let more = json!({"parallel_tool_calls": asked});
        let response = app
            .response(&extended(json!({"input": "hi", "tools": mine()}), &more))
            .await;
        assert_eq!(response["parallel_tool_calls"], asked);
        assert_eq!(app.last_request()["parallel_tool_calls"], passed_on);
        let messages = json!({"messages": [{"role": "user", "content": "hi"}]});
        app.complete(&extended(messages, &more)).await.ok();
        assert_eq!(app.last_request()["parallel_tool_calls"], passed_on);
    }
    app.finish().await;
}

async fn a_whole_conversation_needs_no_base(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
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

async fn a_response_that_is_not_stored_answers_a_stored_one(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let first = asked(&app, json!([["c1", "mine", {}]])).await;
    let answer = json!({"input": [output("c1", &json!("five"))], "previous_response_id": first["id"]});
    let unstored = app.response(&extended(answer.clone(), &json!({"store": false}))).await;
    assert_eq!(text(&unstored), "read: five");
    app.until_idle().await;
    let id = unstored["id"].as_str().unwrap();
    let gone = app.try_get(&format!("/v1/responses/{id}")).await;
    assert_error(&gone, 404, "run_not_found", &Value::Null);
    // The call is open still.
    let run = app.get(&run_path(&first["agent_runtime"], "")).await;
    assert_eq!(run["status"], "waiting");
    assert_eq!(text(&app.response(&answer).await), "read: five");
    app.finish().await;
}

/// A response with a request for an approval of a call.
async fn asks_for_approval(app: &FaceApp) -> (Value, Value) {
    let first = asked(app, json!([["c1", "deploy", {"ms": 1}]])).await;
    let request = items(&first, "mcp_approval_request")[0].clone();
    assert_eq!(
        (&request["name"], &request["arguments"]),
        (&json!("deploy"), &json!(r#"{"ms":1}"#))
    );
    (first, request)
}

async fn an_approval_lets_the_call_happen(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let (first, request) = asks_for_approval(&app).await;
    assert_eq!(app.deploy.begun(), 0);
    let approval = json!({"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": true});
    let unknown = extended(approval.clone(), &json!({"approval_request_id": "mcpr_1"}));
    let answer = app.respond(&json!({"input": [unknown]})).await;
    assert_error(&answer, 400, "invalid_field", &json!("input[0].approval_request_id"));
    let next = app
        .response(&json!({"input": [approval], "previous_response_id": first["id"]}))
        .await;
    assert_eq!(text(&next), r#"read: {"ms":1}"#);
    assert_eq!((app.deploy.begun(), app.look.begun()), (1, 0));
    app.finish().await;
}

/// A client that stores the conversation sends all of it.
async fn an_approval_names_the_response_that_it_continues(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let (_, request) = asks_for_approval(&app).await;
    let question = json!({"role": "user", "content": json!([["c1", "deploy", {"ms": 1}]]).to_string()});
    let approval = json!({"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": true});
    let mut input = vec![question, request, approval];
    let next = app.response(&json!({"input": input})).await;
    assert_eq!(text(&next), r#"read: {"ms":1}"#);
    let asked = app.last_request();
    assert_eq!(
        column(&asked["messages"], "role"),
        ["system", "user", "assistant", "tool"]
    );
    // A client whose connection has broken repeats the request.
    assert_eq!(text(&app.response(&json!({"input": input})).await), text(&next));
    assert_eq!(app.deploy.begun(), 2);
    // The decision is history, once the model has gone on.
    input.extend(next["output"].as_array().unwrap().clone());
    input.push(json!({"role": "user", "content": "go on"}));
    let last = app.response(&json!({"input": input})).await;
    assert_eq!(text(&last), "echo: go on");
    let asked = app.last_request();
    assert_eq!(
        column(&asked["messages"], "role"),
        ["system", "user", "assistant", "tool", "assistant", "user"]
    );
    assert_eq!(app.deploy.begun(), 2);
    app.finish().await;
}

/// A response of a conversation with a call that waits for an approval.
async fn asks_in_conversation(app: &FaceApp, conversation: &Value) -> Value {
    let calls = json!([["c1", "deploy", {"ms": 1}]]).to_string();
    app.response(&json!({"input": calls, "conversation": conversation}))
        .await
}

async fn a_call_of_a_deleted_response_can_be_approved(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let conversation = app.conversation().await;
    let first = asks_in_conversation(&app, &conversation).await;
    let request = &items(&first, "mcp_approval_request")[0]["id"];
    let path = format!("/v1/responses/{}", first["id"].as_str().unwrap());
    read(app.request(Method::DELETE, &path)).await.ok();
    let approval = json!({"type": "mcp_approval_response", "approval_request_id": request, "approve": true});
    let next = app
        .response(&json!({"input": [approval], "conversation": conversation}))
        .await;
    assert_eq!(text(&next), r#"read: {"ms":1}"#);
    assert_eq!(app.deploy.begun(), 1);
    app.finish().await;
}

async fn a_denial_reaches_the_model(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
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

async fn a_message_to_a_conversation_denies_what_needs_an_approval(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let conversation = app.conversation().await;
    let first = asks_in_conversation(&app, &conversation).await;
    let branch = json!({"input": "go on", "previous_response_id": first["id"]});
    assert_error(&app.respond(&branch).await, 400, "invalid_answers", &json!("input"));
    let next = app
        .response(&json!({"input": "go on", "conversation": conversation}))
        .await;
    assert_eq!(text(&next), "echo: go on");
    assert_eq!(
        tool_results(&app.last_request()),
        ["The caller denied this call: The client has sent a message instead of a decision."]
    );
    assert_eq!(app.deploy.begun(), 0);
    app.finish().await;
}

async fn a_call_that_needs_an_approval_fails_a_response_that_is_not_stored(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let calls = json!([["c1", "deploy", {"ms": 1}]]).to_string();
    let body = json!({"input": calls, "store": false});
    assert_error(&app.respond(&body).await, 400, "answers_required", &Value::Null);
    let stream = app.respond(&extended(body, &json!({"stream": true}))).await.text();
    let events = sse_data(stream.strip_suffix("data: [DONE]\n\n").unwrap());
    let last = events.last().unwrap();
    assert_eq!(
        (&last["type"], &last["response"]["error"]["code"]),
        (&json!("response.failed"), &json!("answers_required"))
    );
    // Nothing asks the client for an approval that it could not give.
    assert!(items(&last["response"], "mcp_approval_request").is_empty(), "{last:#}");
    assert_eq!(app.deploy.begun(), 0);
    app.finish().await;
}
