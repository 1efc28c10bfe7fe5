//! Durability `session`: a run whose process dies starts over, and is the same run.

use serde_json::json;
use test_support::clock::time;
use test_support::databases::{Engine, TestDatabase};
use test_support::wait::until;
use values::json::Value;

use super::world::{World, messages_of, resumed_events};
use crate::end_to_end::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{Reply, content_text, last_user_text};

on_every_store!(
    a_run_starts_over,
    what_a_lost_attempt_has_spent_counts,
    a_run_whose_time_is_spent_does_not_start_over,
    a_run_with_tools_that_may_not_be_called_again_persists_its_steps,
    a_run_on_a_thread_starts_over_from_where_it_began,
    a_thread_stays_with_its_run_over_a_takeover
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
    let second = world.successor(first, &world.tool_gate).await;
    // The next worker runs the agent as it was at the request, not as it is now.
    second.put_agent("worker", json!({"model": "mock/other"})).await;
    let ended = second.ended(&run).await;
    assert_members!(ended, {"status": "completed", "attempts": 2, "step_count": 2});
    // One request of the lost attempt, and two of the other one.
    assert_eq!(ended["usage"]["total_tokens"], 45);
    assert_members!(ended, {"session_id": run["session_id"], "created_at": run["created_at"]});
    let m = |results| ("m".to_owned(), results);
    assert_eq!(world.asked(), [m(0), m(0), m(1)]);
    let keys = world.again.keys();
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
    resumed_events(&second, &run, &[0]).await;
    // The input is the one that was accepted, and not made anew.
    let input = &messages_of(&second, &run).await[0];
    assert!(
        time(&input["created_at"]) <= time(&ended["started_at"]),
        "{input:#} {ended:#}"
    );
    let sessions = second.get("/v1/sessions").await;
    assert_eq!(sessions["data"].as_array().unwrap().len(), 1);
    assert_members!(sessions["data"][0], {"execution_count": 1, "message_count": 4});
    second.finish().await;
}

/// The lost attempt and a subagent of it have asked a model once each.
async fn what_a_lost_attempt_has_spent_counts(database: TestDatabase) {
    let world = World::new(database, |request| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        match last_user_text(request).as_str() {
            _ if last["role"] == "tool" => Reply::text("done"),
            "go" => Reply::call("c1", "helper", &json!({"task": "help"})),
            _ => Reply::call("c2", "again", &json!({"note": "n"})),
        }
    })
    .await;
    // Two cents for each request.
    let prices = [
        ("prices.'mock/m'.input", "1000.0"),
        ("prices.'mock/m'.output", "2000.0"),
    ];
    for (budget, status, stop_reason, asked, cost) in [
        (
            json!({"max_tokens": 1_000, "max_cost": 1.0}),
            "completed",
            "completed",
            6,
            0.12,
        ),
        // What the lost attempt has spent leaves nothing for another step.
        (json!({"max_tokens": 30}), "stopped", "token_limit_reached", 2, 0.04),
        (json!({"max_cost": 0.04}), "stopped", "token_limit_reached", 2, 0.04),
    ] {
        let first = world.replica_with(&prices).await;
        first
            .put_agent("helper", json!({"model": "mock/m", "tools": ["again"]}))
            .await;
        let lead = json!({"model": "mock/m", "tools": ["again"], "subagents": [{"agent": "helper"}]});
        first.put_agent("lead", lead).await;
        let before = world.asked().len();
        let run = first.begin("go", json!({"agent": "lead", "budget": budget})).await;
        world.tool_gate.until_waiting(1).await;
        until("what is spent is persisted within seconds", async || {
            world
                .database
                .number("select max(total_tokens) from runs where status = 'running'")
                .await
                == 30
        })
        .await;
        first.die(&world).await;
        world.tool_gate.until_waiting(0).await;
        world.tool_gate.open(usize::from(status == "completed"));
        let second = world.replica_with(&prices).await;
        let ended = second.ended(&run).await;
        assert_members!(ended, {"status": status, "stop_reason": stop_reason, "attempts": 2});
        assert_eq!(world.asked().len() - before, asked);
        assert_eq!(ended["usage"]["total_tokens"], 15 * asked);
        let spent = ended["usage"]["cost"].as_f64().unwrap();
        assert!((spent - cost).abs() < 0.0001, "{spent} {cost}");
        second.finish().await;
    }
}

