//! Durability `session`: a run whose process dies starts over, and is the same run.

use agent_runtime::json::Value;
use serde_json::json;

use super::world::{World, messages_of, resumed_events};
use crate::end_to_end::on_every_store;
use crate::support::databases::TestDatabase;
use crate::support::mock_model::{Reply, content_text, last_user_text};
use crate::support::wait::until;

on_every_store!(
    a_run_starts_over,
    a_run_on_a_thread_starts_over_from_where_it_began,
    a_thread_that_is_moved_meanwhile_changes_nothing_for_its_run
);

fn story(request: &Value) -> Reply {
    let messages = request["messages"].as_array().unwrap();
    let last = messages.last().unwrap();
    if last["role"] == "tool" || last_user_text(request) == "hi" {
        return Reply::text("done");
    }
    Reply::call("c1", "again", &json!({"note": "n"}))
}

fn worker() -> Value {
    json!({"model": "mock/m", "tools": ["again"]})
}

async fn a_run_starts_over(database: TestDatabase) {
    let world = World::new(database, story).await;
    let first = world.replica().await;
    first.put_agent("worker", worker()).await;
    let run = first.begin("go", json!({"agent": "worker"})).await;
    world.tool_gate.until_waiting(1).await;
    until("events are kept by the second", async || {
        world.database.number("select count(*) from run_events").await > 0
    })
    .await;
    first.die(&world).await;
    world.tool_gate.until_waiting(0).await;
    world.tool_gate.open(1);
    let second = world.replica().await;
    // Whoever works on it next does it as it was asked, not as the agent is by then.
    second.put_agent("worker", json!({"model": "mock/other"})).await;
    let ended = second.ended(&run).await;
    assert_eq!(
        (&ended["status"], &ended["attempts"], &ended["step_count"]),
        (&json!("completed"), &json!(2), &json!(2)),
        "{ended:#}"
    );
    assert_eq!(ended["usage"]["total_tokens"], 30);
    assert_eq!(
        (&ended["session_id"], &ended["created_at"]),
        (&run["session_id"], &run["created_at"])
    );
    let m = |results| ("m".to_owned(), results);
    assert_eq!(world.asked(), [m(0), m(0), m(1)]);
    let keys = world.again.keys();
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
    resumed_events(&second, &run, &[0]).await;
    // The input is the one that was accepted, and not made anew.
    let input = &messages_of(&second, &run).await[0];
    assert!(
        input["created_at"].as_str() <= ended["started_at"].as_str(),
        "{input:#} {ended:#}"
    );
    let sessions = second.get("/v1/sessions").await;
    assert_eq!(sessions["data"].as_array().unwrap().len(), 1);
    assert_eq!(
        (
            &sessions["data"][0]["execution_count"],
            &sessions["data"][0]["message_count"]
        ),
        (&json!(1), &json!(4))
    );
    second.finish().await;
}

async fn a_run_on_a_thread_starts_over_from_where_it_began(database: TestDatabase) {
    let world = World::new(database, story).await;
    let first = world.replica().await;
    first.put_agent("worker", worker()).await;
    let on_thread = || json!({"agent": "worker", "thread": "t", "if_busy": "queue"});
    let root = first.begin("hi", on_thread()).await;
    first.ended(&root).await;
    let run = first.begin("go", on_thread()).await;
    world.tool_gate.until_waiting(1).await;
    let next = first.begin("hi", on_thread()).await;
    first.die(&world).await;
    world.tool_gate.until_waiting(0).await;
    world.tool_gate.open(1);
    let second = world.replica().await;
    let (ended, next) = (second.ended(&run).await, second.ended(&next).await);
    assert_eq!(
        (&ended["status"], &ended["base_session_id"]),
        (&json!("completed"), &root["session_id"])
    );
    assert_eq!(
        (&next["status"], &next["base_session_id"]),
        (&json!("completed"), &run["session_id"])
    );
    let thread = second.get("/v1/threads/t").await;
    assert_eq!(thread["session_id"], next["session_id"]);
    let last = world.mock.requests().pop().unwrap();
    let said = last["messages"].as_array().unwrap().iter();
    let said = said.filter(|message| message["role"] == "user");
    let said: Vec<_> = said.map(|message| content_text(&message["content"])).collect();
    assert_eq!(said, ["hi", "go", "hi"]);
    second.finish().await;
}

async fn a_thread_that_is_moved_meanwhile_changes_nothing_for_its_run(database: TestDatabase) {
    let world = World::new(database, story).await;
    let mut replica = world.replica().await;
    replica.put_agent("worker", worker()).await;
    for durability in ["session", "step"] {
        let body = |thread: &str| json!({"agent": "worker", "thread": thread, "durability": durability});
        let (root, other) = (
            replica.begin("hi", body(durability)).await,
            replica.begin("hi", body("elsewhere")).await,
        );
        replica.ended(&root).await;
        replica.ended(&other).await;
        let run = replica.begin("go", body(durability)).await;
        world.tool_gate.until_waiting(1).await;
        let place = json!({"session_id": other["session_id"]});
        let moved = replica.put(&format!("/v1/threads/{durability}"), &place).await;
        assert!(moved.status.is_success(), "{}", moved.text());
        replica.die(&world).await;
        world.tool_gate.until_waiting(0).await;
        world.tool_gate.open(1);
        replica = world.replica().await;
        let ended = replica.ended(&run).await;
        assert_eq!(
            (&ended["status"], &ended["base_session_id"], &ended["attempts"]),
            (&json!("completed"), &root["session_id"], &json!(2)),
            "{durability}: {ended:#}"
        );
        // Who moved the thread meant it.
        let thread = replica.get(&format!("/v1/threads/{durability}")).await;
        assert_eq!(thread["session_id"], other["session_id"], "{durability}");
    }
    replica.finish().await;
}
