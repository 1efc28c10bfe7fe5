//! Which model is asked, what it is told, and what it costs: overrides, parameters, fallback chains
//! and prices.

use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply};
use crate::support::test_app::{TestApp, run_path};

on_every_store!(
    the_model_of_the_run_comes_before_that_of_the_session_and_that_of_the_agent,
    parameters_of_the_agent_reach_every_request,
    a_chain_goes_on_with_the_next_model_and_charges_its_price,
    a_run_of_which_a_part_has_no_price_shows_no_cost_and_which_model_answered,
    an_answer_that_has_begun_is_not_begun_again_by_another_model,
    a_limit_of_cost_needs_the_price_of_every_model,
);

/// The models that were asked, in order.
fn asked(mock: &MockModel) -> Vec<String> {
    let requests = mock.requests().into_iter();
    requests
        .map(|request| request["model"].as_str().unwrap().to_owned())
        .collect()
}

async fn the_model_of_the_run_comes_before_that_of_the_session_and_that_of_the_agent(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("own", json!({"model": "mock/of-agent"})).await;
    let imported = json!({"agent": "own", "context_state": {"model": "mock/of-session"}});
    let imported = app.post("/v1/sessions", &imported).await.ok();
    let session = &imported["session_id"];

    let fresh = app.run_with(json!({"agent": "own", "input": "a"})).await;
    let of_session = app.run_with(json!({"base_session_id": session, "input": "b"})).await;
    let of_run = app
        .run_with(json!({"base_session_id": session, "input": "c", "model": "mock/of-run"}))
        .await;
    // The model of a run is that run's alone; the session's goes on with its line.
    let after = app
        .run_with(json!({"base_session_id": of_run["session_id"], "input": "d"}))
        .await;
    assert_eq!(asked(&mock), ["of-agent", "of-session", "of-run", "of-session"]);
    for (run, model) in [
        (fresh, "mock/of-agent"),
        (of_session, "mock/of-session"),
        (of_run, "mock/of-run"),
        (after, "mock/of-session"),
    ] {
        assert_eq!(run["model"], model);
    }
    app.finish().await;
}

async fn parameters_of_the_agent_reach_every_request(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        let has_result = request["messages"].as_array().unwrap().last().unwrap()["role"] == "tool";
        if has_result {
            Reply::text("done")
        } else {
            Reply::call("c1", "calculator", &json!({"expression": "1+1"}))
        }
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let parameters = json!({
        "temperature": 0.25, "top_p": 0.5, "max_output_tokens": 100, "stop": ["END"], "reasoning_effort": "low",
        "extra": {"seed": 7, "messages": ["never"]},
    });
    app.put_agent(
        "tuned",
        json!({"model": "mock/m", "parameters": parameters, "tools": ["calculator"]}),
    )
    .await;
    app.run_with(json!({"agent": "tuned", "input": "1+1"})).await;
    let requests = mock.requests();
    assert_eq!(requests.len(), 2);
    for request in requests {
        let sent: Vec<&Value> = [
            "model",
            "temperature",
            "top_p",
            "max_tokens",
            "stop",
            "reasoning_effort",
            "seed",
        ]
        .iter()
        .map(|name| &request[*name])
        .collect();
        assert_eq!(
            sent,
            [
                &json!("m"),
                &json!(0.25),
                &json!(0.5),
                &json!(100),
                &json!(["END"]),
                &json!("low"),
                &json!(7)
            ]
        );
    }
    app.finish().await;
}

