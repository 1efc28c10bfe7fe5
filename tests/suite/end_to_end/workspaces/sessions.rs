//! Files and variables of one session and those that continue it.

use serde_json::json;
use test_support::databases::TestDatabase;

use super::{assert_valid, calls, file, files, put_scripted, read, results, tree, write};
use crate::end_to_end::on_every_store;
use crate::support::mock_model::{MockModel, Reply};
use crate::support::test_app::{TestApp, session_path};

on_every_store!(
    files_last_with_the_session_and_a_fork_changes_nothing_in_its_sibling,
    a_turn_without_changes_writes_no_environment,
    a_run_that_fails_publishes_no_files,
    variables_and_a_list_that_tools_set_last_with_the_session,
);

async fn start(database: &TestDatabase) -> (MockModel, TestApp) {
    let mock = MockModel::start(|_| Reply::text("unused")).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    (mock, app)
}

async fn files_last_with_the_session_and_a_fork_changes_nothing_in_its_sibling(database: TestDatabase) {
    let (_mock, app) = start(&database).await;
    let tools = json!({"tools": ["write_file", "read_file", "edit_file", "apply_patch"]});
    let edit = json!({"path": "a.txt", "edits": [{"old": "one", "new": "left"}]});
    let patch = json!({"patch": "*** Begin Patch\n*** Add File: c.txt\n+right\n*** End Patch"});
    for (agent, steps) in [
        (
            "first",
            vec![calls(&[write("a.txt", "one\n"), write("src/b.txt", "two\n")])],
        ),
        ("left", vec![calls(&[read("a.txt")]), calls(&[("edit_file", edit)])]),
        ("right", vec![calls(&[("apply_patch", patch)])]),
    ] {
        put_scripted(&app, agent, &steps, tools.clone()).await;
    }

    let first = app.run_with(json!({"agent": "first", "input": "go"})).await;
    assert_eq!(first["status"], "completed", "{first:#}");
    let base = &first["session_id"];
    assert_eq!(files(&app, base).await, ["a.txt", "src/b.txt"]);
    let before = tree(&app, base).await;

    let run = async |agent: &str, durability: &str| {
        let body = json!({"agent": agent, "input": "go", "base_session_id": base, "durability": durability});
        app.run_with(body).await
    };
    let (left, right) = (run("left", "step").await, run("right", "session").await);
    let read = results(&app, &left).await;
    assert!(read[0].contains("one"), "{read:?}");
    assert_eq!(file(&app, &left["session_id"], "a.txt").await, "left\n");
    assert_eq!(file(&app, &right["session_id"], "a.txt").await, "one\n");
    assert_eq!(files(&app, &right["session_id"]).await, ["a.txt", "c.txt", "src/b.txt"]);
    assert_eq!(file(&app, base, "a.txt").await, "one\n");
    assert_eq!(tree(&app, base).await, before);
    for session_id in [base, &left["session_id"], &right["session_id"]] {
        assert_valid(&app, session_id).await;
    }
    // A conversation of its own has none of the files.
    let alone = app.run_with(json!({"agent": "right", "input": "go"})).await;
    assert_eq!(files(&app, &alone["session_id"]).await, ["c.txt"]);
    app.finish().await;
}

async fn a_turn_without_changes_writes_no_environment(database: TestDatabase) {
    let (_mock, app) = start(&database).await;
    put_scripted(&app, "first", &[calls(&[write("a.txt", "one\n")])], json!({})).await;
    put_scripted(&app, "same", &[calls(&[write("a.txt", "one\n")])], json!({})).await;
    let first = app.run_with(json!({"agent": "first", "input": "go"})).await;
    let contents = database.number("select count(*) from contents").await;
    let states = database.number("select count(*) from states").await;
    let base = &first["session_id"];
    let next = app
        .run_with(json!({"agent": "same", "input": "go", "base_session_id": base}))
        .await;
    assert_eq!(next["status"], "completed", "{next:#}");
    assert_eq!(tree(&app, &next["session_id"]).await, tree(&app, base).await);
    assert_eq!(
        database.number("select count(*) from contents").await,
        contents,
        "the file and its directory are stored once"
    );
    assert_eq!(
        database.number("select count(*) from states").await,
        states,
        "the environment is the same"
    );
    app.finish().await;
}

async fn a_run_that_fails_publishes_no_files(database: TestDatabase) {
    let (_mock, app) = start(&database).await;
    let failing = json!({"error": {"kind": "model", "message": "it breaks"}});
    put_scripted(
        &app,
        "failing",
        &[calls(&[write("a.txt", "one\n")]), failing],
        json!({"error_policy": "stop_on_any_error"}),
    )
    .await;
    let run = app.run_with(json!({"agent": "failing", "input": "go"})).await;
    assert_eq!(run["status"], "failed", "{run:#}");
    assert_eq!(database.number("select count(*) from sessions").await, 0);
    app.finish().await;
}

async fn variables_and_a_list_that_tools_set_last_with_the_session(database: TestDatabase) {
    let (_mock, app) = start(&database).await;
    let tools = json!({"tools": ["variables_set", "variables_get", "todo"]});
    let set = ("variables_set", json!({"variables": {"city": "Bern", "old": null}}));
    let list = ("todo", json!({"items": [{"text": "Write", "status": "done"}]}));
    put_scripted(&app, "setting", &[calls(&[set]), calls(&[list])], tools.clone()).await;
    let read = calls(&[("variables_get", json!({})), ("todo", json!({}))]);
    put_scripted(&app, "reading", &[read], tools).await;
    let run = app
        .run_with(json!({"agent": "setting", "input": "go", "variables": {"old": 1, "kept": 2}}))
        .await;
    let session = app.get(&session_path(&run, "")).await;
    assert_eq!(
        session["environment_state"]["variables"],
        json!({"city": "Bern", "kept": 2}),
        "{run:#}"
    );
    let next = json!({"agent": "reading", "input": "go", "base_session_id": run["session_id"]});
    let next = app.run_with(next).await;
    assert_eq!(
        results(&app, &next).await,
        [r#"{"city":"Bern","kept":2}"#, "1 of 1 done:\n[x] Write"]
    );
    app.finish().await;
}
