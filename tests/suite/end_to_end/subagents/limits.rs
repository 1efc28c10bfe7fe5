//! The limits of subagents: levels, their own budgets, and those of the agents above them.

use std::sync::Arc;

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use values::json::Value;

use super::{end, insatiable, leading, offered, requests_of, session, session_count, steps_of, subagents};
use crate::end_to_end::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply};
use crate::support::test_app::TestApp;

on_every_store!(
    levels_end_at_the_least_depth_of_all_above,
    its_own_budget_stops_a_subagent_and_not_the_run,
    what_subagents_spend_is_spent_of_the_run,
    time_that_is_spent_stops_the_subagents_at_work,
);

async fn levels_end_at_the_least_depth_of_all_above(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        if offered(request).is_empty() {
            Reply::text("bottom")
        } else {
            leading(request, &[("deeper", "dig")])
        }
    })
    .await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    // Of the run's agent, of the one below it, and how many levels there are below then. Below that
    // one it is itself again.
    for (of_first, of_second, levels) in [
        (None, None, 3),
        (Some(0), None, 0),
        (Some(1), Some(8), 1),
        (Some(8), Some(2), 3),
        (Some(8), Some(0), 1),
    ] {
        for (name, depth) in [("first", of_first), ("second", of_second)] {
            let subagents = json!([{"agent": "second", "tool": "deeper"}]);
            let mut agent = json!({"model": "mock/m", "subagents": subagents});
            if let Some(depth) = depth {
                agent["max_depth"] = json!(depth);
            }
            app.put_agent(name, agent).await;
        }
        let before = (session_count(&app).await, mock.asked());
        let result = app.run_with(json!({"agent": "first", "input": "dig"})).await;
        let expected = format!("{}bottom", "results: ".repeat(levels));
        assert_eq!(result["output_text"], expected);
        assert_eq!(mock.asked() - before.1, 2 * levels + 1);
        assert_eq!(end(&result).2, 15 * (2 * levels as u64 + 1));

        // Each level's session hangs on the one above.
        let (mut above, mut steps) = (result["session_id"].clone(), steps_of(&app, &result).await);
        for _ in 0..levels {
            let subagent = subagents(&steps)[0].clone();
            assert_eq!(session(&app, &subagent["session_id"]).await["subagent_of"], above);
            (above, steps) = (subagent["session_id"].clone(), subagent["steps"].clone());
        }
        assert_eq!(subagents(&steps), Vec::<&Value>::new());
        assert_eq!(session_count(&app).await - before.0, levels + 1);
    }
    app.finish().await;
}

/// A lead and a worker that never ends by itself.
async fn endless(database: &TestDatabase, of_worker: Value, beside_it: Value) -> (TestApp, MockModel) {
    let mock = MockModel::start(|request| match request["model"].as_str().unwrap() {
        "lead" => leading(request, &[("worker", "count")]),
        _ => insatiable(request),
    })
    .await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let worker = json!({"model": "mock/worker", "tools": ["calculator"], "budget": of_worker});
    app.put_agent("worker", worker).await;
    let subagents = json!([{"agent": "worker", "budget": beside_it}]);
    let lead = json!({"model": "mock/lead", "tools": ["calculator"], "subagents": subagents});
    app.put_agent("lead", lead).await;
    (app, mock)
}

async fn its_own_budget_stops_a_subagent_and_not_the_run(database: TestDatabase) {
    let two_steps = json!({"max_steps": 2});
    let tokens = json!({"max_tokens": 60});
    for (of_worker, beside_it, reason, words) in [
        (
            two_steps.clone(),
            json!({"max_steps": 9}),
            "steps_limit_reached",
            "the steps are spent: max_steps is 2",
        ),
        (
            json!({"max_steps": 9}),
            two_steps,
            "steps_limit_reached",
            "the steps are spent: max_steps is 2",
        ),
        (
            json!({}),
            tokens,
            "token_limit_reached",
            "too little is left for a request of at least 44 tokens and its answer: max_tokens is 60",
        ),
    ] {
        let (app, mock) = endless(&database, of_worker, beside_it).await;
        let result = app.run_with(json!({"agent": "lead", "input": "go"})).await;
        assert_eq!(end(&result), ("completed", "completed", 60));
        let expected = format!(
            "results: [The agent worker was stopped before its work was done: {words}. It had said nothing yet.]"
        );
        assert_eq!(result["output_text"], expected.as_str());
        assert_eq!(requests_of(&mock.requests(), "worker").len(), 2);

        let steps = steps_of(&app, &result).await;
        assert_eq!(steps[0]["tool_executions"][0]["is_error"], false);
        let subagent = subagents(&steps)[0];
        assert_eq!(end(subagent), ("stopped", reason, 30));
        // It can go on from where it was stopped: every call has its result.
        let body = json!({"base_session_id": subagent["session_id"], "input": "on", "budget": {"max_steps": 1}});
        assert_eq!(app.run_with(body).await["stop_reason"], "steps_limit_reached");
        app.finish().await;
    }
}

async fn what_subagents_spend_is_spent_of_the_run(database: TestDatabase) {
    let (app, mock) = endless(&database, json!({}), json!({"max_tokens": 1000})).await;
    let body = json!({"agent": "lead", "input": "go", "budget": {"max_tokens": 100}});
    let result = app.run_with(body).await;
    assert_eq!(end(&result), ("stopped", "token_limit_reached", 60));
    let requests = mock.requests();
    let left: Vec<_> = requests
        .iter()
        .map(|request| {
            request["max_tokens"]
                .as_u64()
                .or(request["max_completion_tokens"].as_u64())
                .unwrap()
        })
        .collect();
    let is_within = |(sent, left): (&u64, u64)| (1..left).contains(sent);
    assert!(
        left.len() == 4 && left.iter().zip([100, 85, 70, 55]).all(is_within),
        "what is left of the run, and of it what the request takes, bounds each answer: {left:?}"
    );
    let steps = steps_of(&app, &result).await;
    assert_eq!(end(subagents(&steps)[0]), ("stopped", "token_limit_reached", 45));
    assert_eq!(session_count(&app).await, 2);
    app.finish().await;
}

async fn time_that_is_spent_stops_the_subagents_at_work(database: TestDatabase) {
    let gate = Gate::new();
    let pieces: Vec<_> = (0..3).map(|n| format!("{n} ")).collect();
    let mock = MockModel::start(move |request| match request["model"].as_str().unwrap() {
        "lead" => leading(request, &[("worker", "count")]),
        _ => Reply::HeldAtEnd(Arc::clone(&gate), pieces.clone()),
    })
    .await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("worker", json!({"model": "mock/worker"})).await;
    app.put_agent(
        "lead",
        json!({"model": "mock/lead", "subagents": [{"agent": "worker"}]}),
    )
    .await;
    let body = json!({"agent": "lead", "input": "go", "budget": {"max_seconds": 3}});
    let result = app.run_with(body).await;
    assert_members!(result, {"status": "stopped", "stop_reason": "time_limit_reached"});
    let steps = steps_of(&app, &result).await;
    let subagent = subagents(&steps)[0];
    assert_members!(subagent, {"status": "stopped", "stop_reason": "time_limit_reached"});
    let messages = steps[0]["messages"].as_array().unwrap();
    let answer = messages[1]["content"][0]["content"][0]["text"].as_str().unwrap();
    assert!(answer.ends_with("Until then it had said:]\n\n0 1 2 "), "{answer}");
    app.finish().await;
}
