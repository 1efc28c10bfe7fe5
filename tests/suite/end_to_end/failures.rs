//! Failure in each phase: no session, a readable failed run, and a service that goes on.

use serde_json::{Value, json};
use test_support::databases::{Engine, TestDatabase};
use test_support::logs::CapturedLog;
use test_support::wait::until;
use tracing::Level;

use super::on_every_store;
use crate::support::gated::{GatedApp, request};
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply};
use crate::support::test_app::{TestApp, run_path, session_path};

on_every_store!(
    an_unreadable_base_fails_the_load,
    a_refusing_model_fails_the_execution,
    a_failed_run_keeps_nothing_that_hooks_may_remove,
    an_error_that_the_policy_forbids_fails_the_execution,
    a_store_that_is_gone_fails_the_commit,
    a_base_that_is_removed_meanwhile_fails_the_commit,
);

/// Checks that the run is readable as failed in the phase, with its input, and that it published
/// nothing.
async fn assert_failed(app: &TestApp, result: &Value, input: &str, (code, phase): (&str, &str), sessions: usize) {
    assert_eq!(result["status"], "failed", "{result:#}");
    assert_members!(result["error"], {"code": code, "phase": phase});
    let run = app.get(&run_path(result, "")).await;
    assert_members!(run, {"status": result["status"], "error": result["error"], "input": result["input"]});
    assert_members!(run, {"input/0/role": "user", "input/0/content/0/text": input});
    app.try_get(&session_path(result, ""))
        .await
        .assert_problem("session_not_committed");
    let stored = app.get("/v1/sessions").await;
    assert_eq!(stored["data"].as_array().unwrap().len(), sessions);
}

async fn an_unreadable_base_fails_the_load(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[("store.cache_bytes", "0")]).await;
    let root = app.run(None, "root").await;
    database.corrupt_segments().await;
    let result = app.run(root["session_id"].as_str(), "on").await;
    assert_failed(&app, &result, "on", ("session_unreadable", "load"), 1).await;
    assert_eq!(mock.asked(), 1);
    app.finish().await;
}

async fn a_refusing_model_fails_the_execution(database: TestDatabase) {
    let mock = MockModel::start(|_| Reply::Status(401, json!({"error": {"message": "bad key"}}).to_string())).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let result = app.run(None, "hi").await;
    assert_failed(&app, &result, "hi", ("model_auth", "execute"), 0).await;
    app.finish().await;
}

async fn a_failed_run_keeps_nothing_that_hooks_may_remove(database: TestDatabase) {
    let mock = MockModel::start(|_| Reply::Status(401, json!({"error": {"message": "bad key"}}).to_string())).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let redaction = json!({"name": "redaction", "config": {"patterns": [{"name": "key", "regex": "sk-[0-9]+"}]}});
    app.put_agent("discreet", json!({"model": "mock/m", "hooks": [redaction]}))
        .await;
    let request = json!({"agent": "discreet", "input": "My key is sk-4711."});
    let result = app.run_with(request.clone()).await;
    assert_members!(result, {"status": "failed", "input": null});
    assert_members!(app.get(&run_path(&result, "")).await, {"status": "failed", "input": null});
    let events = app.stream(request).await;
    assert_eq!(events.last().unwrap()["type"], "run.failed");
    assert!(!json!(events).to_string().contains("4711"), "{events:#?}");
    app.finish().await;
}

async fn an_error_that_the_policy_forbids_fails_the_execution(database: TestDatabase) {
    let mock = MockModel::start(|_| Reply::call("c1", "calculator", &json!({"expression": "1/0"}))).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent(
        "strict",
        json!({"model": "mock/m", "tools": ["calculator"], "error_policy": "stop_on_any_error"}),
    )
    .await;
    let result = app.run_with(json!({"agent": "strict", "input": "go"})).await;
    assert_failed(&app, &result, "go", ("tool_failed", "execute"), 0).await;
    app.finish().await;
}

async fn a_store_that_is_gone_fails_the_commit(database: TestDatabase) {
    let settings = [("runs.commit_patience", "300ms"), ("store.acquire_timeout", "2s")];
    let app = GatedApp::start(&database, &settings).await;
    let root = app.run(None, "root").await;
    let run = app.run(root["session_id"].as_str(), "wait");
    let outage = async {
        app.gate.until_waiting(1).await;
        let outage = database.begin_outage().await;
        app.gate.open(1);
        outage
    };
    let (result, outage) = tokio::join!(run, outage);
    assert_members!(result, {"status": "failed", "error/code": "store_unavailable"});
    let live = app.get(&run_path(&result, "")).await;
    assert_eq!(live["status"], "failed", "the run is readable while the store is gone");
    outage.end().await;
    app.until_stored(result["run_id"].as_str().unwrap()).await;
    assert_failed(&app, &result, "wait", ("store_unavailable", "commit"), 1).await;

    let again = app.run(root["session_id"].as_str(), "root").await;
    assert_eq!(again["status"], "completed");
    app.finish().await;
}

/// On one thread, whose log lines it hears.
#[tokio::test]
async fn a_store_that_comes_back_in_time_loses_nothing() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        if let Some(database) = TestDatabase::new(engine).await {
            comes_back_in_time(database).await;
        }
    }
}

async fn comes_back_in_time(database: TestDatabase) {
    let (lines, _listening) = CapturedLog::listening(Level::DEBUG);
    let settings = [("runs.commit_patience", "20s"), ("store.acquire_timeout", "2s")];
    let app = GatedApp::start(&database, &settings).await;
    let root = app.run(None, "root").await;
    let run = app.run(root["session_id"].as_str(), "wait");
    let outage = async {
        app.gate.until_waiting(1).await;
        let running = app.get("/v1/runs?status=running").await;
        let path = run_path(&running["data"][0], "");
        let outage = database.begin_outage().await;
        app.gate.open(1);
        until("no commit fails", async || {
            lines.text().contains("a session is committed later")
        })
        .await;
        let running = app.get(&path).await;
        assert_members!(running, {"status": "running", "step_count": 1});
        outage.end().await;
    };
    let (result, ()) = tokio::join!(run, outage);
    assert_eq!(result["status"], "completed", "{result:#}");
    let session = app.get(&session_path(&result, "")).await;
    assert_eq!(
        session["message_history_state"]["messages"].as_array().unwrap().len(),
        4
    );
    app.finish().await;
}

async fn a_base_that_is_removed_meanwhile_fails_the_commit(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let rows = [
        ("sync", "fork"),
        ("sync", "reject"),
        ("async", "fork"),
        ("async", "reject"),
    ];
    for (mode, conflict) in rows {
        let root = app.run(None, "root").await;
        let next = json!({"base_session_id": root["session_id"], "conflict": conflict});
        let next = request(mode, "wait", next);
        let removing = async {
            app.gate.until_waiting(1).await;
            // As another replica does that does not see the run.
            database.execute("delete from sessions").await.unwrap();
            app.gate.open(1);
        };
        let (answer, ()) = tokio::join!(app.post("/v1/runs", &next), removing);
        let ended = app.ended(&answer.json()).await;
        assert_failed(&app, &ended, "wait", ("base_session_removed", "commit"), 0).await;
    }
    app.finish().await;
}
