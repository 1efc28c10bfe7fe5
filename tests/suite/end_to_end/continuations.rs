//! Continuing and forking: what the model reads, what is stored, and that nothing is lost in a
//! race.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::on_every_store;
use crate::support::members::{assert_members, column};
use crate::support::mock_model::{MockModel, Reply, content_text, last_user_text, texts};
use crate::support::test_app::{TestApp, session_path};

on_every_store!(
    the_second_turn_reads_the_first,
    a_fork_of_an_early_session_knows_nothing_of_later_ones,
    racing_continuations_all_commit,
    of_racing_continuations_exactly_one_wins,
);

async fn the_second_turn_reads_the_first(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let first = app.run(None, "my name is Ada").await;
    let second = app.run(first["session_id"].as_str(), "who am I?").await;

    assert_members!(second, {"status": "completed", "stop_reason": "completed", "output_text": "echo: who am I?"});
    assert_members!(second, {"base_session_id": first["session_id"], "usage/total_tokens": 15});
    assert_eq!(
        conversation(&mock.requests()[1]),
        [
            "user: my name is Ada",
            "assistant: echo: my name is Ada",
            "user: who am I?"
        ]
    );

    let session = app.get(&session_path(&second, "")).await;
    assert_members!(session, {"parent_session_id": first["session_id"], "run_id": second["run_id"], "depth": 1});
    assert_eq!(session["context_state"]["execution_count"], 2);
    let texts = texts(&session["message_history_state"]["messages"]);
    assert_eq!(
        texts,
        ["my name is Ada", "echo: my name is Ada", "who am I?", "echo: who am I?"]
    );

    let lineage = app.get(&session_path(&second, "/lineage")).await;
    let line = column(&lineage["data"], "session_id");
    assert_eq!(line, [&second["session_id"], &first["session_id"]]);
    app.finish().await;
}

async fn a_fork_of_an_early_session_knows_nothing_of_later_ones(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let root = app.run(None, "root").await;
    let left = app.run(root["session_id"].as_str(), "left").await;
    let right = app.run(root["session_id"].as_str(), "right").await;

    assert_eq!(
        conversation(&mock.requests()[2]),
        ["user: root", "assistant: echo: root", "user: right"]
    );
    let (root, left, right) = (id(&root), id(&left), id(&right));
    let children = app.get(&format!("/v1/sessions/{root}/children")).await;
    let children: BTreeSet<_> = children["data"].as_array().unwrap().iter().map(id).collect();
    assert_eq!(children, BTreeSet::from([left.clone(), right.clone()]));

    let diff = app.get(&format!("/v1/sessions/{left}/diff/{right}")).await;
    assert_eq!(diff["shared_messages"], 2);
    assert_eq!(content_text(&diff["left_messages"][0]["content"]), "left");
    assert_eq!(content_text(&diff["right_messages"][0]["content"]), "right");
    app.finish().await;
}

async fn racing_continuations_all_commit(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let root = id(&app.run(None, "root").await);
    let inputs: Vec<String> = (0..24).map(|n| format!("racer {n}")).collect();
    let results = join_all(inputs.iter().map(|text| app.run(Some(&root), text))).await;

    let sessions: BTreeSet<_> = results.iter().map(id).collect();
    assert_eq!(sessions.len(), inputs.len());
    for (text, result) in inputs.iter().zip(&results) {
        assert_eq!(result["status"], "completed", "{result:#}");
        let messages = app.get(&format!("/v1/sessions/{}/messages", id(result))).await;
        let said = texts(&messages["data"]);
        assert_eq!(said, ["root", "echo: root", text.as_str(), &format!("echo: {text}")]);
        let report = app.get(&format!("/v1/sessions/{}/verify", id(result))).await;
        assert_eq!(report["faults"], json!([]));
    }
    let positions =
        database.number("select count(*) from (select distinct branch_id, position from sessions) as taken");
    assert_eq!(
        usize::try_from(positions.await),
        Ok(inputs.len() + 1),
        "a branch position is shared"
    );
    app.finish().await;
}

/// `conflict: "reject"`: the others learn whose run has won.
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

fn id(document: &Value) -> String {
    document["session_id"].as_str().unwrap().to_owned()
}

/// The conversation of a request as `role: text`.
fn conversation(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap();
    let spoken = messages.iter().filter(|message| message["role"] != "system");
    spoken
        .map(|message| {
            format!(
                "{}: {}",
                message["role"].as_str().unwrap(),
                content_text(&message["content"])
            )
        })
        .collect()
}
