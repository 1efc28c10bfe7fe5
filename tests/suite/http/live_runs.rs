//! Runs at work: seen by others, left by their callers, too many at once.

use std::time::Duration;

use agent_runtime::ids::{RunId, UuidV7Source};
use agent_runtime::tenant::TenantId;
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::time::sleep;

use super::service::{MAX_RUNS, Service};
use crate::board::new_run;

on_every_store! {
    a_run_is_seen_while_it_works_and_its_session_is_not,
    a_lost_connection_cancels_its_run_which_commits_nothing,
    a_run_that_shall_go_on_outlives_its_connection,
}

async fn a_run_is_seen_while_it_works_and_its_session_is_not(service: &Service) {
    let body = json!({"input": "hi", "model": "mock/gated"});
    let running = service.post("/v1/runs", &body);
    let watching = async {
        service.gate.until_waiting(1).await;
        let list = service.get("/v1/runs?status=running").await;
        let run = list["data"][0].clone();
        let shown = service
            .get(&format!("/v1/runs/{}", run["run_id"].as_str().unwrap()))
            .await;
        assert_eq!(
            (&shown["status"], &shown["output_text"]),
            (&json!("running"), &json!(""))
        );
        let session = format!("/v1/sessions/{}", run["session_id"].as_str().unwrap());
        for path in [
            session.clone(),
            format!("{session}/messages"),
            format!("{session}/children"),
        ] {
            let answer = service.try_get(&path).await;
            answer.assert_problem("session_not_committed");
            assert_eq!(answer.json()["run_id"], run["run_id"]);
        }
        let continued = json!({"input": "hi", "base_session_id": run["session_id"]});
        service
            .post("/v1/runs", &continued)
            .await
            .assert_problem("session_not_committed");
        service.gate.open(1);
        session
    };
    let (answer, session) = tokio::join!(running, watching);
    assert_eq!(answer.ok()["status"], "completed");
    service.get(&session).await;
}

async fn a_lost_connection_cancels_its_run_which_commits_nothing(service: &Service) {
    for (mode, count) in [("sync", 1), ("stream", 2)] {
        let body = json!({"input": "hi", "model": "mock/gated", "mode": mode});
        let stream = service.open_run(&body).await;
        service.gate.until_waiting(1).await;
        drop(stream);
        service.gate.until_waiting(0).await;
        service.until_counts((0, count)).await;
        let runs = service.get("/v1/runs").await;
        assert_eq!(
            (&runs["data"][0]["status"], runs["data"].as_array().unwrap().len()),
            (&json!("cancelled"), count),
            "{mode}"
        );
    }
}

async fn a_run_that_shall_go_on_outlives_its_connection(service: &Service) {
    for (mode, count) in [("sync", 1), ("stream", 2)] {
        let body = json!({"input": "hi", "model": "mock/gated", "mode": mode, "on_disconnect": "continue"});
        let mut stream = service.open_run(&body).await;
        if mode == "stream" {
            stream.read_u8().await.unwrap();
        }
        service.gate.until_waiting(1).await;
        drop(stream);
        service.gate.open(1);
        service.until_counts((count, count)).await;
    }
}

#[tokio::test]
async fn a_run_is_found_as_soon_as_its_caller_knows_it() {
    let service = Service::start().await;
    let run = new_run(None);
    let path = format!("/v1/runs/{}", run.summary.run_id);
    let showing = async {
        // The board of another process tells of it a little later than that process told its caller.
        sleep(Duration::from_millis(100)).await;
        let tenant = TenantId::anonymous();
        service.app.board.run_open(&tenant, run, false).await.unwrap().unwrap();
    };
    let (shown, ()) = tokio::join!(service.get(&path), showing);
    assert_eq!(shown["status"], "running");
    let unknown = format!("/v1/runs/{}", RunId::generate(&UuidV7Source));
    service.try_get(&unknown).await.assert_problem("run_not_found");
}

#[tokio::test]
async fn a_run_too_many_is_told_when_to_try_again() {
    let service = Service::start().await;
    let body = json!({"input": "hi", "model": "mock/gated"});
    let running = futures_util::future::join_all((0..MAX_RUNS).map(|_| service.post("/v1/runs", &body)));
    let one_more = async {
        service.gate.until_waiting(MAX_RUNS).await;
        let answer = service.post("/v1/runs", &json!({"input": "hi"})).await;
        answer.assert_problem("too_many_runs");
        assert_eq!(answer.header("retry-after"), "1");
        service.gate.open(MAX_RUNS);
    };
    let (answers, ()) = tokio::join!(running, one_more);
    assert!(answers.iter().all(|answer| answer.status == 200));
    service.run_with(json!({"input": "hi"})).await;
    service.finish().await;
}

#[tokio::test]
async fn runs_that_begin_at_once_fill_no_queue() {
    let service = Service::start_with(&[("queue.max_waiting", "1")]).await;
    for number in 0..8 {
        let key = format!("key-{number}");
        let answer = service.post_keyed("/v1/runs", &key, &json!({"input": "hi"})).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    service.finish().await;
}

#[tokio::test]
async fn a_full_queue_is_told_when_to_try_again() {
    // Nobody takes runs from the queue.
    let service = Service::start_with(&[("queue.role", "api"), ("queue.max_waiting", "1")]).await;
    let body = json!({"input": "hi", "mode": "async"});
    let waiting = service.post("/v1/runs", &body).await;
    assert_eq!(waiting.status, 202, "{}", waiting.text());
    let answer = service.post("/v1/runs", &body).await;
    answer.assert_problem("queue_full");
    assert_ne!(answer.header("retry-after"), "");
    assert_eq!(service.counts().await, (0, 1));
    // What needs no place in the queue is none too many.
    service.run_with(json!({"input": "hi"})).await;
    let cancel = format!("/v1/runs/{}/cancel", waiting.json()["run_id"].as_str().unwrap());
    let cancelled = service.post(&cancel, &json!({})).await;
    assert_eq!(cancelled.json()["status"], "cancelled", "{}", cancelled.text());
    service.finish().await;
}
