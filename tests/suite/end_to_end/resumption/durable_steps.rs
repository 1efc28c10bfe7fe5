//! Durability `step`: completed steps are not made again, and calls only where that is harmless.

use std::sync::Arc;

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use values::json::Value;

use super::world::{World, execution_of, messages_of, resumed_events, steps_of};
use crate::end_to_end::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{Reply, content_text, last_user_text, tool_results};

on_every_store!(
    a_run_goes_on_after_its_last_completed_step,
    a_run_that_was_taken_over_ends_as_one_that_was_not,
    a_message_to_the_run_is_read_once,
);

/// Three steps: a call, two calls at once, an answer. It waits at the gate if the input says so.
fn story(request: &Value, gate: &Arc<Gate>) -> Reply {
    let messages = request["messages"].as_array().unwrap();
    let calls = messages
        .iter()
        .filter(|message| message["tool_calls"].is_array())
        .count();
    let call = |id: &str, tool: &str| (id.to_owned(), tool.to_owned(), json!({"note": id}).to_string());
    match calls {
        0 => Reply::ToolCalls(vec![call("c1", "plain")]),
        1 => Reply::ToolCalls(vec![call("c2", "once"), call("c3", "again")]),
        _ if last_user_text(request).starts_with("wait") => Reply::Held(Arc::clone(gate), "done".to_owned()),
        _ => Reply::text("done"),
    }
}

/// The definition of the agent.
fn worker() -> Value {
    json!({"model": "mock/m", "tools": ["plain", "once", "again"], "durability": "step"})
}

/// The results of calls that the model has read.
fn results(world: &World) -> Vec<String> {
    tool_results(&world.mock.requests().pop().unwrap())
}

async fn a_run_goes_on_after_its_last_completed_step(database: TestDatabase) {
    let model_gate = Gate::new();
    let gate = Arc::clone(&model_gate);
    let world = World::new(database, move |request| story(request, &gate)).await;
    let first = world.replica().await;
    first.put_agent("worker", worker()).await;
    let run = first.begin("wait", json!({"agent": "worker"})).await;
    world.tool_gate.until_waiting(2).await;
    first.die(&world).await;

    // The second one makes the call that may be repeated, and comes to the model's last answer.
    world.tool_gate.until_waiting(0).await;
    world.tool_gate.open(1);
    let second = world.replica().await;
    model_gate.until_waiting(1).await;
    let shown = second.shown(&run).await;
    assert_members!(shown, {"status": "running", "attempts": 2, "step_count": 2, "usage/total_tokens": 30});
    let third = world.successor(second, &model_gate).await;
    let ended = third.ended(&run).await;
    assert_members!(ended, {"status": "completed", "attempts": 3, "output_text": "done", "step_count": 3});
    // The answer that was asked for twice is counted once: the first one never came.
    assert_eq!(ended["usage"]["total_tokens"], 45);
    let m = |results| ("m".to_owned(), results);
    assert_eq!(world.asked(), [m(0), m(1), m(3), m(3)]);
    assert_eq!(
        (world.plain.begun(), world.once.begun(), world.again.begun()),
        (1, 1, 2)
    );
    let keys = world.again.keys();
    assert_eq!(keys[0], keys[1]);
    let read = results(&world);
    assert_eq!((read[0].as_str(), read[2].as_str()), ("plainly done", "done"));
    assert!(read[1].contains("its effect is uncertain"), "{}", read[1]);

    let events = resumed_events(&third, &run, &[1, 2]).await;
    execution_of(&events);
    let completed = events.iter().filter(|event| event["type"] == "step.completed");
    let completed: Vec<_> = completed
        .map(|event| event["data"]["step_number"].as_u64().unwrap())
        .collect();
    assert_eq!(completed, [1, 2, 3]);
    let steps = steps_of(&third, &run).await;
    assert_eq!(steps.as_array().unwrap().len(), 3, "{steps:#}");
    let sessions = third.get("/v1/sessions").await;
    assert_eq!(sessions["data"].as_array().unwrap().len(), 1);
    assert_eq!(sessions["data"][0]["execution_count"], 1);
    third.finish().await;
}

async fn a_run_that_was_taken_over_ends_as_one_that_was_not(database: TestDatabase) {
    let model_gate = Gate::new();
    let gate = Arc::clone(&model_gate);
    let world = World::new(database, move |request| story(request, &gate)).await;
    let first = world.replica().await;
    first.put_agent("worker", worker()).await;
    world.tool_gate.open(2);
    let spared = first.begin("wait", json!({"agent": "worker"})).await;
    model_gate.until_waiting(1).await;
    model_gate.open(1);
    let spared = first.ended(&spared).await;
    world.tool_gate.open(2);
    let run = first.begin("wait", json!({"agent": "worker"})).await;
    model_gate.until_waiting(1).await;
    let second = world.successor(first, &model_gate).await;
    let ended = second.ended(&run).await;
    for same in [
        "status",
        "stop_reason",
        "output_text",
        "step_count",
        "usage",
        "agent_version",
        "error",
    ] {
        assert_eq!(ended[same], spared[same], "{same}");
    }
    assert_eq!((&spared["attempts"], &ended["attempts"]), (&json!(1), &json!(2)));
    assert_eq!(steps_of(&second, &run).await, steps_of(&second, &spared).await);
    let reported = async |run: &Value| -> Vec<(String, Value)> {
        let messages = messages_of(&second, run).await;
        let reported = messages
            .iter()
            .map(|message| (message["role"].to_string(), message["content"].clone()));
        reported.collect()
    };
    assert_eq!(reported(&run).await, reported(&spared).await);
    resumed_events(&second, &run, &[2]).await;
    second.finish().await;
}

async fn a_message_to_the_run_is_read_once(database: TestDatabase) {
    let model_gate = Gate::new();
    let gate = Arc::clone(&model_gate);
    let world = World::new(database, move |request| story(request, &gate)).await;
    let first = world.replica().await;
    first.put_agent("worker", worker()).await;
    let run = first.begin("wait", json!({"agent": "worker"})).await;
    world.tool_gate.until_waiting(2).await;
    first.steer(&run, "m1", "wait, be brief").await;
    world.tool_gate.open(2);
    // The message has joined the conversation by then.
    model_gate.until_waiting(1).await;
    let second = world.successor(first, &model_gate).await;
    let ended = second.ended(&run).await;
    assert_members!(ended, {"status": "completed", "step_count": 3});
    let messages = messages_of(&second, &run).await;
    let said = messages.iter().filter(|message| message["role"] == "user");
    let said: Vec<_> = said.map(|message| content_text(&message["content"])).collect();
    assert_eq!(said, ["wait", "wait, be brief"]);
    let late = second.steer(&run, "m1", "wait, be brief").await;
    assert_eq!(late.json()["status"], "applied", "{}", late.text());
    second.finish().await;
}
