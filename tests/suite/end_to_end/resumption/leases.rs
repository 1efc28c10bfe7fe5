//! Who may go on with a run: the one that holds its lease, and not for ever.

use std::sync::Arc;

use board::{Board, RedisSettings};
use serde_json::json;
use tasks::supervision::Supervisor;
use test_support::databases::{Engine, TestDatabase};
use test_support::gate::Gate;
use test_support::proxy::{Proxy, split_url};
use test_support::redis_server::PrivateServer;
use test_support::wait::until;
use values::json::Value;
use values::tenant::TenantId;

use super::world::{World, messages_of, resumed_events};
use crate::end_to_end::on_every_store;
use crate::support::gated::id;
use crate::support::members::assert_members;
use crate::support::mock_model::{Reply, last_user_text};
use crate::support::test_app::session_path;

on_every_store!(
    a_worker_that_was_taken_over_publishes_nothing,
    a_caller_whose_run_was_taken_over_gets_its_result,
    a_poison_run_fails,
    a_poison_run_does_not_take_other_runs_down,
    a_run_that_shall_end_is_not_taken_up_again,
    steps_that_only_the_board_has_count_at_the_end,
);

/// Waits at the gate before it responds to a message that begins with `wait`.
fn gated(gate: &Arc<Gate>) -> impl Fn(&Value) -> Reply + Send + 'static {
    let gate = Arc::clone(gate);
    move |request| {
        if last_user_text(request).starts_with("wait") {
            return Reply::Held(Arc::clone(&gate), "done".to_owned());
        }
        Reply::text("next")
    }
}

async fn a_worker_that_was_taken_over_publishes_nothing(database: TestDatabase) {
    let gate = Gate::new();
    let world = World::new(database, gated(&gate)).await;
    // It has no place for a second run, so it does not take its own one over.
    let first = world.replica_with(&[("queue.concurrency", "1")]).await;
    first.put_agent("worker", json!({"model": "mock/m"})).await;
    for durability in ["session", "step"] {
        let run = first
            .begin("wait", json!({"agent": "worker", "durability": durability}))
            .await;
        gate.until_waiting(1).await;
        let second = world.replica().await;
        world.expire_leases().await;
        gate.until_waiting(2).await;
        // The gate lets those pass first that came first.
        gate.open(1);
        gate.until_waiting(1).await;
        assert_eq!(second.shown(&run).await["status"], "running", "{durability}");
        gate.open(1);
        let ended = second.ended(&run).await;
        assert_members!(ended, {"status": "completed", "attempts": 2}, "{durability}");
        assert_eq!(messages_of(&second, &run).await.len(), 2, "{durability}");
        first.until_idle().await;
        assert_eq!(first.shown(&run).await, ended, "{durability}");
        // The worker that lost the run has let go of its events, too.
        let events = first.events_after(&run, 0).await;
        assert_eq!(events.last().unwrap()["type"], "run.completed", "{durability}");
        second.finish().await;
    }
    first.finish().await;
}

async fn a_caller_whose_run_was_taken_over_gets_its_result(database: TestDatabase) {
    let gate = Gate::new();
    let world = World::new(database, gated(&gate)).await;
    let first = world.replica_with(&[("queue.concurrency", "1")]).await;
    first.put_agent("worker", json!({"model": "mock/m"})).await;
    let calling = first.run_with(json!({"agent": "worker", "input": "wait", "durability": "step"}));
    let taking_over = async {
        gate.until_waiting(1).await;
        let second = world.replica().await;
        world.expire_leases().await;
        gate.until_waiting(2).await;
        gate.open(2);
        second
    };
    let (run, second) = tokio::join!(calling, taking_over);
    assert_members!(run, {"status": "completed", "attempts": 2});
    assert_eq!(second.shown(&run).await, run);
    second.finish().await;
    first.finish().await;
}

