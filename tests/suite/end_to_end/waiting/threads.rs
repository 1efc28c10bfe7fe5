//! Waiting runs on threads: they free the turn, and what follows them continues their session.

use std::sync::Arc;

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::fake_tool::{Behaviour, FakeTool};
use test_support::gate::Gate;
use values::json::Value;

use super::{WaitingApp, answer_to};
use crate::end_to_end::on_every_store;
use crate::support::members::{assert_members, extended};
use crate::support::mock_model::{MockModel, Reply, content_text};
use crate::support::test_app::{TestApp, run_path};

on_every_store!(
    a_waiting_run_frees_and_moves_its_thread,
    answers_to_a_run_do_not_reach_a_later_one,
    a_queued_message_that_meets_open_calls_fails,
);

#[expect(clippy::needless_pass_by_value, reason = "callers write the fields down right there")]
fn on_thread(more: Value) -> Value {
    extended(json!({"agent": "asker", "thread": "t"}), &more)
}

async fn a_waiting_run_frees_and_moves_its_thread(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let calls = json!([["c1", "deploy", {}]]).to_string();
    let run = app.run_with(on_thread(json!({"input": calls}))).await;
    assert_members!(run, {"status": "waiting", "thread_moved": true});
    assert_eq!(app.get("/v1/threads/t").await["session_id"], run["session_id"]);
    // No run is active on the thread, so the message is refused because of the open call alone.
    let refused = app.post("/v1/runs", &on_thread(json!({"input": "Hello?"}))).await;
    refused.assert_problem("answers_required");
    let approve = answer_to(&run, "c1", json!({"decision": "approve"}));
    let next = app.answer(&run, json!([approve])).await.ok();
    assert_members!(next, {"thread": "t", "status": "completed"});
    assert_eq!(app.get("/v1/threads/t").await["session_id"], next["session_id"]);
    // The thread has moved on, so these answers are stale.
    app.answer(&run, json!([approve]))
        .await
        .assert_problem("session_not_waiting");
    // A fork of the waiting session still works.
    let body = json!({"base_session_id": run["session_id"], "answers": [approve], "conflict": "fork"});
    assert_eq!(app.run_with(body).await["status"], "completed");
    assert_eq!(app.get("/v1/threads/t").await["session_id"], next["session_id"]);
    // Answers go over the thread as well.
    let again = app.run_with(on_thread(json!({"input": calls}))).await;
    let deny = answer_to(&again, "c1", json!({"decision": "deny"}));
    let next = app.run_with(on_thread(json!({"answers": [deny]}))).await;
    assert_eq!(next["base_session_id"], again["session_id"]);
    app.finish().await;
}

/// Both runs wait with the same call, so the answers to one fit the other.
async fn answers_to_a_run_do_not_reach_a_later_one(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let calls = json!([["c1", "deploy", {}]]).to_string();
    let first = app.run_with(on_thread(json!({"input": calls}))).await;
    let approve = json!([answer_to(&first, "c1", json!({"decision": "approve"}))]);
    let path = run_path(&first, "/answers");
    let body = json!({"answers": approve, "input": calls});
    let second = app.post(&path, &body).await.ok();
    assert_eq!(second["status"], "waiting", "{second:#}");
    assert_eq!(app.deploy.begun(), 1);
    for body in [body, json!({"answers": approve}), json!({"deny_open": true})] {
        let refused = app.post(&path, &body).await;
        refused.assert_problem("session_not_waiting");
        assert_eq!(refused.json()["session_id"], second["session_id"]);
    }
    assert_eq!(app.deploy.begun(), 1);
    // Nothing has answered the later run.
    let answered = app.answer(&second, approve).await.ok();
    assert_eq!(answered["status"], "completed", "{answered:#}");
    assert_eq!(app.deploy.begun(), 2);
    app.finish().await;
}

/// A message that was queued behind a run is planned when its turn comes. If that run waits for
/// answers by then, the message fails, or denies the open calls if it says so.
async fn a_queued_message_that_meets_open_calls_fails(database: TestDatabase) {
    let gate = Gate::new();
    let mock = MockModel::start(|request| {
        let last = request["messages"].as_array().unwrap().last().unwrap();
        let call = |id: &str, tool: &str| (id.to_owned(), tool.to_owned(), "{}".to_owned());
        match content_text(&last["content"]).as_str() {
            "wait" => Reply::ToolCalls(vec![call("c1", "look"), call("c2", "ask")]),
            text => Reply::text(&format!("echo: {text}")),
        }
    });
    let mock = mock.await;
    let look = FakeTool::new("look", Behaviour::Held(Arc::clone(&gate)));
    let app = TestApp::start_with_tools(database.url(), &mock, &[], [&look]).await;
    let agent = json!({"model": "mock/m", "tools": ["look"], "client_tools": [{"name": "ask"}]});
    app.put_agent("asker", agent).await;
    let body = on_thread(json!({"input": "wait", "mode": "async"}));
    let first = app.post("/v1/runs", &body).await.ok();
    gate.until_waiting(1).await;
    let queued = |more: Value| {
        let body = on_thread(json!({"input": "next", "mode": "async", "if_busy": "queue"}));
        extended(body, &more)
    };
    let second = app.post("/v1/runs", &queued(json!({}))).await.ok();
    let third = app.post("/v1/runs", &queued(json!({"deny_open": true}))).await.ok();
    gate.open(1);
    assert_eq!(app.ended(&first).await["status"], "waiting");
    let second = app.ended(&second).await;
    assert_members!(second, {"status": "failed", "error/code": "answers_required"});
    let third = app.ended(&third).await;
    assert_members!(third, {
        "status": "completed",
        "base_session_id": first["session_id"],
        "output_text": "echo: next",
    });
    app.finish().await;
}
