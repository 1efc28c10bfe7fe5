//! `conflict: "reject"`: one continuation of a base wins, and the others learn whose run it was.

use std::time::Duration;

use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::json;
use test_support::databases::TestDatabase;

use super::on_every_store;
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::TestApp;

on_every_store!(
    a_committed_continuation_is_named,
    of_racing_continuations_exactly_one_wins
);

async fn a_committed_continuation_is_named(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let root = app.run(None, "root").await;
    let first = app.run(root["session_id"].as_str(), "first").await;
    let body = json!({"agent": "echo", "input": "second", "base_session_id": root["session_id"], "conflict": "reject"});
    let (status, problem) = app.call(Method::POST, "/v1/runs", Some(body)).await;

    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(problem["run_id"], first["run_id"]);
    assert_eq!(mock.asked(), 2, "a rejected run must not reach the model");
    app.finish().await;
}

async fn of_racing_continuations_exactly_one_wins(database: TestDatabase) {
    let mock = MockModel::start(|request| match last_user_text(request).as_str() {
        "root" => Reply::text("ok"),
        _ => Reply::Slow(vec!["ok".to_owned()], Duration::from_millis(50)),
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let root = app.run(None, "root").await;
    let body = |n: usize| json!({"agent": "echo", "input": format!("racer {n}"), "base_session_id": root["session_id"], "conflict": "reject"});
    let answers = join_all((0..8).map(|n| app.call(Method::POST, "/v1/runs", Some(body(n))))).await;

    let (won, lost): (Vec<_>, Vec<_>) = answers.iter().partition(|(status, _)| *status == StatusCode::OK);
    assert_eq!((won.len(), lost.len()), (1, 7));
    let winner = &won[0].1["run_id"];
    for (status, problem) in lost {
        assert_eq!(*status, StatusCode::CONFLICT);
        assert_eq!(problem["run_id"], *winner);
    }
    app.finish().await;
}