async fn a_poison_run_fails(database: TestDatabase) {
    let gate = Gate::new();
    let world = World::new(database, gated(&gate)).await;
    let limit = [("queue.max_attempts", "2")];
    let first = world.replica_with(&limit).await;
    first.put_agent("worker", json!({"model": "mock/m"})).await;
    let on_thread = || json!({"agent": "worker", "durability": "step", "thread": "t", "if_busy": "queue"});
    let run = first.begin("wait", on_thread()).await;
    gate.until_waiting(1).await;
    let next = first.begin("go", on_thread()).await;
    first.die(&world).await;
    gate.until_waiting(0).await;
    let retained = async || {
        world
            .database
            .number("select coalesce(max(last_sequence), 0) from run_events")
            .await
    };
    let before = retained().await;
    let second = world.replica_with(&limit).await;
    gate.until_waiting(1).await;
    until("what the second one tells is not kept", async || {
        retained().await > before
    })
    .await;
    second.die(&world).await;

    gate.until_waiting(0).await;
    let third = world.replica_with(&limit).await;
    let ended = third.ended(&run).await;
    assert_members!(ended, {"status": "failed", "error/code": "attempts_exhausted", "attempts": 2});
    assert_eq!(
        ended["error"]["message"],
        "2 workers have begun the run, and none has ended it"
    );
    let events = resumed_events(&third, &run, &[0]).await;
    assert_eq!(events.last().unwrap()["data"], ended);
    let reserved = third.try_get(&session_path(&run, "")).await;
    reserved.assert_problem("session_not_committed");
    // Its thread is free again.
    let next = third.ended(&next).await;
    assert_members!(next, {"status": "completed", "base_session_id": null});
    assert_eq!(world.asked().len(), 3);
    third.finish().await;
}

async fn a_poison_run_does_not_take_other_runs_down(database: TestDatabase) {
    let (gate, poison) = (Gate::new(), Gate::new());
    let (held, deadly) = (Arc::clone(&gate), Arc::clone(&poison));
    let world = World::new(database, move |request| match last_user_text(request).as_str() {
        "poison" => Reply::Held(Arc::clone(&deadly), "never".to_owned()),
        _ => Reply::Held(Arc::clone(&held), "done".to_owned()),
    })
    .await;
    let limit = [("queue.max_attempts", "3")];
    let mut replica = world.replica_with(&limit).await;
    replica.put_agent("worker", json!({"model": "mock/m"})).await;
    let killer = replica.begin("poison", json!({"agent": "worker"})).await;
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(replica.begin("wait", json!({"agent": "worker"})).await);
    }
    // Twice all of them are at work when the worker dies, and from then on only one of them at a
    // time.
    for together in [3, 3, 0] {
        gate.until_waiting(together).await;
        poison.until_waiting(1).await;
        replica.die(&world).await;
        gate.until_waiting(0).await;
        poison.until_waiting(0).await;
        replica = world.replica_with(&limit).await;
    }
    gate.open(3);
    for run in &others {
        let ended = replica.ended(run).await;
        assert_members!(ended, {"status": "completed", "attempts": 3});
    }
    let ended = replica.ended(&killer).await;
    assert_members!(ended, {"error/code": "attempts_exhausted", "attempts": 3});
    replica.finish().await;
}

async fn a_run_that_shall_end_is_not_taken_up_again(database: TestDatabase) {
    let gate = Gate::new();
    let world = World::new(database, gated(&gate)).await;
    for (action, status) in [("stop", "stopped"), ("cancel", "cancelled")] {
        let first = world.replica().await;
        first
            .put_agent("worker", json!({"model": "mock/m", "durability": "step"}))
            .await;
        let run = first.begin("wait", json!({"agent": "worker"})).await;
        gate.until_waiting(1).await;
        first.vanish(&world).await;
        gate.until_waiting(0).await;
        let asked = world.asked().len();
        // Nobody works on it, and it can be told all the same.
        let second = world.replica().await;
        let response = second.control(&run, action).await;
        assert_eq!(
            (response.status.as_u16(), &response.json()["status"]),
            (202, &json!("running")),
            "{action}"
        );
        world.expire_leases().await;
        let ended = second.ended(&run).await;
        assert_members!(ended, {"status": status, "stop_reason": "user_requested"});
        assert_eq!(world.asked().len(), asked, "no model works for a run that shall end");
        second.finish().await;
    }
}

