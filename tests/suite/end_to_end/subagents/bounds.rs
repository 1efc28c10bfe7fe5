//! The bounds of the agents below a run: their number, their slots, the calls of a step and the
//! size of the record, and how soon a cancellation ends all of them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;
use store::keys::Scope;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use test_support::wait::until;
use values::json::Value;

use super::{end, leading, requests_of, session, steps_of, subagents};
use crate::end_to_end::on_every_store;
use crate::support::answer::{read, with_json};
use crate::support::mock_model::{MockModel, Reply, new_results};
use crate::support::test_app::TestApp;

on_every_store!(
    calls_beyond_the_bound_of_a_step_are_errors_that_the_model_reads,
    subagents_beyond_the_bound_of_a_run_are_errors_that_the_model_reads,
    few_slots_are_enough_for_any_levels_of_agents,
    no_more_subagents_work_at_once_than_there_are_slots,
    a_tenant_leaves_slots_to_another,
    a_run_stops_before_its_record_becomes_too_large,
    a_run_with_many_levels_of_calls_is_cancelled_at_once,
);

/// Agents of so many levels below the first, each with the next as its subagent: `level0` leads.
async fn start(database: &TestDatabase, mock: &MockModel, levels: usize, settings: &[(&str, &str)]) -> TestApp {
    let app = TestApp::start(database.url(), mock, settings).await;
    for level in (0..=levels).rev() {
        let mut agent = json!({"model": format!("mock/level{level}"), "tools": ["calculator"], "max_depth": levels});
        if level < levels {
            agent["subagents"] = json!([{"agent": format!("level{}", level + 1), "tool": "below"}]);
        }
        app.put_agent(&format!("level{level}"), agent).await;
    }
    app
}

fn go() -> Value {
    json!({"agent": "level0", "input": "go"})
}

/// Asks for the agent below so many times.
fn below(request: &Value, times: usize) -> Reply {
    let calls: Vec<_> = (0..times).map(|_| ("below", "work")).collect();
    leading(request, &calls)
}

async fn calls_beyond_the_bound_of_a_step_are_errors_that_the_model_reads(database: TestDatabase) {
    let mock = MockModel::start(|request| match request["model"].as_str().unwrap() {
        "level0" => below(request, 5),
        _ => Reply::text("fine"),
    })
    .await;
    let app = start(&database, &mock, 1, &[("runs.max_calls_per_step", "2")]).await;
    let result = app.run_with(go()).await;
    assert_eq!(end(&result).0, "completed");
    let refused = "this call was not made: the answer asks for 5 calls, and the first 2 are made; ask for the others in your next answer";
    let expected = format!("results: {}", ["fine", "fine", refused, refused, refused].join(" | "));
    assert_eq!(result["output_text"], expected.as_str());
    let steps = steps_of(&app, &result).await;
    let executions = steps[0]["tool_executions"].as_array().unwrap();
    let failed: Vec<_> = executions
        .iter()
        .map(|execution| execution["is_error"] == true)
        .collect();
    assert_eq!(failed, [false, false, true, true, true]);
    assert_eq!(steps[0]["errors"][0]["code"], "tool_calls_exceeded");
    app.finish().await;
}

async fn subagents_beyond_the_bound_of_a_run_are_errors_that_the_model_reads(database: TestDatabase) {
    let mock = MockModel::start(|request| match request["model"].as_str().unwrap() {
        "level2" => Reply::text("fine"),
        _ => below(request, 3),
    })
    .await;
    let app = start(&database, &mock, 2, &[("runs.max_subagents", "5")]).await;
    let result = app.run_with(go()).await;
    assert_eq!(end(&result).0, "completed");
    let steps = steps_of(&app, &result).await;
    let below = subagents(&steps);
    let of_them: Vec<_> = below
        .iter()
        .flat_map(|subagent| subagents(&subagent["steps"]))
        .collect();
    assert_eq!(below.len() + of_them.len(), 5, "{steps:#}");
    let refused = "can't begin: the run has had all 5 agents that it may have; go on without";
    assert!(
        mock.requests()
            .iter()
            .any(|request| new_results(request).iter().any(|reported| reported.contains(refused)))
    );
    app.finish().await;
}

async fn few_slots_are_enough_for_any_levels_of_agents(database: TestDatabase) {
    for (of_run, of_process) in [("1", "1"), ("2", "1"), ("3", "2"), ("16", "3")] {
        let mock = MockModel::start(|request| match request["model"].as_str().unwrap() {
            "level3" => Reply::text("fine"),
            _ => below(request, 3),
        })
        .await;
        let settings = [
            ("runs.subagent_concurrency", of_run),
            ("runs.max_concurrent_subagents", of_process),
        ];
        let app = start(&database, &mock, 3, &settings).await;
        // Two runs share the process.
        let (one, other) = tokio::join!(app.run_with(go()), app.run_with(go()));
        for result in [one, other] {
            assert_eq!(end(&result).0, "completed", "{of_run} {of_process}: {result:#}");
            assert_eq!(result["output_text"].as_str().unwrap().matches("fine").count(), 27);
        }
        app.finish().await;
    }
}

async fn no_more_subagents_work_at_once_than_there_are_slots(database: TestDatabase) {
    let gate = Gate::new();
    let held = Arc::clone(&gate);
    let mock = MockModel::start(move |request| match request["model"].as_str().unwrap() {
        "level2" => Reply::Held(Arc::clone(&held), "fine".to_owned()),
        _ => below(request, 4),
    })
    .await;
    let app = start(&database, &mock, 2, &[("runs.subagent_concurrency", "3")]).await;
    let running = app.run_with(go());
    let watching = async {
        // All that may work wait at the gate, and as one of them ends another one may come.
        let asked = || requests_of(&mock.requests(), "level2").len();
        gate.until_waiting(3).await;
        for passed in 0..16 {
            until("subagents don't come to work", async || asked() > passed).await;
            assert!(asked() <= passed + 3, "{passed}");
            gate.open(1);
        }
        assert_eq!(asked(), 16);
    };
    let (result, ()) = tokio::join!(running, watching);
    assert_eq!(end(&result).0, "completed");
    app.finish().await;
}

