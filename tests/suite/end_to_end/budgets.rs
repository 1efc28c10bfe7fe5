//! Budgets: a run ends before it costs more than it may, keeps what it has and says why.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;

use super::on_every_store;
use crate::support::databases::TestDatabase;
use crate::support::mock_model::{MockModel, Reply, content_text};
use crate::support::test_app::TestApp;

on_every_store!(
    steps_are_limited,
    tokens_are_limited,
    time_cuts_a_running_answer_and_keeps_it,
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
    assert_eq!(
        (&result["status"], &result["stop_reason"]),
        (&json!("stopped"), &json!("steps_limit_reached"))
    );
    assert_eq!(result["step_count"], 3);
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
        .run_with(json!({"agent": "calc", "input": "go", "budget": {"max_tokens": 40}}))
        .await;
    assert_eq!(
        (&result["status"], &result["stop_reason"]),
        (&json!("stopped"), &json!("token_limit_reached"))
    );
    assert_eq!(result["usage"]["total_tokens"], 45);
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
    assert_eq!(limits, [40, 25, 10], "what is left bounds each request");
    app.finish().await;
}

async fn time_cuts_a_running_answer_and_keeps_it(database: TestDatabase) {
    let pieces = (0..100).map(|n| format!("{n} ")).collect::<Vec<_>>();
    let mock = MockModel::start(move |_| Reply::Slow(pieces.clone(), Duration::from_millis(50))).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let result = app
        .run_with(json!({"agent": "echo", "input": "count", "budget": {"max_seconds": 0.4}}))
        .await;
    assert_eq!(
        (&result["status"], &result["stop_reason"]),
        (&json!("stopped"), &json!("time_limit_reached"))
    );
    let text = result["output_text"].as_str().unwrap();
    assert!(text.starts_with("0 1 2 ") && !text.contains("50"), "{text}");
    let session = app
        .get(&format!("/v1/sessions/{}", result["session_id"].as_str().unwrap()))
        .await;
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
        .run_with(json!({"agent": "calc", "input": "go", "budget": {"max_cost": 0.05}}))
        .await;
    assert_eq!(
        (&result["status"], &result["stop_reason"]),
        (&json!("stopped"), &json!("token_limit_reached"))
    );
    assert_eq!(result["usage"]["cost"], json!(0.06));

    let body = json!({"agent": "calc", "input": "go", "model": "mock/unpriced", "budget": {"max_cost": 0.05}});
    let (status, problem) = app.call(Method::POST, "/v1/runs", Some(body)).await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::BAD_REQUEST, &json!("invalid_field")),
        "{problem:#}"
    );
    assert_eq!(problem["errors"][0]["pointer"], "/budget/max_cost");
    app.finish().await;
}
