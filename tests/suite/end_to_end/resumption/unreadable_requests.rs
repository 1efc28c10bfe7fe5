//! Accepted runs that a worker can't read: they wait for one that can, or fail, and those behind
//! them go on.

use serde_json::{Value, json};
use test_support::clock::time;
use test_support::databases::{Engine, TestDatabase};
use test_support::wait::until;

use super::world::{ACCEPTS_ONLY, World, bytes, resumed_events};
use crate::end_to_end::on_every_store;
use crate::support::gated::id;
use crate::support::members::assert_members;
use crate::support::mock_model::Reply;

on_every_store!(
    a_request_of_a_newer_version_waits_for_one_that_reads_it,
    a_request_that_no_worker_can_read_fails_and_others_go_on,
    a_base_that_is_gone_before_its_run_begins_fails_it,
    times_of_a_run_stay_in_order_when_clocks_differ,
);

/// The condition on the rows of a run.
fn of_run(database: &TestDatabase, run: &Value) -> String {
    match database.engine {
        Engine::Postgres => format!("run_id = '{}'", id(run)),
        Engine::Sqlite => format!("run_id = x'{}'", id(run).replace('-', "")),
    }
}

async fn world(database: TestDatabase) -> World {
    let world = World::new(database, |_| Reply::text("done")).await;
    let first = world.replica_with(&ACCEPTS_ONLY).await;
    first.put_agent("worker", json!({"model": "mock/m"})).await;
    first.finish().await;
    world
}

async fn a_request_of_a_newer_version_waits_for_one_that_reads_it(database: TestDatabase) {
    let world = world(database).await;
    let front = world.replica_with(&ACCEPTS_ONLY).await;
    let run = front.begin("first", json!({"agent": "worker"})).await;
    let given_up = front.begin("second", json!({"agent": "worker"})).await;
    let newer = bytes(&world.database, "in words of its own");
    let execute = async |sql: String| world.database.execute(&sql).await.unwrap();
    execute("create table kept as select run_id, schema_version, encoding, request from run_queue".to_owned()).await;
    execute(format!(
        "update run_queue set schema_version = 99, encoding = 0, request = {newer}"
    ))
    .await;

    let worker = world.replica_with(&[("queue.max_attempts", "1")]).await;
    // Deferred anew, after its lease was made to expire.
    let deferred = "select count(*) from run_queue where owner is null and leased_until > enqueued_at and attempts = 0";
    for _ in 0..4 {
        until("the runs are not deferred", async || {
            world.database.number(deferred).await == 2
        })
        .await;
        world.expire_leases().await;
    }
    until("the runs are not deferred", async || {
        world.database.number(deferred).await == 2
    })
    .await;
    let shown = worker.shown(&run).await;
    assert_members!(shown, {"status": "queued", "attempts": 0});
    assert_eq!(world.asked(), []);
    // A caller can end such a run without waiting for a newer version.
    worker.control(&given_up, "cancel").await;
    assert_eq!(worker.ended(&given_up).await["status"], "cancelled");

    let run_id = of_run(&world.database, &run);
    execute(format!(
        "update run_queue set schema_version = (select schema_version from kept where {run_id}),
            encoding = (select encoding from kept where {run_id}),
            request = (select request from kept where {run_id})"
    ))
    .await;
    world.expire_leases().await;
    let ended = worker.ended(&run).await;
    assert_members!(ended, {"status": "completed", "attempts": 1});
    // Nobody had begun it.
    resumed_events(&worker, &run, &[]).await;
    front.finish().await;
    worker.finish().await;
}

async fn a_base_that_is_gone_before_its_run_begins_fails_it(database: TestDatabase) {
    let world = world(database).await;
    let front = world.replica_with(&ACCEPTS_ONLY).await;
    let root = front.run_with(json!({"agent": "worker", "input": "root"})).await;
    let run = front
        .begin(
            "next",
            json!({"agent": "worker", "base_session_id": root["session_id"]}),
        )
        .await;
    world.database.execute("delete from sessions").await.unwrap();
    let worker = world.replica().await;
    let ended = worker.ended(&run).await;
    let error = &ended["error"];
    assert_eq!(
        (&ended["status"], &error["code"], &error["phase"]),
        (&json!("failed"), &json!("base_session_removed"), &json!("load")),
        "{ended:#}"
    );
    front.finish().await;
    worker.finish().await;
}

async fn a_request_that_no_worker_can_read_fails_and_others_go_on(database: TestDatabase) {
    let world = world(database).await;
    let front = world.replica_with(&ACCEPTS_ONLY).await;
    for spoil in [
        format!("encoding = 0, request = {}", bytes(&world.database, "{\"request\":")),
        format!(
            "encoding = 0, request = {}",
            bytes(&world.database, r#"{"request":{}}"#)
        ),
        "encoding = -1".to_owned(),
    ] {
        let on_thread = || json!({"agent": "worker", "thread": "t", "if_busy": "queue"});
        let run = front.begin("first", on_thread()).await;
        let sql = format!("update run_queue set {spoil} where {}", of_run(&world.database, &run));
        world.database.execute(&sql).await.unwrap();
        let next = front.begin("second", on_thread()).await;
        let other = front.begin("third", json!({"agent": "worker"})).await;

        let worker = world.replica_with(&[("queue.concurrency", "1")]).await;
        assert_eq!(worker.ended(&other).await["status"], "completed", "{spoil}");
        for attempts in 1..3 {
            let tried = format!("select count(*) from run_queue where attempts = {attempts} and owner is not null");
            until("it is not tried", async || world.database.number(&tried).await == 1).await;
            assert_eq!(worker.shown(&run).await["status"], "running", "{spoil}");
            world.expire_leases().await;
        }
        let ended = worker.ended(&run).await;
        assert_members!(ended, {"status": "failed", "error/code": "request_unusable", "attempts": 3}, "{spoil}");
        assert_eq!(worker.events_after(&run, 0).await.last().unwrap()["data"], ended);
        assert_eq!(worker.ended(&next).await["status"], "completed", "{spoil}");
        worker.finish().await;
    }
    front.finish().await;
}

async fn times_of_a_run_stay_in_order_when_clocks_differ(database: TestDatabase) {
    let world = world(database).await;
    let front = world.replica_with(&ACCEPTS_ONLY).await;
    for is_readable in [true, false] {
        let run = front.begin("first", json!({"agent": "worker"})).await;
        // It was accepted where the clock is an hour ahead.
        let later = match world.database.engine {
            Engine::Postgres => "created_at + interval '1 hour'",
            Engine::Sqlite => "created_at + 3600000000",
        };
        let sql = format!(
            "update runs set created_at = {later} where {}",
            of_run(&world.database, &run)
        );
        world.database.execute(&sql).await.unwrap();
        if !is_readable {
            let sql = format!(
                "update run_queue set encoding = -1, attempts = 2 where {}",
                of_run(&world.database, &run)
            );
            world.database.execute(&sql).await.unwrap();
        }
        let worker = world.replica().await;
        let ended = worker.ended(&run).await;
        let times = ["created_at", "started_at", "completed_at"].map(|name| time(&ended[name]));
        assert!(times[0] > time(&run["created_at"]), "{times:?}");
        assert!(times.is_sorted(), "{times:?}");
        let events = worker.events_after(&run, 0).await;
        assert_eq!(events[0]["data"]["started_at"], ended["started_at"]);
        assert_eq!(events.last().unwrap()["data"], ended);
        worker.finish().await;
    }
    front.finish().await;
}