async fn a_tenant_leaves_slots_to_another(database: TestDatabase) {
    let (gate, other_gate) = (Gate::new(), Gate::new());
    let (held, other_held) = (Arc::clone(&gate), Arc::clone(&other_gate));
    let mock = MockModel::start(move |request| match request["model"].as_str().unwrap() {
        "level1" => Reply::Held(Arc::clone(&held), "fine".to_owned()),
        "other1" => Reply::Held(Arc::clone(&other_held), "fine".to_owned()),
        _ => below(request, 8),
    })
    .await;
    let app = start(&database, &mock, 1, &[("runs.max_concurrent_subagents", "4")]).await;
    let (_, own) = app.make_key("default", &[Scope::Admin]).await;
    let (_, other) = app.make_key("other", &[Scope::Admin]).await;
    for (name, agent) in [
        ("level1", json!({"model": "mock/other1"})),
        (
            "level0",
            json!({"model": "mock/other0", "subagents": [{"agent": "level1", "tool": "below"}]}),
        ),
    ] {
        let put = app
            .request(Method::PUT, &format!("/v1/agents/{name}"))
            .bearer_auth(&other);
        read(with_json(put, &agent)).await.ok();
    }
    let run_as = async |secret: &str| {
        let post = app.request(Method::POST, "/v1/runs").bearer_auth(secret);
        read(with_json(post, &go())).await.ok()
    };
    let watching = async {
        // One works in the slot that its run lends, the others in half of those of the process.
        gate.until_waiting(3).await;
        let second = run_as(&other);
        let watching = async {
            other_gate.until_waiting(2).await;
            gate.until_waiting(3).await;
            gate.open(8);
            other_gate.open(8);
        };
        tokio::join!(second, watching).0
    };
    let (first, second) = tokio::join!(run_as(&own), watching);
    for result in [first, second] {
        assert_eq!(end(&result).0, "completed", "{result:#}");
        assert_eq!(result["output_text"].as_str().unwrap().matches("fine").count(), 8);
    }
    app.finish().await;
}

async fn a_run_stops_before_its_record_becomes_too_large(database: TestDatabase) {
    let words = "x".repeat(2_000);
    let mock = MockModel::start(move |request| {
        let step = request["messages"].as_array().unwrap().len();
        let task = format!("{step}{words}");
        match request["model"].as_str().unwrap() {
            "level0" => Reply::call(&format!("c{step}"), "below", &json!({"task": task})),
            _ => Reply::call(
                &format!("c{step}"),
                "calculator",
                &json!({"expression": "1 + 1", "note": task}),
            ),
        }
    })
    .await;
    let app = start(&database, &mock, 1, &[("runs.max_record_bytes", "65536")]).await;
    let events = app.stream(go()).await;
    let result = &events.last().unwrap()["data"];
    assert_eq!(end(result).0, "stopped", "{result:#}");
    assert_eq!(result["stop_reason"], "stop_requested");
    let ended = events.iter().find(|event| event["type"] == "execution.ended").unwrap();
    assert_eq!(ended["data"]["source"], "record");
    assert_eq!(
        ended["data"]["message"],
        "the record of the run has reached its limit of 65536 bytes"
    );
    // The subagent at work was stopped by it as well, and all is stored.
    let steps = steps_of(&app, result).await;
    let stopped = subagents(&steps);
    assert_eq!(stopped.last().unwrap()["stop_reason"], "stop_requested");
    let size = steps.to_string().len();
    assert!((32_768..262_144).contains(&size), "{size}");
    session(&app, &result["session_id"]).await;
    app.finish().await;
}

async fn a_run_with_many_levels_of_calls_is_cancelled_at_once(database: TestDatabase) {
    let gate = Gate::new();
    let held = Arc::clone(&gate);
    let mock = MockModel::start(move |request| match request["model"].as_str().unwrap() {
        "level4" => Reply::Held(Arc::clone(&held), "never".to_owned()),
        _ => below(request, 50),
    })
    .await;
    let app = start(&database, &mock, 4, &[]).await;
    let mut body = go();
    body["mode"] = json!("async");
    let (_, accepted) = app.call(Method::POST, "/v1/runs", Some(body)).await;
    let run_id = accepted["run_id"].as_str().unwrap();
    // As many as may work do.
    until("subagents don't come to work", async || {
        requests_of(&mock.requests(), "level4").len() == 16
    })
    .await;
    let asked = mock.asked();
    let began = Instant::now();
    app.call(Method::POST, &format!("/v1/runs/{run_id}/cancel"), None).await;
    until("the run is not cancelled", async || {
        app.get(&format!("/v1/runs/{run_id}")).await["status"] == "cancelled"
    })
    .await;
    // It takes milliseconds; a machine that is busy has some more.
    let took = began.elapsed();
    assert!(took < Duration::from_secs(15), "{took:?}");
    // None of the calls that waited has begun.
    assert_eq!(mock.asked(), asked);
    let steps = steps_of(&app, &accepted).await;
    // 41 executions with 50 calls each, most of which were never made.
    assert!(steps.to_string().len() < 4 << 20);
    gate.open(100);
    app.finish().await;
}
