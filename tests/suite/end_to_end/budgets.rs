//! Budgets: a run ends before it costs more than it may, keeps what it has and says why.

use std::sync::Arc;

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;

use super::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, content_text};
use crate::support::test_app::{TestApp, session_path};

on_every_store!(
    steps_are_limited,
    tokens_are_limited,
    a_conversation_that_does_not_fit_is_not_sent,
    a_ceiling_of_cost_is_no_less_for_a_long_input,
    the_time_limit_cuts_a_response_and_its_beginning_stays,
    cost_needs_a_price_and_is_limited
);

/// A model that never has enough of its calculator.
fn insatiable(request: &serde_json::Value) -> Reply {
    let id = format!("c{}", request["messages"].as_array().unwrap().len());
    Reply::call(&id, "calculator", &json!({"expression": "1+1"}))
}

async fn steps_are_limited(database: TestDatabase) {
    let mock = MockModel::start(insatiable).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent(
        "calc",
        json!({"model": "mock/m", "tools": ["calculator"], "budget": {"max_steps": 3}}),
    )
    .await;
    let result = app
        .run_with(json!({"agent": "calc", "input": "go", "budget": {"max_steps": 100}}))
        .await;
    assert_members!(result, {"status": "stopped", "stop_reason": "steps_limit_reached", "step_count": 3});
    assert_eq!(mock.asked(), 3);

    // The stopped session is committed, and can be continued: every call in it has its result.
    let next = app
        .run_with(json!({"base_session_id": result["session_id"], "input": "on", "budget": {"max_steps": 1}}))
        .await;
    assert_eq!(next["stop_reason"], "steps_limit_reached");
    app.finish().await;
}

async fn tokens_are_limited(database: TestDatabase) {
    let mock = MockModel::start(insatiable).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("calc", json!({"model": "mock/m", "tools": ["calculator"]}))
        .await;
    let result = app
        .run_with(json!({"agent": "calc", "input": "go", "budget": {"max_tokens": 80}}))
        .await;
    assert_members!(result, {"status": "stopped", "stop_reason": "token_limit_reached", "usage/total_tokens": 45});
    let limits: Vec<_> = mock
        .requests()
        .iter()
        .map(|request| {
            request["max_tokens"]
                .as_u64()
                .or(request["max_completion_tokens"].as_u64())
                .unwrap()
        })
        .collect();
    // The tool and the first message take 36 tokens at least, and each step 4 more.
    assert_eq!(limits, [44, 25, 6], "what is left bounds each request");
    app.finish().await;
}

async fn a_conversation_that_does_not_fit_is_not_sent(database: TestDatabase) {
    let mock = MockModel::start(|_| Reply::text(&"Paris is the capital of France. ".repeat(150))).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let first = app.run_with(json!({"agent": "echo", "input": "Tell me all."})).await;
    for (most, status, signal) in [
        (100, "stopped", json!("max_tokens is 100")),
        (10_000, "completed", json!(null)),
    ] {
        let body = json!({"base_session_id": first["session_id"], "input": "More.", "budget": {"max_tokens": most}});
        let asked = mock.asked();
        let result = app.run_with(body).await;
        assert_eq!(result["status"], status, "{result:#}");
        assert_eq!(mock.asked() - asked, usize::from(status == "completed"));
        if signal.is_null() {
            assert_eq!(result["stop_signal"], signal);
            continue;
        }
        assert_members!(result, {"stop_reason": "token_limit_reached", "usage/total_tokens": 0});
        let message = result["stop_signal"]["message"].as_str().unwrap();
        assert!(message.ends_with(signal.as_str().unwrap()), "{message}");
        // Nothing of the conversation is lost.
        let next = app.run_with(json!({"base_session_id": result["session_id"], "input": "Go on."}));
        assert_eq!(next.await["status"], "completed");
    }
    app.finish().await;
}

async fn a_ceiling_of_cost_is_no_less_for_a_long_input(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let settings = [
        ("limits.each_tenant.max_cost", "0.001"),
        ("prices.'mock/m'.input", "1.0"),
        ("prices.'mock/m'.output", "4.0"),
    ];
    let app = TestApp::start_bare(database.url(), &mock, &settings).await;
    app.put_agent("plain", json!({"model": "mock/m"})).await;
    let result = app
        .run_with(json!({"agent": "plain", "input": "What is it? ".repeat(40_000)}))
        .await;
    assert_members!(result, {"status": "stopped", "stop_reason": "token_limit_reached"});
    assert_eq!((mock.asked(), &result["usage"]["cost"]), (0, &json!(0.0)));
    app.finish().await;
}

async fn the_time_limit_cuts_a_response_and_its_beginning_stays(database: TestDatabase) {
    let gate = Gate::new();
    let pieces = (0..3).map(|n| format!("{n} ")).collect::<Vec<_>>();
    let mock = MockModel::start(move |_| Reply::HeldAtEnd(Arc::clone(&gate), pieces.clone())).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let result = app
        .run_with(json!({"agent": "echo", "input": "count", "budget": {"max_seconds": 3}}))
        .await;
    assert_members!(result, {"status": "stopped", "stop_reason": "time_limit_reached"});
    let text = result["output_text"].as_str().unwrap();
    assert_eq!(text, "0 1 2 ");
    let session = app.get(&session_path(&result, "")).await;
    assert_eq!(
        content_text(&session["message_history_state"]["messages"][1]["content"]),
        text
    );
    app.finish().await;
}

async fn cost_needs_a_price_and_is_limited(database: TestDatabase) {
    let mock = MockModel::start(insatiable).await;
    let prices = [
        ("prices.'mock/m'.input", "1000.0"),
        ("prices.'mock/m'.output", "2000.0"),
    ];
    let app = TestApp::start(database.url(), &mock, &prices).await;
    app.put_agent("calc", json!({"model": "mock/m", "tools": ["calculator"]}))
        .await;
    // Each answer has 10 tokens of input and 5 of output: 2 cents.
    let result = app
        .run_with(json!({"agent": "calc", "input": "go", "budget": {"max_cost": 0.1}}))
        .await;
    assert_members!(result, {"status": "stopped", "stop_reason": "token_limit_reached", "usage/cost": 0.06});

    let body = json!({"agent": "calc", "input": "go", "model": "mock/unpriced", "budget": {"max_cost": 0.05}});
    let refused = app.post("/v1/runs", &body).await;
    refused.assert_problem_at("invalid_field", "/budget/max_cost");
    app.finish().await;
}
