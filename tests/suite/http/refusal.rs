//! The id of a run where a session is wanted, and the reverse: the problem names the other.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use test_support::databases::{Engine, TestDatabase};
use test_support::redis_server::PrivateServer;

use super::service::{NOWHERE, Service};
use crate::support::answer::{Answer, read, with_json};
use crate::support::gated::GatedApp;

on_every_store! {
    the_id_of_a_run_leads_to_its_session,
    the_id_of_a_session_leads_to_its_run,
}

/// Returns the ids of a run and of its session.
async fn ids(service: &Service) -> [String; 2] {
    let run = service.run_with(json!({"input": "hi"})).await;
    ["run_id", "session_id"].map(|name| run[name].as_str().unwrap().to_owned())
}

fn assert_problem(answer: &Answer, code: &str, detail: &str) {
    answer.assert_problem(code);
    assert_eq!(answer.json()["detail"], detail);
}

async fn the_id_of_a_run_leads_to_its_session(service: &Service) {
    let [run_id, session_id] = ids(service).await;
    for (id, reported) in [
        (
            run_id.as_str(),
            format!(": it is the id of a run, whose session is {session_id}"),
        ),
        (NOWHERE, String::new()),
    ] {
        let detail = format!("there is no session {id}{reported}");
        for path in ["", "?include=", "/messages", "/lineage"] {
            let answer = service.try_get(&format!("/v1/sessions/{id}{path}")).await;
            assert_problem(&answer, "session_not_found", &detail);
        }
        for (method, path, body) in [
            (Method::POST, "/v1/runs", json!({"input": "hi", "base_session_id": id})),
            (Method::PUT, "/v1/threads/t", json!({"session_id": id})),
        ] {
            let answer = read(with_json(service.request(method, path), &body)).await;
            assert_problem(&answer, "session_not_found", &detail);
        }
    }
}

async fn the_id_of_a_session_leads_to_its_run(service: &Service) {
    let [run_id, session_id] = ids(service).await;
    let session: Value = service.get(&format!("/v1/sessions/{session_id}")).await;
    let import = json!({
        "agent": session["agent"],
        "message_history_state": session["message_history_state"],
    });
    let imported = read(with_json(service.request(Method::POST, "/v1/sessions"), &import))
        .await
        .ok();
    let imported = imported["session_id"].as_str().unwrap();
    for (id, reported) in [
        (
            session_id.as_str(),
            format!(": it is the id of a session, which the run {run_id} has made"),
        ),
        (imported, ": it is the id of a session".to_owned()),
        (NOWHERE, String::new()),
    ] {
        let detail = format!("there is no run {id}{reported}");
        for path in ["", "/steps", "/events"] {
            let answer = service.try_get(&format!("/v1/runs/{id}{path}")).await;
            assert_problem(&answer, "run_not_found", &detail);
        }
        for path in ["stop", "cancel"] {
            let answer = read(service.request(Method::POST, &format!("/v1/runs/{id}/{path}"))).await;
            assert_problem(&answer, "run_not_found", &detail);
        }
    }
}

#[tokio::test]
async fn a_replica_refuses_an_unknown_session_without_waiting_for_a_run() {
    let (Some(database), Some(redis)) = (TestDatabase::new(Engine::Postgres).await, PrivateServer::start()) else {
        return;
    };
    let app = GatedApp::start(&database, &[("board.url", &redis.url())]).await;
    // The service waits up to a second for a run that another replica has just begun. A busy
    // machine may be as slow now and then.
    let path = format!("/v1/sessions/{NOWHERE}");
    let mut is_quick = false;
    for _ in 0..5 {
        let began = Instant::now();
        app.try_get(&path).await.assert_problem("session_not_found");
        is_quick |= began.elapsed() < Duration::from_secs(1);
    }
    assert!(is_quick);
    app.finish().await;
}