/// Fails for the models whose name begins so, and counts tokens for the others.
async fn moody() -> MockModel {
    MockModel::start(|request| match request["model"].as_str().unwrap() {
        "busy" => Reply::Status(503, r#"{"error": {"message": "come back later"}}"#.to_owned()),
        "breaks" => Reply::Cut(vec!["half".to_owned()]),
        name => Reply::text(&format!("from {name}")),
    })
    .await
}

async fn a_chain_goes_on_with_the_next_model_and_charges_its_price(database: TestDatabase) {
    let mock = moody().await;
    let prices = [
        ("prices.'mock/busy'.input", "1000.0"),
        ("prices.'mock/busy'.output", "1000.0"),
        ("prices.'mock/calm'.input", "1.0"),
        ("prices.'mock/calm'.output", "1.0"),
    ];
    let app = TestApp::start(database.url(), &mock, &prices).await;
    app.put_agent("sturdy", json!({"models": ["mock/busy", "mock/calm"]}))
        .await;
    let run = app.run_with(json!({"agent": "sturdy", "input": "hi"})).await;
    assert_eq!(run["output_text"], "from calm");
    assert_eq!(asked(&mock), ["busy", "calm"]);
    let tokens = run["usage"]["total_tokens"].as_f64().unwrap();
    let cost = run["usage"]["cost"].as_f64().unwrap();
    assert!(
        tokens > 0.0 && (cost - tokens / 1e6).abs() < 1e-12,
        "{:#}",
        run["usage"]
    );
    app.finish().await;
}

async fn a_run_of_which_a_part_has_no_price_shows_no_cost_and_which_model_answered(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        let has_result = request["messages"].as_array().unwrap().last().unwrap()["role"] == "tool";
        match request["model"].as_str().unwrap() {
            "fickle" if has_result => Reply::Status(503, "{}".to_owned()),
            "fickle" => Reply::call("c1", "calculator", &json!({"expression": "1+1"})),
            name => Reply::text(&format!("from {name}")),
        }
    });
    let mock = mock.await;
    let prices = [
        ("prices.'mock/calm'.input", "1.0"),
        ("prices.'mock/calm'.output", "1.0"),
    ];
    let app = TestApp::start(database.url(), &mock, &prices).await;
    let agent = json!({"models": ["mock/fickle", "mock/calm"], "tools": ["calculator"]});
    app.put_agent("sturdy", agent).await;
    // A light run and one of the queue.
    for (metadata, thread) in [("light", Value::Null), ("queued", json!("t"))] {
        let body = json!({"agent": "sturdy", "input": "hi", "thread": thread, "metadata": {"kind": metadata}});
        let answered = app.run_with(body).await;
        let path = run_path(&answered, "");
        let run = app.get(&path).await;
        assert_eq!(answered, run);
        assert_members!(run, {"status": "completed", "output_text": "from calm"});
        assert_members!(run, {"model": "mock/fickle", "answered_by": "mock/calm"});
        let steps = app.get(&format!("{path}/steps")).await;
        let [first, second] = [&steps["data"][0], &steps["data"][1]];
        let answered = (&first["answered_by"], &second["answered_by"]);
        assert_eq!(answered, (&json!("mock/fickle"), &json!("mock/calm")));
        assert_members!(first["usage"], {"cost": null, "cost_known_part": 0.0});
        let priced = second["usage"]["cost"].as_f64().unwrap();
        assert!(
            priced > 0.0 && second["usage"].get("cost_known_part").is_none(),
            "{second:#}"
        );
        let listed = app.get("/v1/runs?limit=1").await;
        for shown in [&run, &listed["data"][0]] {
            assert_members!(shown, {"usage/cost": null, "usage/cost_known_part": priced, "answered_by": "mock/calm"});
        }
    }
    app.finish().await;
}

async fn an_answer_that_has_begun_is_not_begun_again_by_another_model(database: TestDatabase) {
    let mock = moody().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("sturdy", json!({"models": ["mock/breaks", "mock/calm"]}))
        .await;
    let events = app.stream(json!({"agent": "sturdy", "input": "hi"})).await;
    assert_eq!(asked(&mock), ["breaks"]);
    let last = events.last().unwrap();
    assert_members!(last, {"type": "run.failed", "data/output_text": "half"});
    app.finish().await;
}

async fn a_limit_of_cost_needs_the_price_of_every_model(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let prices = [
        ("prices.'mock/known'.input", "1.0"),
        ("prices.'mock/known'.output", "1.0"),
    ];
    let app = TestApp::start(database.url(), &mock, &prices).await;
    let budget = json!({"max_cost": 1.0});
    app.put_agent("known", json!({"model": "mock/known", "budget": budget}))
        .await;
    let unknown = json!({"models": ["mock/known", "mock/unknown"], "budget": budget});
    let refused = app.put("/v1/agents/unknown", &unknown).await;
    refused.assert_problem_at("invalid_field", "/budget/max_cost");
    // The run's own model is the one that counts.
    let other = json!({"agent": "known", "input": "hi", "model": "mock/unknown"});
    let refused = app.post("/v1/runs", &other).await;
    refused.assert_problem_at("invalid_field", "/budget/max_cost");
    assert_eq!(mock.asked(), 0);
    app.finish().await;
}
