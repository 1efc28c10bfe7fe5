//! Runs that are leased at the moment when their worker gets the signal to shut down.

use std::sync::Arc;
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use test_support::wait::until;

use super::binary::{Home, PATIENCE};
use super::service::Service;
use crate::support::mock_model::{MockModel, Reply};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_leased_after_the_signal_is_handed_over() {
    // The result of the lease is held back, so that it arrives after the signal.
    check_handed_over("runs", 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_would_start_after_the_signal_is_handed_over() {
    // The events of an earlier worker are held back, so that the run is leased before the signal
    // and started after it.
    check_handed_over("run_events", 1).await;
}

/// Holds back what a worker reads or writes of a table, shuts the worker down meanwhile, and checks
/// that the run is queued again. `earlier` is the number of workers that handed it over before.
async fn check_handed_over(table: &str, earlier: usize) {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let gate = Gate::new();
    let behind = Arc::clone(&gate);
    let mock = MockModel::start(move |_| Reply::Held(Arc::clone(&behind), "done".to_owned())).await;
    let home = Home::new(database.url())
        .with_mock(&mock)
        .variable("AGENT_RUNTIME__QUEUE__LEASE", "10m")
        .variable("AGENT_RUNTIME__RUNS__SHUTDOWN_GRACE", "100ms");
    let api = Service::start_with(&home, &["--role", "api"]).await;
    let run = api.begin("echo", "wait").await;
    for _ in 0..earlier {
        let worker = Service::start_with(&home, &["--role", "worker"]).await;
        gate.until_waiting(1).await;
        worker.stop().await;
        gate.until_waiting(0).await;
    }

    let mut holding = PgConnection::connect(database.url()).await.unwrap();
    let mode = if table == "runs" {
        "share row exclusive"
    } else {
        "access exclusive"
    };
    let hold = format!("begin; lock table {table} in {mode} mode");
    sqlx::raw_sql(AssertSqlSafe(hold)).execute(&mut holding).await.unwrap();
    let worker = Service::start_with(&home, &["--role", "worker"]).await;
    let held = format!("select count(*) from pg_locks where not granted and relation = '{table}'::regclass");
    until("nothing is held back", async || database.number(&held).await > 0).await;
    let signalled = Instant::now();
    worker.signal("TERM");
    until("the grace is not over", async || {
        worker.log().contains("outlast the shutdown grace")
    })
    .await;
    sqlx::raw_sql("rollback").execute(&mut holding).await.unwrap();
    let ended = worker.end_within(PATIENCE).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // A machine that stands still may take longer than the worker waits for cancelled runs.
    let has_time = signalled.elapsed() < Duration::from_secs(5);
    assert!(!has_time || !ended.stderr.contains("did not end"), "{}", ended.stderr);
    let waiting = "select count(*) from run_queue where leased_until is null and attempts = 0";
    assert_eq!(database.number(waiting).await, 1, "{}", ended.stderr);
    assert_eq!(mock.asked(), earlier, "nothing was begun");

    let worker = Service::start_with(&home, &["--role", "worker"]).await;
    gate.open(1);
    let ended = api.ended(&run).await;
    assert_eq!(
        (ended["status"].as_str(), ended["attempts"].as_u64()),
        (Some("completed"), Some(1)),
        "{ended:#}"
    );
    worker.stop().await;
    api.stop().await;
}
