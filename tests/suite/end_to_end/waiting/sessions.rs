//! Waiting sessions beside everything else that is done with sessions: other replicas, changes of
//! files, comparisons, and the environment of another session.

use serde_json::json;
use test_support::databases::TestDatabase;

use super::{WaitingApp, answer_to};
use crate::end_to_end::on_every_store;
use crate::support::members::{assert_members, column};
use crate::support::test_app::session_path;

on_every_store!(
    a_replica_answers_what_another_one_has_left,
    a_session_waits_after_a_change_of_its_files,
);

async fn a_replica_answers_what_another_one_has_left(database: TestDatabase) {
    let first = WaitingApp::start(&database, &[]).await;
    let run = first
        .wait_for(json!([["c1", "look", {}], ["c2", "deploy", {"note": "x"}]]))
        .await;
    // Nothing is held in memory: the process that left the calls is gone.
    first.finish().await;
    let second = WaitingApp::start(&database, &[]).await;
    assert_eq!(second.shown(&run).await, run);
    let answers = json!([answer_to(&run, "c2", json!({"decision": "approve"}))]);
    let next = second.answer(&run, answers).await.ok();
    assert_eq!(next["output_text"], r#"read: {} | {"note":"x"}"#);
    assert_eq!((second.look.begun(), second.deploy.begun()), (0, 1));
    second.finish().await;
}

async fn a_session_waits_after_a_change_of_its_files(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let run = app.wait_for(json!([["c1", "deploy", {}]])).await;
    let session_id = run["session_id"].as_str().unwrap();
    let change = json!({"changes": [{"path": "a.txt", "content": "a"}]});
    let path = format!("/v1/sessions/{session_id}/files");
    let changed = app.post(&path, &change).await.ok();
    let child = changed["session_id"].as_str().unwrap();
    let body = json!({"base_session_id": child, "input": "x"});
    let refused = app.post("/v1/runs", &body).await;
    refused.assert_problem("answers_required");
    let problem = refused.json();
    assert_eq!(problem["required_action"], run["required_action"]);
    let body = json!({
        "base_session_id": child,
        "answers": [answer_to(&run, "c1", json!({"decision": "approve"}))],
    });
    let next = app.run_with(body).await;
    assert_members!(next, {"status": "completed", "base_session_id": child});
    let files = app.get(&session_path(&next, "/files")).await;
    assert_eq!(files["data"][0]["path"], "a.txt", "{files:#}");
    // The open step is a difference between the two sessions, until it is answered.
    let diff = format!(
        "/v1/sessions/{}/diff/{session_id}",
        next["session_id"].as_str().unwrap()
    );
    let diff = app.get(&diff).await;
    let names = column(&diff["context"], "path");
    assert!(
        names
            .iter()
            .any(|name| name.as_str().unwrap_or_default().starts_with("/waiting")),
        "{diff:#}"
    );
    app.finish().await;
}