async fn a_run_whose_time_is_spent_does_not_start_over(database: TestDatabase) {
    let world = World::new(database, story).await;
    let first = world.replica().await;
    first.put_agent("worker", worker()).await;
    let budget = json!({"max_seconds": 3_000});
    let run = first.begin("go", json!({"agent": "worker", "budget": budget})).await;
    world.tool_gate.until_waiting(1).await;
    first.die(&world).await;
    world.tool_gate.until_waiting(0).await;
    let an_hour_ago = match world.database.engine {
        Engine::Postgres => "update runs set started_at = started_at - interval '1 hour'",
        Engine::Sqlite => "update runs set started_at = started_at - 3600000000",
    };
    world.database.execute(an_hour_ago).await.unwrap();
    let second = world.replica().await;
    let ended = second.ended(&run).await;
    assert_members!(ended, {"status": "stopped", "stop_reason": "time_limit_reached", "step_count": 0});
    assert_eq!(world.asked().len(), 1);
    second.finish().await;
}

async fn a_run_with_tools_that_may_not_be_called_again_persists_its_steps(database: TestDatabase) {
    let world = World::new(database, |request| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        if last["role"] == "tool" {
            return Reply::text("done");
        }
        Reply::call("c1", "once", &json!({"note": "n"}))
    })
    .await;
    let first = world.replica().await;
    let with_tools = |tools: Value| json!({"model": "mock/m", "tools": tools});
    for (agent, definition) in [
        ("again", with_tools(json!(["again"]))),
        ("once", with_tools(json!(["again", "once"]))),
        (
            "chosen",
            json!({"model": "mock/m", "tools": ["once"], "durability": "session"}),
        ),
        (
            "lead",
            json!({"model": "mock/m", "tools": ["again", "once"], "subagents": [{"agent": "again", "tool": "ask", "tools": ["again"]}]}),
        ),
    ] {
        first.put_agent(agent, definition).await;
    }
    let mut runs = Vec::new();
    for (body, durability) in [
        (json!({"agent": "again"}), "session"),
        (json!({"agent": "once"}), "step"),
        (json!({"agent": "lead"}), "step"),
        (json!({"agent": "chosen"}), "session"),
        (json!({"agent": "chosen", "durability": "auto"}), "step"),
        (json!({"agent": "once", "durability": "session"}), "session"),
    ] {
        let run = first.begin("go", body.clone()).await;
        assert_eq!(run["durability"], durability, "{body}");
        runs.push((run, durability));
    }
    // A light run has no other worker.
    let light = json!({"agent": "once", "input": "go", "mode": "stream"});
    let light = first.post("/v1/runs", &light);
    let (light, ()) = tokio::join!(light, async {
        world.tool_gate.until_waiting(6).await;
        world.tool_gate.open(6);
    });
    assert!(light.text().contains(r#""durability":"session""#), "{}", light.text());
    for (run, durability) in &runs {
        assert_eq!(first.ended(run).await["durability"], *durability);
    }
    first.finish().await;
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
    let second = world.successor(first, &world.tool_gate).await;
    let (ended, next) = (second.ended(&run).await, second.ended(&next).await);
    assert_members!(ended, {"status": "completed", "base_session_id": root["session_id"]});
    assert_members!(next, {"status": "completed", "base_session_id": run["session_id"]});
    let thread = second.get("/v1/threads/t").await;
    assert_eq!(thread["session_id"], next["session_id"]);
    let last = world.mock.requests().pop().unwrap();
    let said = last["messages"].as_array().unwrap().iter();
    let said = said.filter(|message| message["role"] == "user");
    let said: Vec<_> = said.map(|message| content_text(&message["content"])).collect();
    assert_eq!(said, ["hi", "go", "hi"]);
    second.finish().await;
}

async fn a_thread_stays_with_its_run_over_a_takeover(database: TestDatabase) {
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
        let position = json!({"session_id": other["session_id"]});
        let path = format!("/v1/threads/{durability}");
        replica.put(&path, &position).await.assert_problem("thread_busy");
        replica = world.successor(replica, &world.tool_gate).await;
        let ended = replica.ended(&run).await;
        assert_members!(ended, {
            "status": "completed",
            "base_session_id": root["session_id"],
            "attempts": 2,
        }, "{durability}");
        let thread = replica.get(&path).await;
        assert_eq!(thread["session_id"], ended["session_id"], "{durability}");
    }
    replica.finish().await;
}
