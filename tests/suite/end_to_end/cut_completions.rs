//! Completions that are not whole, through the whole service: what is not executed, what nobody is
//! asked, and what the run says.

use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::TestApp;

on_every_store!(
    the_run_says_why_its_last_completion_ended,
    calls_that_were_cut_are_neither_executed_nor_left_open,
    a_completion_that_contradicts_its_end_is_retried,
    a_call_without_its_end_is_not_executed,
);

fn chunk(delta: &Value, finish_reason: Option<&str>) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})
}

fn has_results(request: &Value) -> bool {
    let messages = request["messages"].as_array().unwrap();
    messages.iter().any(|message| message["role"] == "tool")
}

async fn the_run_says_why_its_last_completion_ended(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        let reason = last_user_text(request);
        Reply::Events(vec![
            chunk(&json!({"content": "So far"}), None),
            chunk(&json!({}), Some(&reason)),
        ])
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    for (word, reason) in [
        ("stop", "stop"),
        ("model_length", "length"),
        ("content_filter", "content_filter"),
    ] {
        let run = app.run_with(json!({"model": "mock/m", "input": word})).await;
        assert_members!(run, {"status": "completed", "output_text": "So far", "finish_reason": reason});
        let id = run["run_id"].as_str().unwrap();
        app.until_stored(id).await;
        assert_eq!(app.get(&format!("/v1/runs/{id}")).await["finish_reason"], reason);
        let steps = app.get(&format!("/v1/runs/{id}/steps")).await;
        assert_eq!(steps["data"][0]["finish_reason"], reason);
        let events = app.stream(json!({"model": "mock/m", "input": word})).await;
        assert_eq!(events.last().unwrap()["data"]["finish_reason"], reason);
    }
    let run = app.run_with(json!({"model": "mock/m", "input": "error"})).await;
    assert_members!(run, {"status": "failed", "error/code": "model_server_error", "finish_reason": "interrupted"});
    app.finish().await;
}

async fn calls_that_were_cut_are_neither_executed_nor_left_open(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        if has_results(request) {
            return Reply::text("I stop here.");
        }
        let call = |index: u64, name: &str| {
            let function = json!({"name": name, "arguments": ""});
            json!({"index": index, "id": format!("c{index}"), "function": function})
        };
        let calls = json!({"tool_calls": [call(0, "variables_set"), call(1, "ask"), call(2, "calculator")]});
        Reply::Events(vec![chunk(&calls, None), chunk(&json!({}), Some("length"))])
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let agent = json!({
        "model": "mock/m", "tools": ["variables_set", "calculator"], "client_tools": [{"name": "ask"}],
        "approvals": [{"tools": ["calculator"], "approval": "always"}],
    });
    app.put_agent("careful", agent).await;
    let run = app.run_with(json!({"agent": "careful", "input": "go"})).await;
    assert_members!(run, {"status": "completed", "output_text": "I stop here.", "finish_reason": "stop"});
    let requests = mock.requests();
    let results = requests[1]["messages"].as_array().unwrap().iter();
    let results: Vec<_> = results.filter(|message| message["role"] == "tool").collect();
    assert_eq!(results.len(), 3);
    for result in results {
        let text = result["content"].to_string();
        assert!(text.contains("the limit of output tokens cut it"), "{text}");
    }
    app.finish().await;
}

async fn a_completion_that_contradicts_its_end_is_retried(database: TestDatabase) {
    let attempts = std::sync::atomic::AtomicUsize::new(0);
    let mock = MockModel::start(move |_| {
        let broken = [
            vec![chunk(&json!({}), Some("tool_calls"))],
            vec![chunk(&json!({"content": ""}), Some("stop"))],
            vec![chunk(&json!({}), Some("insufficient_system_resource"))],
        ];
        let attempt = attempts.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        match broken.into_iter().nth(attempt % 4) {
            Some(events) => Reply::Events(events),
            None => Reply::text("here"),
        }
    });
    let mock = mock.await;
    let retries = [("models.max_retries", "3"), ("models.retry_base_delay", "1ms")];
    let app = TestApp::start(database.url(), &mock, &retries).await;
    let run = app.run_with(json!({"model": "mock/m", "input": "go"})).await;
    assert_eq!(
        (&run["status"], &run["output_text"], mock.asked()),
        (&json!("completed"), &json!("here"), 4),
        "{run:#}"
    );
    app.finish().await;
}

async fn a_call_without_its_end_is_not_executed(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        if has_results(request) {
            return Reply::text("done");
        }
        let function = json!({"name": "variables_set", "arguments": ""});
        let calls = json!({"tool_calls": [{"index": 0, "id": "c", "function": function}]});
        Reply::Events(vec![chunk(&json!({"content": "Let me"}), None), chunk(&calls, None)])
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("careful", json!({"model": "mock/m", "tools": ["variables_set"]}))
        .await;
    let run = app.run_with(json!({"agent": "careful", "input": "go"})).await;
    assert_eq!(
        (&run["status"], &run["error"]["code"], mock.asked()),
        (&json!("failed"), &json!("model_answer_truncated"), 1),
        "{run:#}"
    );
    app.finish().await;
}
