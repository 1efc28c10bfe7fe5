//! A worker that is frozen until its leases have expired, while another one completes its runs.

use serde_json::Value;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;

use super::binary::Home;
use super::service::Service;
use crate::support::gated::assert_without_gap;
use crate::support::members::assert_members;
use crate::support::mock_model::MockModel;
use crate::support::test_app::{run_path, session_path};

const RUNS: usize = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_worker_leaves_the_runs_that_another_has_completed() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let gate = Gate::new();
    let mock = MockModel::waiting_behind(&gate).await;
    let home = Home::new(database.url())
        .with_mock(&mock)
        .variable("AGENT_RUNTIME__QUEUE__LEASE", "6s")
        .variable("AGENT_RUNTIME__RUNS__SHUTDOWN_GRACE", "1m");
    let frozen = Service::start(&home).await;
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(frozen.begin("echo", "wait").await);
    }
    gate.until_waiting(RUNS).await;
    frozen.signal("STOP");
    let other = Service::start(&home).await;
    // The requests of both workers are answered, so both have something to commit.
    gate.until_waiting(2 * RUNS).await;
    gate.open(2 * RUNS);
    let mut ended = Vec::new();
    for run in &runs {
        ended.push(other.ended(run).await);
    }
    frozen.signal("CONT");
    // It works, and ends when its runs have.
    frozen.run("echo", None, "hello").await;
    let log = frozen.stop().await.stderr;
    assert!(!log.contains("ERROR"), "{log}");
    assert!(!log.contains("exists already"), "{log}");

    for (run, ended) in runs.iter().zip(&ended) {
        assert_members!(ended, {"status": "completed", "attempts": 2, "output_text": "done"});
        assert_eq!(
            &other.get(&run_path(run, "")).await,
            ended,
            "the late worker has changed nothing"
        );
        let session = session_path(ended, "");
        assert_eq!(other.get(&session).await["message_count"], 2);
        assert_eq!(other.get(&format!("{session}/verify")).await["valid"], true);
        let events: Vec<Value> = other.follow(run, 0).await.rest().await;
        assert_without_gap(&events);
        let count = |wanted: &str| events.iter().filter(|event| event["type"] == wanted).count();
        assert_eq!((count("run.resumed"), count("run.completed")), (1, 1), "{events:#?}");
    }
    let sessions = database.number("select count(*) from sessions").await;
    assert_eq!(usize::try_from(sessions).unwrap(), RUNS + 1);
    assert_eq!(mock.asked(), 2 * RUNS + 1);
    other.stop().await;
}
