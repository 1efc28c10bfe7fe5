//! The events of subagents, where the caller asks for them, and those that say why an execution
//! ended and what hooks changed.

use serde_json::json;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::leading;
use crate::end_to_end::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, new_results};
use crate::support::test_app::TestApp;

on_every_store!(
    the_steps_of_subagents_are_streamed_nested_where_the_caller_asks,
    a_stop_is_reported_with_its_source_message_and_figures,
    changes_of_a_hook_are_emitted,
);

async fn start(database: &TestDatabase) -> (TestApp, MockModel) {
    let mock = MockModel::start(|request| match request["model"].as_str().unwrap() {
        "top" => leading(request, &[("mid", "a")]),
        "mid" if new_results(request).is_empty() => leading(request, &[("low", "b")]),
        _ => Reply::text("fine"),
    })
    .await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("low", json!({"model": "mock/low"})).await;
    app.put_agent("mid", json!({"model": "mock/mid", "subagents": [{"agent": "low"}]}))
        .await;
    app.put_agent("top", json!({"model": "mock/top", "subagents": [{"agent": "mid"}]}))
        .await;
    (app, mock)
}

/// The types of nested events, with the depth of each.
fn nested(events: &[Value]) -> Vec<(u64, &str)> {
    let nested = events.iter().filter(|event| event["type"] == "subagent.event");
    nested
        .map(|event| {
            let data = &event["data"];
            (data["depth"].as_u64().unwrap(), data["event"]["type"].as_str().unwrap())
        })
        .filter(|(_, name)| !name.starts_with("model.") && name.split('.').next_back() != Some("delta"))
        .collect()
}

async fn the_steps_of_subagents_are_streamed_nested_where_the_caller_asks(database: TestDatabase) {
    let (app, _mock) = start(&database).await;
    for durability in ["session", "step"] {
        let body = json!({"agent": "top", "input": "go", "durability": durability, "events": {"subagents": true}});
        let events = app.stream(body).await;
        let last = events.last().unwrap();
        assert_members!(last, {"type": "run.completed", "data/step_count": 2});
        let whole = [
            "execution.started",
            "step.started",
            "step.completed",
            "continuation.evaluated",
        ];
        let expected: Vec<(u64, &str)> = [
            whole[..2].iter().map(|name| (1, *name)).collect::<Vec<_>>(),
            vec![
                (1, "tool_call.started"),
                (1, "tool_call.requested"),
                (1, "subagent.started"),
            ],
            whole.iter().map(|name| (2, *name)).collect(),
            vec![
                (2, "execution.ended"),
                (1, "subagent.completed"),
                (1, "tool_call.completed"),
            ],
            whole[2..].iter().map(|name| (1, *name)).collect(),
            whole[1..].iter().map(|name| (1, *name)).collect(),
            vec![(1, "execution.ended")],
        ]
        .concat();
        assert_eq!(nested(&events), expected, "{durability}");

        // The run's own events name the same agents and calls.
        let data_of = |name: &str| {
            let found = events.iter().find(|event| event["type"] == name);
            found.unwrap_or_else(|| panic!("no {name}"))["data"].clone()
        };
        let (started, first) = (data_of("subagent.started"), data_of("subagent.event"));
        assert_eq!(started["call_id"], "c0");
        for field in ["agent_id", "call_id", "step_number"] {
            assert_eq!(first[field], started[field], "{field}");
        }
        let below = events
            .iter()
            .find(|event| event["data"]["event"]["type"] == "subagent.started")
            .unwrap();
        let deepest = events.iter().find(|event| event["data"]["depth"] == 2).unwrap();
        assert_eq!(deepest["data"]["agent_id"], below["data"]["event"]["data"]["agent_id"]);
        // Numbers of events have no gap, and the trace is the same.
        let numbers: Vec<_> = events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    }
    let events = app.stream(json!({"agent": "top", "input": "go"})).await;
    assert_eq!(nested(&events), []);
    app.finish().await;
}

async fn a_stop_is_reported_with_its_source_message_and_figures(database: TestDatabase) {
    let (app, _mock) = start(&database).await;
    let body = json!({"agent": "top", "input": "go", "budget": {"max_steps": 1}});
    let events = app.stream(body).await;
    let signal = json!({
        "reason": "steps_limit_reached", "source": "budget", "message": "the steps are spent: max_steps is 1",
        "context": {"max_steps": 1},
    });
    for name in ["continuation.evaluated", "execution.ended"] {
        let event = events.iter().rev().find(|event| event["type"] == name).unwrap();
        for field in ["reason", "source", "message", "context"] {
            assert_eq!(event["data"][field], signal[field], "{name} {field}");
        }
    }
    let last = events.last().unwrap();
    assert_members!(last, {"type": "run.stopped", "data/stop_signal": signal});
    // It is stored with the run.
    let run_id = last["data"]["run_id"].as_str().unwrap();
    app.until_idle().await;
    let stored = app.get(&format!("/v1/runs/{run_id}")).await;
    assert_eq!(stored["stop_signal"], signal);

    let completed = app.run_with(json!({"agent": "low", "input": "go"})).await;
    assert_eq!(completed["stop_signal"], Value::Null);
    app.finish().await;
}

async fn changes_of_a_hook_are_emitted(database: TestDatabase) {
    let (app, _mock) = start(&database).await;
    let hooks = json!([{"name": "context_config", "config": {"system_prompt": "Be brief."}}]);
    app.put_agent("brief", json!({"model": "mock/low", "hooks": hooks}))
        .await;
    let reported = async |body: Value| {
        let events = app.stream(body).await;
        let changed = events.into_iter().filter(|event| event["type"] == "state.changed");
        changed.map(|event| event["data"].clone()).collect::<Vec<_>>()
    };
    let changed = json!({
        "step_number": 1, "hook": "context_config", "point": "before_execution", "changes": ["system_prompt"],
    });
    assert_eq!(reported(json!({"agent": "brief", "input": "go"})).await, [changed]);
    // Nothing is told where nothing changes.
    assert_eq!(
        reported(json!({"agent": "low", "input": "go"})).await,
        Vec::<Value>::new()
    );
    app.finish().await;
}
