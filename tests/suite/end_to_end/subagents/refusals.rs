//! Subagents that can't work: refused when an agent is stored, or when a run is planned.

use serde_json::json;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::session_count;
use crate::end_to_end::on_every_store;
use crate::support::mock_model::MockModel;
use crate::support::test_app::TestApp;
use crate::support::text::assert_contains;

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
        let refused = app.put("/v1/agents/lead", &agent).await;
        refused.assert_problem_at("invalid_field", &format!("/{field}"));
    }
    app.finish().await;
}

async fn an_agent_that_does_not_exist_is_refused_before_the_run(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    // Definitions may name each other in any order.
    app.put_agent("lead", json!({"model": "mock/m", "subagents": [{"agent": "mid"}]}))
        .await;
    app.put_agent("mid", json!({"model": "mock/m", "subagents": [{"agent": "nobody"}]}))
        .await;
    let refused = app.post("/v1/runs", &json!({"agent": "lead", "input": "go"})).await;
    refused.assert_problem_at("agent_not_found", "/agent");
    let detail = r#"the agent "mid" has a subagent "nobody", and there is no agent of that name"#;
    assert_eq!(refused.json()["detail"], detail);
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
    let refused = app.put("/v1/agents/low", &limited).await;
    refused.assert_problem_at("invalid_field", "/budget/max_cost");
    app.put_agent("low", unpriced).await;
    // Of the request, of the agent, beside the subagent: two levels above the model.
    for (budget, lead, is_refused) in [
        (json!({}), lead(json!({})), false),
        (cost.clone(), lead(json!({})), true),
        (json!({}), lead(cost.clone()), true),
    ] {
        app.put_agent("mid", mid.clone()).await;
        app.put_agent("lead", lead).await;
        let body = json!({"agent": "lead", "input": "go", "budget": budget});
        if !is_refused {
            assert_eq!(app.run_with(body).await["status"], "completed");
            continue;
        }
        let refused = app.post("/v1/runs", &body).await;
        refused.assert_problem_at("invalid_field", "/budget/max_cost");
        assert_contains!(refused.json()["detail"].as_str().unwrap(), "mock/unpriced", "\"low\"");
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
    let refused = app.post("/v1/runs", &json!({"agent": "a0", "input": "go"})).await;
    refused.assert_problem_at("invalid_field", "/agent");
    app.finish().await;
}
