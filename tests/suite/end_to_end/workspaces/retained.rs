//! Runs that get the directory of the run before.

use serde_json::json;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::{calls, put_scripted, results};
use crate::end_to_end::on_every_store;
use crate::support::mock_model::{MockModel, Reply};
use crate::support::test_app::TestApp;

on_every_store!(a_run_finds_the_same_in_the_directory_of_the_run_before_as_in_a_new_one);

/// Changes what no session holds: most bits of modes, and that two names lead to one file.
async fn a_run_finds_the_same_in_the_directory_of_the_run_before_as_in_a_new_one(database: TestDatabase) {
    const CHANGE: &str = "mkdir -m 1777 d e; echo 1 > d/a; echo 2 > d/b; echo 3 > e/f; ln d/a d/c; \
                          chmod 400 d/a; chmod 711 d/b; chmod 500 e; chmod 755 . && stat -c '%a %h' d/a d/b";
    const SHOW: &str = "stat -c '%a %n' . d e; stat -c '%a %h %n' d/* e/f; echo 4 > d/c; cat d/a";
    const SHOWN: &str = "700 .\n755 d\n755 e\n644 1 d/a\n755 1 d/b\n644 1 d/c\n644 1 e/f\n1\n";
    let mock = MockModel::start(|_| Reply::text("unused")).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let elsewhere = TestApp::start(database.url(), &mock, &[]).await;
    for command in [CHANGE.to_owned(), CHANGE.replace("ln ", "cp ")] {
        let changed = shell(&app, &Value::Null, &command).await;
        let links = if command == CHANGE { 2 } else { 1 };
        assert_eq!(results(&app, &changed).await, [format!("400 {links}\n711 1\n")]);
        for place in [&app, &elsewhere] {
            let run = shell(place, &changed["session_id"], SHOW).await;
            assert_eq!(results(place, &run).await, [SHOWN]);
        }
    }
    elsewhere.finish().await;
    app.finish().await;
}

/// Runs one command on the files of a session.
async fn shell(app: &TestApp, base: &Value, command: &str) -> Value {
    let step = calls(&[("shell", json!({"command": command}))]);
    put_scripted(app, "one-command", &[step], json!({"tools": ["shell"]})).await;
    let run = json!({"agent": "one-command", "input": "go", "base_session_id": base});
    let run = app.run_with(run).await;
    assert_eq!(run["status"], "completed", "{run:#}");
    run
}
