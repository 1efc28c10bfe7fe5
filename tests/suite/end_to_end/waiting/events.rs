//! The events and webhook messages of a waiting run, in every mode.

use serde_json::json;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::{WaitingApp, answer_to, mixed};
use crate::end_to_end::on_every_store;
use crate::support::gated::assert_without_gap;
use crate::support::members::assert_members;
use crate::support::test_app::run_path;

on_every_store!(
    a_waiting_run_has_one_terminal_event,
    every_mode_and_durability_waits,
    a_replay_is_the_same_run
);

/// The types of events, without those that differ from run to run.
fn types(events: &[Value]) -> Vec<&str> {
    let types = events.iter().map(|event| event["type"].as_str().unwrap());
    types
        .filter(|name| !name.contains(".delta") && !name.starts_with("model."))
        .collect()
}

async fn a_waiting_run_has_one_terminal_event(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let events = app
        .stream(json!({"agent": "asker", "input": mixed().to_string()}))
        .await;
    assert_eq!(
        types(&events),
        [
            "run.started",
            "execution.started",
            "step.started",
            "tool_call.started",
            "tool_call.started",
            "tool_call.started",
            "tool_call.started",
            "tool_call.requested",
            "tool_call.requested",
            "tool_call.requested",
            "tool_call.requested",
            "tool_call.completed",
            "tool_call.completed",
            "step.completed",
            "continuation.evaluated",
            "execution.ended",
            "session.committed",
            "run.waiting",
        ]
    );
    let ended = &events[events.len() - 3]["data"];
    assert_members!(ended, {"status": "waiting", "reason": "answer_required"});
    let run = events.last().unwrap()["data"].clone();
    assert_eq!(run["required_action"]["calls"].as_array().unwrap().len(), 2);
    assert_eq!(app.shown(&run).await, run);

    let body = json!({"mode": "stream", "answers": [
        answer_to(&run, "c2", json!({"result": {"choice": "yes"}})),
        answer_to(&run, "c3", json!({"decision": "approve"})),
    ]});
    let answer = app.post(&run_path(&run, "/answers"), &body).await;
    let events = crate::support::test_app::sse_data(&answer.text());
    assert_without_gap(&events);
    assert_eq!(
        types(&events),
        [
            "run.started",
            "execution.started",
            "step.started",
            "tool_call.requested",
            "tool_call.completed",
            "tool_call.completed",
            "step.completed",
            "continuation.evaluated",
            "step.started",
            "step.completed",
            "continuation.evaluated",
            "execution.ended",
            "session.committed",
            "run.completed",
        ]
    );
    app.finish().await;
}

async fn every_mode_and_durability_waits(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    for durability in ["session", "step"] {
        let body = json!({"agent": "asker", "input": mixed().to_string(), "mode": "async", "durability": durability});
        let run = app.post("/v1/runs", &body).await.ok();
        let run = app.ended(&run).await;
        assert_eq!(run["status"], "waiting");
        let events = app.events_after(&run, 0).await;
        assert_eq!(events.last().unwrap()["type"], "run.waiting");
        assert_eq!(
            events.last().unwrap()["data"]["required_action"],
            run["required_action"]
        );
        let listed = app.get("/v1/runs?status=waiting").await;
        assert_eq!(listed["data"][0]["run_id"], run["run_id"]);

        let body = json!({"mode": "async", "durability": durability, "answers": [
            answer_to(&run, "c2", json!({"result": {"choice": "yes"}})),
            answer_to(&run, "c3", json!({"decision": "approve"})),
        ]});
        let next = app.post(&run_path(&run, "/answers"), &body).await.ok();
        let next = app.ended(&next).await;
        let read = r#"read: {"note":"a"} | {"choice":"yes"} | {"note":"b"} | {"note":"c"}"#;
        assert_members!(next, {"status": "completed", "output_text": read});
    }
    app.finish().await;
}

async fn a_replay_is_the_same_run(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let body = json!({"agent": "asker", "input": json!([["c1", "deploy", {}]]).to_string()});
    let run = app.post_keyed("/v1/runs", "k1", &body).await.ok();
    assert_eq!(app.post_keyed("/v1/runs", "k1", &body).await.ok(), run);
    let path = run_path(&run, "/answers");
    let body = json!({"answers": [answer_to(&run, "c1", json!({"decision": "approve"}))]});
    // Both requests at once: one run.
    let (left, right) = tokio::join!(app.post_keyed(&path, "k2", &body), app.post_keyed(&path, "k2", &body));
    let (left, right) = (left.ok(), right.ok());
    assert_members!(left, {"run_id": right["run_id"], "status": "completed"});
    let again = app.post_keyed(&path, "k2", &body).await;
    assert_eq!(again.header("idempotency-replayed"), "true");
    assert_eq!(again.ok()["run_id"], left["run_id"]);
    assert_eq!(app.deploy.begun(), 1);
    let other = json!({"answers": [answer_to(&run, "c1", json!({"decision": "deny"}))]});
    app.post_keyed(&path, "k2", &other)
        .await
        .assert_problem("idempotency_key_reused");
    app.finish().await;
}
