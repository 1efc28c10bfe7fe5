//! Limits: ceilings and lists of what may be used, for every tenant, for one tenant and for a key,
//! which nothing gets around.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use store::keys::Scope;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use tokio::time::timeout;
use values::limits::RunLimits;

use super::on_every_store;
use crate::support::answer::{Answer, read, with_json};
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::{TestApp, run_path};
use crate::support::text::assert_contains;

on_every_store!(
    a_request_above_a_ceiling_is_refused,
    a_ceiling_of_tokens_bounds_each_response_despite_the_parameters_of_the_run,
    what_asks_for_no_more_is_cut_to_the_ceiling,
    a_ceiling_of_steps_binds_each_subagent,
    a_ceiling_of_cost_allows_models_with_a_price_only,
    only_models_that_are_allowed_are_asked,
    only_agents_that_are_allowed_work,
    a_tenant_has_limits_of_its_own,
    a_key_narrows_what_its_tenant_may_do,
    a_queued_run_is_bound_by_the_limits_of_its_key,
    a_queued_run_is_bound_by_the_limits_when_it_begins,
);

/// How long a run may take that is to be cut after a second.
const PATIENCE: Duration = Duration::from_secs(30);

/// Calls the calculator until a user has said "enough".
fn insatiable(request: &Value) -> Reply {
    if last_user_text(request) == "enough" {
        return Reply::text("done");
    }
    let id = format!("c{}", request["messages"].as_array().unwrap().len());
    Reply::call(&id, "calculator", &json!({"expression": "1+1"}))
}

async fn start(database: &TestDatabase, settings: &[(&str, &str)]) -> (MockModel, TestApp) {
    let mock = MockModel::start(insatiable).await;
    let app = TestApp::start_bare(database.url(), &mock, settings).await;
    (mock, app)
}

async fn put_calc(app: &TestApp) {
    app.put_agent("calc", json!({"model": "mock/m", "tools": ["calculator"]}))
        .await;
}

async fn post_as(app: &TestApp, secret: &str, body: &Value) -> Answer {
    let request = app.request(Method::POST, "/v1/runs").bearer_auth(secret);
    read(with_json(request, body)).await
}

async fn a_request_above_a_ceiling_is_refused(database: TestDatabase) {
    let ceilings = [
        ("limits.each_tenant.max_steps", "3"),
        ("limits.each_tenant.max_tokens", "1000"),
        ("limits.each_tenant.max_seconds", "60"),
        ("limits.each_tenant.max_cost", "0.5"),
        ("prices.\"mock/m\".input", "1.0"),
        ("prices.\"mock/m\".output", "1.0"),
    ];
    let (mock, app) = start(&database, &ceilings).await;
    put_calc(&app).await;
    for (field, allowed, above) in [
        ("max_steps", json!(3), json!(4)),
        ("max_tokens", json!(1_000), json!(1_001)),
        ("max_seconds", json!(60), json!(60.5)),
        ("max_cost", json!(0.5), json!(0.500_001)),
    ] {
        for mode in ["sync", "stream", "async"] {
            let body = json!({"agent": "calc", "input": "go", "mode": mode, "budget": {field: above}});
            let answer = app.post("/v1/runs", &body).await;
            answer.assert_problem("above_ceiling");
            let problem = answer.json();
            assert_eq!(answer.status, StatusCode::FORBIDDEN);
            assert_eq!(problem["errors"][0]["pointer"], format!("/budget/{field}"));
            let words = problem["detail"].as_str().unwrap();
            assert_contains!(words, "ceiling", &allowed.to_string());
        }
        let body = json!({"agent": "calc", "input": "enough", "budget": {field: allowed}});
        assert_eq!(app.run_with(body).await["status"], "completed");
    }
    assert_eq!(mock.asked(), 4, "what was refused has asked no model");
    app.finish().await;
}

