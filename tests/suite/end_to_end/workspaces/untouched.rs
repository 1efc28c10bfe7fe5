//! A turn that touches no file costs the same with ten thousand files as without any.

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::logs::listen;
use test_support::statements::Statements;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;
use values::json::Value;

use super::tree;
use crate::support::mock_model::MockModel;
use crate::support::test_app::TestApp;

const FILES: usize = 10_000;
/// The most changes of a request.
const CHANGES: usize = 1_000;
/// The tables that the statements of a turn name.
const TABLES: &[&str] = &["sessions", "history_segments", "states", "contents", "run_journal"];

/// Returns a session with many files that continues another one.
async fn with_files(app: &TestApp, mut session_id: Value) -> Value {
    for first in (0..FILES).step_by(CHANGES) {
        let changes: Vec<_> = (first..first + CHANGES)
            .map(|number| json!({"path": format!("d{}/f{number}", number % 100), "content": number.to_string()}))
            .collect();
        let path = format!("/v1/sessions/{}/files", session_id.as_str().unwrap());
        let made = app.post(&path, &json!({"changes": changes})).await;
        assert_eq!(made.status, 201, "{}", made.text());
        session_id = made.json()["session_id"].clone();
    }
    session_id
}

/// Continues a session by one turn, and returns the new session and the number of statements.
async fn turn(app: &TestApp, base: &Value, durability: &str) -> (Value, usize) {
    let statements = Statements::of(TABLES);
    let _listening = listen(Registry::default().with(statements.clone()));
    let body = json!({"agent": "coder", "base_session_id": base, "input": "Hello.", "durability": durability});
    let run = app.run_with(body).await;
    assert_eq!(run["status"], "completed", "{run:#}");
    (run["session_id"].clone(), statements.taken())
}

// One thread, so that the subscriber of this thread sees all of the driver's work.
#[tokio::test(flavor = "current_thread")]
async fn a_turn_beside_many_files_takes_no_statement_more() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let agent = json!({"model": "mock/m", "tools": ["read_file", "write_file", "shell"]});
    app.put_agent("coder", agent.clone()).await;
    let plain = app.run_with(json!({"agent": "coder", "input": "Hello."})).await["session_id"].clone();
    let filled = with_files(&app, plain.clone()).await;
    // As many turns of talk as the other one has sessions of files.
    let mut talk = plain;
    for _ in (0..FILES).step_by(CHANGES) {
        (talk, _) = turn(&app, &talk, "session").await;
    }
    let contents = database.number("select count(*) from contents").await;
    let files = tree(&app, &filled).await;
    for durability in ["session", "step"] {
        // The first turn reads the session, and the second one has it in memory.
        let restarted = TestApp::start(database.url(), &mock, &[]).await;
        let (mut left, mut right) = (talk.clone(), filled.clone());
        for is_warm in [false, true] {
            let (without, with);
            (left, without) = turn(&restarted, &left, durability).await;
            (right, with) = turn(&restarted, &right, durability).await;
            assert!(without > 0);
            assert_eq!(with, without, "durability {durability}, warm: {is_warm}");
        }
        assert_eq!(tree(&restarted, &right).await, files);
        restarted.finish().await;
    }
    assert_eq!(database.number("select count(*) from contents").await, contents);
    app.finish().await;
}
