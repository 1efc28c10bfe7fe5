//! Subagents that can't work: refused when an agent is stored, or when a run is planned.

use reqwest::{Method, StatusCode};
use serde_json::json;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::session_count;
use crate::end_to_end::on_every_store;
use crate::support::mock_model::MockModel;
use crate::support::test_app::TestApp;

on_every_store!(
    a_definition_that_can_not_work_is_refused,
    an_agent_that_does_not_exist_is_refused_before_the_run,
    an_unpriced_model_below_a_limit_of_cost_is_refused_before_the_run,
    a_team_beyond_all_bounds_is_refused_before_the_run,
);

async fn a_definition_that_can_not_work_is_refused(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    for (field, value) in [
        ("subagents", json!([{"agent": "echo"}, {"agent": "echo"}])),
        ("subagents", json!([{"agent": "echo", "tools": ["calculator"]}])),
        ("max_depth", json!(9)),
    ] {
        let mut agent = json!({"model": "mock/m"});
        agent[field] = value;
        let (status, problem) = app.call(Method::PUT, "/v1/agents/lead", Some(agent)).await;
        assert_eq!(
            (status, &problem["code"], &problem["errors"][0]["pointer"]),
            (
                StatusCode::BAD_REQUEST,
                &json!("invalid_field"),
                &json!(format!("/{field}"))
            ),
            "{problem:#}"
        );
    }
    app.finish().await;
}

/// Asks for a run that must be refused.
async fn refused(app: &TestApp, body: Value) -> (StatusCode, String, String, String) {
    let (status, problem) = app.call(Method::POST, "/v1/runs", Some(body)).await;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (
        status,
        text(&problem["code"]),
        text(&problem["errors"][0]["pointer"]),
        text(&problem["detail"]),
    )
}

async fn an_agent_that_does_not_exist_is_refused_before_the_run(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    // Definitions may name each other in any order.
    app.put_agent("lead", json!({"model": "mock/m", "subagents": [{"agent": "mid"}]}))
        .await;
    app.put_agent("mid", json!({"model": "mock/m", "subagents": [{"agent": "nobody"}]}))
        .await;
    let (status, code, pointer, detail) = refused(&app, json!({"agent": "lead", "input": "go"})).await;
    assert_eq!(
        (status, code.as_str(), pointer.as_str()),
        (StatusCode::NOT_FOUND, "agent_not_found", "/agent")
    );
    assert_eq!(
        detail,
        r#"the agent "mid" has a subagent "nobody", and there is no agent of that name"#
    );
    assert_eq!((mock.asked(), session_count(&app).await), (0, 0));

    // Where no level reaches it, nobody misses it.
    app.put_agent(
        "lead",
        json!({"model": "mock/m", "max_depth": 1, "subagents": [{"agent": "mid"}]}),
    )
    .await;
    let result = app.run_with(json!({"agent": "lead", "input": "go"})).await;
    assert_eq!(result["status"], "completed");
    app.finish().await;
}

async fn an_unpriced_model_below_a_limit_of_cost_is_refused_before_the_run(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let prices = [("prices.'mock/m'.input", "1.0"), ("prices.'mock/m'.output", "2.0")];
    let app = TestApp::start(database.url(), &mock, &prices).await;
    let cost = json!({"max_cost": 0.05});
    let unpriced = json!({"model": "mock/unpriced"});
    let limited = json!({"model": "mock/unpriced", "budget": cost.clone()});
    let lead = |beside_it: Value| json!({"model": "mock/m", "subagents": [{"agent": "mid", "budget": beside_it}]});
    let mid = json!({"model": "mock/m", "subagents": [{"agent": "low"}]});
    let (status, problem) = app.call(Method::PUT, "/v1/agents/low", Some(limited)).await;
    assert_eq!(
        (status, &problem["errors"][0]["pointer"]),
        (StatusCode::BAD_REQUEST, &json!("/budget/max_cost")),
        "{problem:#}"
    );
    app.put_agent("low", unpriced).await;
    // Of the request, of the agent, beside the subagent: two levels above the model.
    for (budget, lead, is_refused) in [
        (json!({}), lead(json!({})), false),
        (cost.clone(), lead(json!({})), true),
        (json!({}), lead(cost.clone()), true),
    ] {
        app.put_agent("mid", mid.clone()).await;
        app.put_agent("lead", lead.clone()).await;
        let body = json!({"agent": "lead", "input": "go", "budget": budget});
        if !is_refused {
            assert_eq!(app.run_with(body).await["status"], "completed");
            continue;
        }
        let (status, code, pointer, detail) = refused(&app, body).await;
        assert_eq!(
            (status, code.as_str(), pointer.as_str()),
            (StatusCode::BAD_REQUEST, "invalid_field", "/budget/max_cost"),
            "{budget}, {lead}"
        );
        assert!(
            detail.contains("mock/unpriced") && detail.contains("\"low\""),
            "{detail}"
        );
    }
    app.finish().await;
}

async fn a_team_beyond_all_bounds_is_refused_before_the_run(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let named = |from: usize| -> Value { (from..from + 32).map(|n| json!({"agent": format!("a{n}")})).collect() };
    for n in 0..65 {
        // Each knows the half that it is not of, so that all of them can be below each other in
        // countless ways.
        let agent = json!({"model": "mock/m", "max_depth": 8, "subagents": named(if n < 32 { 32 } else { 0 })});
        app.put_agent(&format!("a{n}"), agent).await;
    }
    let result = app.run_with(json!({"agent": "a0", "input": "go"})).await;
    assert_eq!(result["status"], "completed");

    app.put_agent("a63", json!({"model": "mock/m", "subagents": [{"agent": "a64"}]}))
        .await;
    let (status, code, pointer, detail) = refused(&app, json!({"agent": "a0", "input": "go"})).await;
    assert_eq!(
        (status, code.as_str(), pointer.as_str()),
        (StatusCode::BAD_REQUEST, "invalid_field", "/agent"),
        "{detail}"
    );
    app.finish().await;
}