async fn a_ceiling_of_tokens_bounds_each_response_despite_the_parameters_of_the_run(database: TestDatabase) {
    let (mock, app) = start(&database, &[("limits.each_tenant.max_tokens", "1000")]).await;
    put_calc(&app).await;
    let narrow = RunLimits {
        max_tokens: Some(500),
        ..RunLimits::default()
    };
    let (_, narrow) = app.make_key_with("default", &[Scope::RunsWrite], narrow).await;
    let (_, wide) = app.make_key("default", &[Scope::RunsWrite]).await;
    for (key, asked, sent) in [
        // What the request itself takes at least, 37 tokens, is no answer's.
        (&wide, 2_000, 963),
        (&wide, 100, 100),
        (&narrow, 2_000, 463),
        (&narrow, 100, 100),
    ] {
        let body = json!({"agent": "calc", "input": "enough", "parameters": {"max_output_tokens": asked}});
        assert_eq!(post_as(&app, key, &body).await.ok()["status"], "completed");
        let request = mock.requests().pop().unwrap();
        let most = request["max_tokens"]
            .as_u64()
            .or(request["max_completion_tokens"].as_u64());
        assert_eq!(most, Some(sent), "{asked}");
    }
    app.finish().await;
}

async fn what_asks_for_no_more_is_cut_to_the_ceiling(database: TestDatabase) {
    let (_mock, app) = start(&database, &[("limits.each_tenant.max_steps", "3")]).await;
    put_calc(&app).await;
    let budget = json!({"max_steps": 40, "max_seconds": 3_600});
    let definition = json!({"model": "mock/m", "tools": ["calculator"], "budget": budget});
    app.put_agent("eager", definition).await;
    for (agent, budget, steps) in [
        // Nothing is said, the agent says more, the request says less.
        ("calc", json!({}), 3),
        ("eager", json!({}), 3),
        ("eager", json!({"max_steps": 2}), 2),
    ] {
        let result = app
            .run_with(json!({"agent": agent, "input": "go", "budget": budget}))
            .await;
        assert_members!(result, {"stop_reason": "steps_limit_reached", "step_count": steps}, "{agent}");
    }
    app.finish().await;

    // A model that never answers.
    let gate = Gate::new();
    let mock = MockModel::start(move |_| Reply::Held(Arc::clone(&gate), "late".to_owned())).await;
    let app = TestApp::start_bare(database.url(), &mock, &[("limits.each_tenant.max_seconds", "1")]).await;
    let cut = ["calc", "eager"].map(async |agent| {
        let run = app.run_with(json!({"agent": agent, "input": "go"}));
        let result = timeout(PATIENCE, run).await.expect("no ceiling binds the run");
        assert_eq!(result["stop_reason"], "time_limit_reached", "{agent}");
    });
    join_all(cut).await;
    app.finish().await;
}

async fn a_ceiling_of_steps_binds_each_subagent(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        let is_lead = request["tools"].to_string().contains("\"calc\"");
        match (is_lead, last_user_text(request).as_str()) {
            (true, "go") if request["messages"].as_array().unwrap().len() < 3 => {
                Reply::call("lead", "calc", &json!({"task": "work"}))
            }
            (true, _) => Reply::text("done"),
            (false, _) => insatiable(request),
        }
    });
    let mock = mock.await;
    let app = TestApp::start_bare(database.url(), &mock, &[("limits.each_tenant.max_steps", "2")]).await;
    put_calc(&app).await;
    let lead = json!({"model": "mock/m", "subagents": [{"agent": "calc", "budget": {"max_steps": 30}}]});
    app.put_agent("lead", lead).await;
    let result = app.run_with(json!({"agent": "lead", "input": "go"})).await;
    assert_members!(result, {"status": "completed", "output_text": "done"});
    // Two of the run's own agent, and two of the other one.
    assert_eq!(mock.asked(), 4);
    app.finish().await;
}

async fn a_ceiling_of_cost_allows_models_with_a_price_only(database: TestDatabase) {
    let settings = [
        ("limits.each_tenant.max_cost", "0.00008"),
        ("prices.\"mock/m\".input", "1.0"),
        ("prices.\"mock/m\".output", "1.0"),
    ];
    let (mock, app) = start(&database, &settings).await;
    put_calc(&app).await;
    let answer = app
        .post(
            "/v1/runs",
            &json!({"agent": "calc", "input": "go", "model": "mock/gratis"}),
        )
        .await;
    answer.assert_problem("not_allowed");
    let words = answer.json()["detail"].as_str().unwrap().to_owned();
    assert!(words.contains("no price is known for the model mock/gratis"), "{words}");
    app.put("/v1/agents/gratis", &json!({"models": ["mock/m", "mock/gratis"]}))
        .await
        .assert_problem("not_allowed");
    assert_eq!(mock.asked(), 0);
    let result = app.run_with(json!({"agent": "calc", "input": "go"})).await;
    assert_members!(result, {"status": "stopped", "stop_reason": "token_limit_reached"});
    app.finish().await;
}