/// A worker dies before it has persisted what it has told: other workers that end the run find it
/// on the board.
async fn steps_that_only_the_board_has_count_at_the_end(database: TestDatabase) {
    let Some(redis) = PrivateServer::start() else { return };
    let url: &'static str = redis.url().leak();
    let board = Board::open(url, RedisSettings::default(), &Supervisor::default())
        .await
        .unwrap();
    let world = World::new(database, |request| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let tool = if last["role"] == "tool" { "again" } else { "plain" };
        Reply::call("c", tool, &json!({"note": "n"}))
    })
    .await;
    for (action, max_attempts, status) in [(None, "1", "failed"), (Some("cancel"), "5", "cancelled")] {
        let settings = [("board.url", url), ("queue.max_attempts", max_attempts)];
        let first = world.replica_with(&settings).await;
        let agent = json!({"model": "mock/m", "tools": ["plain", "again"], "durability": "session"});
        first.put_agent("worker", agent).await;
        let run = first.begin("go", json!({"agent": "worker"})).await;
        world.tool_gate.until_waiting(1).await;
        let (tenant, run_id) = (TenantId::anonymous(), id(&run).parse().unwrap());
        until("the first step is not told to others", async || {
            let shown = board.event_read(&tenant, run_id, 0, 100).await.unwrap();
            let names: Vec<_> = shown.iter().map(|event| event.payload.name()).collect();
            names.contains(&"step.completed")
        })
        .await;
        first.vanish(&world).await;
        world.tool_gate.until_waiting(0).await;
        for forget in [
            "delete from run_events",
            "update runs set input_tokens = 0, output_tokens = 0, total_tokens = 0 where status = 'running'",
        ] {
            world.database.execute(forget).await.unwrap();
        }
        let second = world.replica_with(&settings).await;
        if let Some(action) = action {
            second.control(&run, action).await;
        }
        world.expire_leases().await;
        let ended = second.ended(&run).await;
        assert_members!(ended, {"status": status, "step_count": 1, "usage/total_tokens": 15});
        assert_members!(ended, {"input/0/content/0/text": "go"});
        second.finish().await;
    }
    board.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_survives_that_all_of_its_connections_go_silent() {
    let Some(database) = TestDatabase::new(Engine::Postgres).await else {
        return;
    };
    let proxy = Proxy::start(split_url(database.url()).0, "nothing holds this").await;
    let url = proxy.url(database.url()).leak();
    let gate = Gate::new();
    let world = World::new(database, gated(&gate)).await;
    let settings = [
        ("store.url", &*url),
        ("store.acquire_timeout", "7s"),
        ("queue.lease", "12s"),
        ("queue.max_attempts", "2"),
    ];
    let replica = world.replica_with(&settings).await;
    replica.put_agent("worker", json!({"model": "mock/m"})).await;
    let run = replica
        .begin("wait", json!({"agent": "worker", "durability": "step"}))
        .await;
    gate.until_waiting(1).await;
    let leased_until = async || {
        let until = "select coalesce(max(extract(epoch from leased_until))::bigint, 0) from run_queue";
        world.database.number(until).await
    };
    let before = leased_until().await;
    proxy.silence();
    // Two leases have passed, so the holder renewed it over a connection that it opened afterwards.
    until("the run is not worked on", async || leased_until().await > before + 25).await;
    gate.open(8);
    let ended = replica.ended(&run).await;
    let attempts = ended["attempts"].as_u64().unwrap();
    assert!(ended["status"] == "completed" && attempts <= 2, "{ended:#}");
    resumed_events(&replica, &run, &[0][..usize::from(attempts == 2)]).await;
    assert_eq!(messages_of(&replica, &run).await.len(), 2);
    let next = replica.begin("go", json!({"agent": "worker"})).await;
    let next = replica.ended(&next).await;
    assert_members!(next, {"status": "completed", "attempts": 1});
    replica.finish().await;
}
