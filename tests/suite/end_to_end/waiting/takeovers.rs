//! Processes that die before, while and after a run waits, with durability `step`.

use serde_json::json;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::{answer_to, model, open_calls};
use crate::end_to_end::on_every_store;
use crate::end_to_end::resumption::world::{World, messages_of};
use crate::support::members::assert_members;
use crate::support::test_app::run_path;

on_every_store!(
    a_run_that_dies_before_it_waits_is_taken_over,
    answers_outlive_the_process_that_accepted_them,
    an_edited_call_is_not_forgotten,
);

/// The agent: the calls of `once` need an approval, those of `again` nobody.
fn worker() -> Value {
    json!({
        "model": "mock/m", "tools": ["once", "again"], "durability": "step", "client_tools": [{"name": "ask"}],
        "approvals": [{"tools": ["once"], "approval": "always"}],
    })
}

fn input() -> Value {
    json!([["c1", "again", {}], ["c2", "once", {"note": "x"}], ["c3", "ask", {}]])
}

async fn a_run_that_dies_before_it_waits_is_taken_over(database: TestDatabase) {
    let world = World::new(database, model).await;
    let first = world.replica().await;
    first.put_agent("worker", worker()).await;
    let run = first.begin(&input().to_string(), json!({"agent": "worker"})).await;
    // The call that needs nobody is at work.
    world.tool_gate.until_waiting(1).await;
    let second = world.successor(first, &world.tool_gate).await;
    let ended = second.ended(&run).await;
    assert_members!(ended, {"status": "waiting", "attempts": 2});
    assert_eq!(open_calls(&ended), ["c2", "c3"]);
    assert_eq!(
        (world.once.begun(), world.again.begun(), world.asked().len()),
        (0, 2, 1)
    );
    let events = second.events_after(&run, 0).await;
    let waiting = events.iter().filter(|event| event["type"] == "run.waiting");
    assert_eq!(waiting.count(), 1);
    second.finish().await;
}

/// Runs until the calls wait, lets a process accept the answers and die during the approved call,
/// and returns the run that another process has ended.
async fn answered(world: &World, decision: Value) -> (Value, Value) {
    let first = world.replica().await;
    first.put_agent("worker", worker()).await;
    world.tool_gate.open(1);
    let run = first.begin(&input().to_string(), json!({"agent": "worker"})).await;
    let run = first.ended(&run).await;
    assert_eq!(run["status"], "waiting", "{run:#}");
    let body = json!({"mode": "async", "input": "And then?", "answers": [
        answer_to(&run, "c2", decision),
        answer_to(&run, "c3", json!({"result": "yes"})),
    ]});
    let next = first.post(&run_path(&run, "/answers"), &body).await.ok();
    world.tool_gate.until_waiting(1).await;
    first.die(world).await;
    world.tool_gate.until_waiting(0).await;
    let second = world.replica().await;
    let ended = second.ended(&next).await;
    let messages = messages_of(&second, &ended).await;
    let history: Vec<_> = messages.iter().map(super::shown).collect();
    second.finish().await;
    (ended, json!(history))
}

async fn answers_outlive_the_process_that_accepted_them(database: TestDatabase) {
    let world = World::new(database, model).await;
    let (ended, history) = answered(&world, json!({"decision": "approve"})).await;
    assert_members!(ended, {"status": "completed", "attempts": 2});
    // The approved call may have had its effect, so it is not made again.
    assert_eq!((world.once.begun(), world.again.begun()), (1, 1));
    let results = history[2].as_str().unwrap();
    assert!(
        results.starts_with("tool result c1: done error c2: the call of once was interrupted"),
        "{history:#}"
    );
    assert!(results.ends_with("result c3: yes"), "{history:#}");
    assert_members!(history, {"3": "user And then?", "4": "assistant echo: And then?"});
    assert_eq!(history.as_array().unwrap().len(), 5);
}

async fn an_edited_call_is_not_forgotten(database: TestDatabase) {
    let world = World::new(database, model).await;
    // A process accepts the answers and begins nothing.
    let first = world.replica().await;
    first.put_agent("worker", worker()).await;
    world.tool_gate.open(1);
    let run = first.begin(&input().to_string(), json!({"agent": "worker"})).await;
    let run = first.ended(&run).await;
    first.finish().await;
    let accepting = world.replica_with(&super::super::resumption::world::ACCEPTS_ONLY).await;
    let body = json!({"mode": "async", "answers": [
        answer_to(&run, "c2", json!({"decision": "edit", "arguments": {"note": "y"}})),
        answer_to(&run, "c3", json!({"decision": "deny"})),
    ]});
    let next = accepting.post(&run_path(&run, "/answers"), &body).await.ok();
    assert_eq!(next["status"], "queued");
    accepting.finish().await;
    world.tool_gate.open(1);
    let last = world.replica().await;
    let ended = last.ended(&next).await;
    assert_eq!(ended["status"], "completed", "{ended:#}");
    let read = "read: done | [The caller changed the arguments of this call to {\"note\":\"y\"}. \
                This is its result:]\ndone | The caller denied this call.";
    assert_eq!(ended["output_text"], read);
    last.finish().await;
}