/// Every way in which a model can be named, each with one that may not be asked.
async fn only_models_that_are_allowed_are_asked(database: TestDatabase) {
    // The agents are there before the limits are.
    let (_mock, app) = start(&database, &[]).await;
    let summarising = json!([{"name": "summarisation", "config": {"model": "mock/secret", "context_window": 100_000}}]);
    let agents = [
        ("own", json!({"model": "mock/secret"})),
        ("fallback", json!({"models": ["mock/small", "mock/secret"]})),
        ("hook", json!({"model": "mock/small", "hooks": summarising})),
        ("below", json!({"model": "mock/small", "subagents": [{"agent": "own"}]})),
        ("deep", json!({"model": "mock/small", "subagents": [{"agent": "hook"}]})),
    ];
    for (name, definition) in &agents {
        app.put_agent(name, definition.clone()).await;
    }
    app.put_agent("allowed", json!({"model": "mock/small"})).await;
    let of_session = app
        .run_with(json!({"agent": "allowed", "input": "enough", "model": "mock/secret"}))
        .await;
    app.finish().await;

    for list in [
        ("limits.each_tenant.models", r#"["mock/small*"]"#),
        ("limits.each_tenant.providers", r#"["demo"]"#),
    ] {
        let (mock, app) = start(&database, &[list]).await;
        let mut refused: Vec<Value> = agents
            .iter()
            .map(|(name, _)| json!({"agent": name, "input": "enough"}))
            .collect();
        refused.push(json!({"agent": "allowed", "input": "enough", "model": "mock/secret"}));
        for body in &mut refused {
            for mode in ["sync", "async"] {
                body["mode"] = json!(mode);
                let answer = app.post("/v1/runs", body).await;
                answer.assert_problem("not_allowed");
                assert_eq!(answer.status, StatusCode::FORBIDDEN);
            }
        }
        for (name, definition) in &agents {
            let answer = app.put(&format!("/v1/agents/{name}"), definition).await;
            // Of subagents the run finds out.
            if !["below", "deep"].contains(name) || list.0.ends_with("providers") {
                answer.assert_problem("not_allowed");
            }
        }
        assert_eq!(mock.asked(), 0);
        if list.0.ends_with("models") {
            let next = json!({"base_session_id": of_session["session_id"], "input": "enough"});
            let result = app.run_with(next).await;
            assert_eq!(
                result["model"], "mock/small",
                "a run's model is no model of its session"
            );
        }
        app.finish().await;
    }
}

async fn only_agents_that_are_allowed_work(database: TestDatabase) {
    let (_mock, app) = start(&database, &[("limits.each_tenant.agents", r#"["team-*"]"#)]).await;
    app.put_agent("other", json!({"model": "mock/m"})).await;
    app.put_agent("team-a", json!({"model": "mock/m"})).await;
    app.put_agent("team-b", json!({"model": "mock/m", "subagents": [{"agent": "other"}]}))
        .await;
    for agent in ["other", "team-b"] {
        let answer = app.post("/v1/runs", &json!({"agent": agent, "input": "enough"})).await;
        answer.assert_problem("not_allowed");
        assert!(answer.text().contains(r#"the agent \"other\" is not among those"#));
    }
    let result = app.run_with(json!({"agent": "team-a", "input": "enough"})).await;
    assert_eq!(result["status"], "completed");
    app.finish().await;
}

async fn a_tenant_has_limits_of_its_own(database: TestDatabase) {
    let settings = [
        ("limits.each_tenant.max_steps", "2"),
        ("limits.each_tenant.models", r#"["mock/m"]"#),
        ("limits.tenants.acme.max_steps", "4"),
        ("limits.tenants.acme.models", "[]"),
    ];
    let (_mock, app) = start(&database, &settings).await;
    for (tenant, steps, is_allowed) in [("acme", 4, true), ("other", 2, false)] {
        let (_, secret) = app.make_key(tenant, &[Scope::Admin]).await;
        let put = app.request(Method::PUT, "/v1/agents/calc").bearer_auth(&secret);
        let definition = json!({"model": "mock/m", "tools": ["calculator"]});
        read(with_json(put, &definition)).await.ok();
        let mut body = json!({"agent": "calc", "input": "go"});
        assert_eq!(post_as(&app, &secret, &body).await.ok()["step_count"], steps);
        body["model"] = json!("mock/other");
        let answer = post_as(&app, &secret, &body).await;
        assert_eq!(answer.status.is_success(), is_allowed, "{tenant}");
    }
    app.finish().await;
}

fn narrow() -> RunLimits {
    RunLimits {
        max_steps: Some(2),
        models: vec!["mock/m".parse().unwrap()],
        ..RunLimits::default()
    }
}

async fn a_key_narrows_what_its_tenant_may_do(database: TestDatabase) {
    let settings = [
        ("limits.each_tenant.max_steps", "3"),
        ("limits.each_tenant.providers", r#"["mock"]"#),
    ];
    let (_mock, app) = start(&database, &settings).await;
    put_calc(&app).await;
    let wide = RunLimits {
        max_steps: Some(1_000),
        providers: vec!["*".parse().unwrap()],
        ..RunLimits::default()
    };
    for (limits, steps, model) in [
        (RunLimits::default(), 3, "demo/demo"),
        (wide, 3, "demo/demo"),
        (narrow(), 2, "mock/other"),
    ] {
        let (_, secret) = app.make_key_with("default", &[Scope::RunsWrite], limits).await;
        let body = json!({"agent": "calc", "input": "go"});
        assert_eq!(post_as(&app, &secret, &body).await.ok()["step_count"], steps);
        let above = json!({"agent": "calc", "input": "go", "budget": {"max_steps": steps + 1}});
        post_as(&app, &secret, &above).await.assert_problem("above_ceiling");
        let other = json!({"agent": "calc", "input": "go", "model": model});
        post_as(&app, &secret, &other).await.assert_problem("not_allowed");
    }
    app.finish().await;
}

/// Waits until a run has ended, by waiting for one change of its status after the other.
async fn ended_as(app: &TestApp, secret: &str, run: &Value) -> Value {
    let path = run_path(run, "?wait=10s");
    loop {
        let run = read(app.request(Method::GET, &path).bearer_auth(secret)).await.ok();
        if !["queued", "running"].contains(&run["status"].as_str().unwrap()) {
            return run;
        }
    }
}

async fn a_queued_run_is_bound_by_the_limits_of_its_key(database: TestDatabase) {
    let limits = RunLimits {
        max_steps: Some(2),
        ..RunLimits::default()
    };
    let (mock, api) = start(&database, &[("queue.role", "api")]).await;
    put_calc(&api).await;
    let (_, secret) = api.make_key_with("default", &[Scope::Admin], limits).await;
    // Nothing is asked, so nothing but the key's limit is there to be kept.
    let body = json!({"agent": "calc", "input": "go", "mode": "async"});
    let accepted = post_as(&api, &secret, &body).await.json();
    api.finish().await;
    let worker = TestApp::start_bare(database.url(), &mock, &[]).await;
    let ended = ended_as(&worker, &secret, &accepted).await;
    assert_members!(ended, {"stop_reason": "steps_limit_reached", "step_count": 2});
    worker.finish().await;
}

/// Accepts a run with one configuration and has it executed with another.
async fn executed_elsewhere(database: &TestDatabase, settings: &[(&str, &str)]) -> Value {
    let (mock, api) = start(database, &[("queue.role", "api")]).await;
    put_calc(&api).await;
    let body = json!({"agent": "calc", "input": "go", "mode": "async", "budget": {"max_steps": 2}});
    let accepted = api.post("/v1/runs", &body).await.json();
    api.finish().await;
    let worker = TestApp::start_bare(database.url(), &mock, settings).await;
    let ended = worker.ended(&accepted).await;
    worker.finish().await;
    ended
}

async fn a_queued_run_is_bound_by_the_limits_when_it_begins(database: TestDatabase) {
    let ended = executed_elsewhere(&database, &[("limits.each_tenant.max_steps", "1")]).await;
    assert_members!(ended, {"stop_reason": "steps_limit_reached", "step_count": 1});
    let forbidden = [("limits.each_tenant.models", r#"["demo/*"]"#)];
    let ended = executed_elsewhere(&database, &forbidden).await;
    assert_members!(ended, {"status": "failed", "error/code": "request_unusable"});
}
