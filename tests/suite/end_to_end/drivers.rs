//! Drivers chosen by a line of the agent's definition, over HTTP.

use serde_json::json;
use test_support::databases::TestDatabase;

use super::on_every_store;
use crate::support::members::{assert_members, column};
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::TestApp;

on_every_store!(
    a_session_is_continued_with_another_driver,
    a_script_needs_no_provider_and_is_checked_when_it_is_stored,
);

async fn a_session_is_continued_with_another_driver(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        let offered = request["tools"].is_array();
        match last_user_text(request).as_str() {
            "2^10?" if offered => Reply::call("c1", "calculator", &json!({"expression": "2^10"})),
            "2^10?" => Reply::text(
                r#"{"thought": "Let me see.", "action": {"tool": "calculator", "arguments": {"expression": "2^10"}}}"#,
            ),
            "Observation: 1024" => Reply::text(r#"{"answer": "1024."}"#),
            words => Reply::text(&format!("heard: {words}")),
        }
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let agent = |driver: &str| json!({"model": "mock/m", "tools": ["calculator"], "driver": driver});
    app.put_agent("plain", agent("react")).await;
    app.put_agent("calling", agent("tool_calling")).await;
    let first = app.run_with(json!({"agent": "plain", "input": "2^10?"})).await;
    assert_members!(first, {"status": "completed", "output_text": "1024."});
    let body = json!({"agent": "calling", "input": "Thanks", "base_session_id": first["session_id"]});
    let second = app.run_with(body).await;
    assert_eq!(second["output_text"], "heard: Thanks");

    let session = first["session_id"].as_str().unwrap();
    let stored = app.get(&format!("/v1/sessions/{session}/messages")).await;
    let roles = column(&stored["data"], "role");
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    let parts = column(&stored["data"][1]["content"], "type");
    assert_eq!(parts, ["text", "tool_call"]);
    app.finish().await;
}

async fn a_script_needs_no_provider_and_is_checked_when_it_is_stored(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let script = json!([
        {"tool_calls": [{"name": "calculator", "arguments": {"expression": "6*7"}}]},
        {"text": "42", "usage": {"total_tokens": 3}},
    ]);
    let agent = json!({"model": "demo/demo", "driver": "scripted", "tools": ["calculator"], "script": script});
    app.put_agent("played", agent).await;
    let result = app.run_with(json!({"agent": "played", "input": "go"})).await;
    assert_members!(result, {"output_text": "42", "usage/total_tokens": 3});
    for (agent, words) in [
        (json!({"model": "demo/demo", "driver": "scripted"}), "at least one step"),
        (
            json!({"model": "demo/demo", "script": [{"text": "x"}]}),
            "only the scripted driver",
        ),
        (
            json!({"model": "demo/demo", "driver": "scripted", "script": [{"text": "x"}, {}]}),
            "step 2: a step has text",
        ),
    ] {
        let answer = app.put("/v1/agents/bad", &agent).await;
        answer.assert_problem("invalid_field");
        assert!(answer.text().contains(words), "{}", answer.text());
    }
    assert!(mock.requests().is_empty());
    app.finish().await;
}
