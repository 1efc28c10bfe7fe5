//! A commit that took effect and whose answer was lost: what the caller is told is what is stored.

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::proxy::{Proxy, split_url};

use crate::support::members::assert_members;
use crate::support::mock_model::MockModel;
use crate::support::test_app::{TestApp, run_path, session_path};

/// In the metadata of a run; PostgreSQL gets it as it is, in the statement that commits.
const MARK: &str = "lose-the-answer-to-this";

/// Runs once with the answer to the commit lost, with so much patience for another attempt.
async fn lose_the_answer(commit_patience: &str) {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let mock = MockModel::echoing().await;
    let proxy = Proxy::start(split_url(database.url()).0, MARK).await;
    let app = TestApp::start(
        &proxy.url(database.url()),
        &mock,
        &[("runs.commit_patience", commit_patience)],
    )
    .await;
    let events = app
        .stream(json!({"agent": "echo", "input": "hi", "metadata": {"mark": MARK}}))
        .await;

    assert_eq!(proxy.cuts(), 1, "no answer was lost");
    let names: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(names[names.len() - 2..], ["session.committed", "run.completed"]);
    let reported = &events.last().unwrap()["data"];
    let run = app.get(&run_path(reported, "")).await;
    assert_members!(run, {"status": "completed", "error": null});
    let session = app.get(&session_path(reported, "")).await;
    assert_eq!(
        session["message_history_state"]["messages"].as_array().unwrap().len(),
        2
    );
    assert_eq!(app.get("/v1/sessions").await["data"].as_array().unwrap().len(), 1);
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_commit_finds_the_first_one_done() {
    lose_the_answer("10s").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_patience_the_stored_record_is_the_outcome() {
    lose_the_answer("0ms").await;
}
