//! Chat Completions: whole and in chunks, with tools of the caller, on a thread.

use reqwest::Method;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::{FaceApp, assert_error, on_every_database};
use crate::support::answer::{read, with_json};
use crate::support::members::extended;
use crate::support::mock_model::{texts, tool_results};
use crate::support::test_app::sse_data;

on_every_database! {
    a_conversation_is_completed_and_not_stored,
    chunks_add_up_to_the_completion,
    words_before_a_call_of_the_agent_are_a_paragraph,
    a_repeated_request_gets_the_same_words,
    a_failed_run_is_an_error_in_its_stream,
    calls_of_the_caller_are_completed_by_their_results,
    a_thread_has_what_the_client_sends_again,
    a_thread_goes_on_after_a_call_that_needs_an_approval,
    parameters_reach_the_model,
    unsupported_fields_are_refused,
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// The data of a stream of chunks, which ends with `[DONE]`.
async fn chunks(app: &FaceApp, more: &Value) -> Vec<Value> {
    let text = app.complete(more).await.text();
    let text = text
        .strip_suffix("data: [DONE]\n\n")
        .unwrap_or_else(|| panic!("{text}"));
    sse_data(text)
}

/// The text of chunks.
fn content(chunks: &[Value]) -> String {
    let deltas = chunks.iter().map(|chunk| &chunk["choices"][0]["delta"]["content"]);
    deltas.filter_map(Value::as_str).collect()
}

async fn a_conversation_is_completed_and_not_stored(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let calls = json!([["c1", "look", {"ms": 1}]]).to_string();
    let messages = json!([{"role": "system", "content": ""}, user("one"), {"role": "assistant", "content": "first"}, user(&calls)]);
    let completion = app.complete(&json!({"messages": messages})).await.ok();
    let choice = &completion["choices"][0];
    // The agent's own calls are hidden.
    let message = json!({"role": "assistant", "content": r#"read: {"ms":1}"#, "refusal": null});
    assert_eq!(
        (&choice["message"], &choice["finish_reason"]),
        (&message, &json!("stop"))
    );
    assert_eq!(
        (&completion["object"], &completion["model"]),
        (&json!("chat.completion"), &json!("own"))
    );
    app.until_idle().await;
    assert_eq!(app.get("/v1/sessions").await["data"], json!([]));
    app.finish().await;
}

async fn chunks_add_up_to_the_completion(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let body = json!({"messages": [user("hi")], "stream": true, "stream_options": {"include_usage": true}});
    let chunks = chunks(&app, &body).await;
    assert_eq!(chunks[0]["choices"][0]["delta"], json!({"role": "assistant"}));
    assert_eq!(content(&chunks), "echo: hi");
    let reasons: Vec<_> = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["finish_reason"].as_str())
        .collect();
    assert_eq!(reasons, ["stop"]);
    let last = chunks.last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert!(last["usage"]["total_tokens"].is_u64(), "{last}");
    assert!(chunks.iter().all(|chunk| chunk["id"] == chunks[0]["id"]));
    app.finish().await;
}

async fn words_before_a_call_of_the_agent_are_a_paragraph(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let expected = "Let me see.\n\nread: {\"ms\":1}";
    let completion = app.complete(&json!({"messages": [user("narrate")]})).await.ok();
    assert_eq!(completion["choices"][0]["message"]["content"], expected);
    let chunks = chunks(&app, &json!({"messages": [user("narrate")], "stream": true})).await;
    assert_eq!(content(&chunks), expected);
    app.finish().await;
}

async fn a_repeated_request_gets_the_same_words(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let body = json!({"model": "own", "messages": [user("narrate")], "stream": true});
    for replayed in ["", "true"] {
        let request = app.request(Method::POST, "/v1/chat/completions");
        let answer = read(with_json(request.header("idempotency-key", "k"), &body)).await;
        assert_eq!(answer.header("idempotency-replayed"), replayed);
        let text = answer.text();
        let chunks = sse_data(text.strip_suffix("data: [DONE]\n\n").unwrap());
        assert_eq!(content(&chunks), "Let me see.\n\nread: {\"ms\":1}");
        app.until_idle().await;
    }
    app.finish().await;
}

async fn a_failed_run_is_an_error_in_its_stream(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let chunks = chunks(&app, &json!({"messages": [user("overloaded")], "stream": true})).await;
    let [_, error] = &chunks[..] else { panic!("{chunks:#?}") };
    assert_eq!(error["error"]["code"], "rate_limit_exceeded", "{error}");
    for field in ["message", "type", "param"] {
        assert!(error["error"].get(field).is_some(), "{field}");
    }
    app.finish().await;
}

async fn calls_of_the_caller_are_completed_by_their_results(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let tools = json!([{"type": "function", "function": {"name": "mine", "parameters": {"type": "object"}}}]);
    let question = user(&json!([["c1", "mine", {"x": 1}]]).to_string());
    let completion = app
        .complete(&json!({"messages": [question], "tools": tools}))
        .await
        .ok();
    let choice = &completion["choices"][0];
    assert_eq!(
        (&choice["finish_reason"], &choice["message"]["content"]),
        (&json!("tool_calls"), &Value::Null)
    );
    let call = json!({"id": "c1", "type": "function", "function": {"name": "mine", "arguments": r#"{"x":1}"#}});
    assert_eq!(choice["message"]["tool_calls"], json!([call]));
    let result = json!({"role": "tool", "tool_call_id": "c1", "content": "five"});
    let messages = json!([question, choice["message"], result]);
    let completion = app.complete(&json!({"messages": messages, "tools": tools})).await.ok();
    assert_eq!(completion["choices"][0]["message"]["content"], "read: five");
    app.finish().await;
}

async fn a_thread_has_what_the_client_sends_again(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let complete = async |messages: Value| {
        let request = app
            .request(Method::POST, "/v1/chat/completions")
            .header("x-agent-thread", "t");
        let body = json!({"model": "own", "messages": messages});
        read(with_json(request, &body)).await.ok()
    };
    complete(json!([user("one")])).await;
    let answer = json!({"role": "assistant", "content": "as the client has it"});
    complete(json!([user("one"), answer, user("two")])).await;
    let asked = app.last_request();
    assert_eq!(texts(&asked["messages"]), ["You are A.", "one", "echo: one", "two"]);
    assert_eq!(app.get("/v1/threads/t").await["run_count"], 2);
    app.finish().await;
}

async fn a_thread_goes_on_after_a_call_that_needs_an_approval(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let calls = user(&json!([["c1", "deploy", {"ms": 1}]]).to_string());
    let thread = json!({"metadata": {"thread": "t"}});
    for more in [json!({}), thread.clone()] {
        let answer = app.complete(&extended(json!({"messages": [calls]}), &more)).await;
        assert_error(&answer, 400, "answers_required", &Value::Null);
    }
    let messages = json!({"messages": [calls, user("go on")]});
    let completion = app.complete(&extended(messages, &thread)).await.ok();
    assert_eq!(completion["choices"][0]["message"]["content"], "echo: go on");
    assert_eq!(
        tool_results(&app.last_request()),
        ["The caller denied this call: The client has sent a message instead of a decision."]
    );
    assert_eq!(app.deploy.begun(), 0);
    app.finish().await;
}

async fn parameters_reach_the_model(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    app.complete(&json!({
        "messages": [{"role": "developer", "content": "Be brief."}, user("hi")],
        "temperature": 0.5, "max_completion_tokens": 99, "stop": "END", "seed": 7, "n": 1, "logprobs": false,
    }))
    .await
    .ok();
    let asked = app.last_request();
    assert_eq!((&asked["temperature"], &asked["stop"]), (&json!(0.5), &json!(["END"])));
    assert_eq!(texts(&asked["messages"]), ["You are A.", "Be brief.", "hi"]);
    app.finish().await;
}

async fn unsupported_fields_are_refused(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    for (field, value) in [
        ("n", json!(2)),
        ("logprobs", json!(true)),
        ("functions", json!([{"name": "f"}])),
        ("logit_bias", json!({"1": 2})),
        ("modalities", json!(["audio"])),
    ] {
        let mut body = json!({"messages": [user("hi")]});
        body[field] = value;
        assert_error(&app.complete(&body).await, 400, "unsupported_parameter", &json!(field));
    }
    let answer = app.complete(&json!({})).await;
    assert_error(&answer, 400, "missing_required_parameter", &json!("messages"));
    app.finish().await;
}
