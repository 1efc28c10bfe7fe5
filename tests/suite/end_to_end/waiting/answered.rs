//! Open calls that have been answered: they are answered once, and their run says so.

use std::sync::Arc;

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::fake_tool::{Behaviour, FakeTool};
use test_support::gate::Gate;
use values::json::Value;

use super::{WaitingApp, answer_to, asker, model};
use crate::end_to_end::on_every_store;
use crate::support::changes::Changes;
use crate::support::members::{assert_members, extended};
use crate::support::mock_model::MockModel;
use crate::support::test_app::{TestApp, run_path, session_path};

on_every_store!(
    an_approved_call_is_executed_once,
    answers_at_once_have_one_winner,
    an_answer_that_fails_leaves_the_calls_open,
    readers_of_changes_know_whether_calls_are_open,
    readers_of_changes_know_of_an_answer_that_had_to_wait_for_its_turn,
    a_late_answer_is_refused_at_once,
);

/// The definition of an agent whose runs fail before they publish anything.
fn broken() -> Value {
    json!({"model": "mock/m", "tools": ["deploy"], "system_prompt": "{{ variables.none }}"})
}

/// The ids of the runs with a status.
async fn listed(app: &TestApp, status: &str) -> Vec<Value> {
    let page = app.get(&format!("/v1/runs?status={status}")).await;
    let runs = page["data"].as_array().unwrap().iter();
    runs.map(|run| run["run_id"].clone()).collect()
}

async fn an_approved_call_is_executed_once(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let run = app.wait_for(json!([["c1", "deploy", {}]])).await;
    assert_eq!(run["answer_run_id"], Value::Null);
    let waiting = app.events_after(&run, 0).await;
    let change = json!({"changes": [{"path": "a.txt", "content": "a"}]});
    let files = session_path(&run, "/files");
    let changed = app.post(&files, &change).await.json();
    let approve = json!([answer_to(&run, "c1", json!({"decision": "approve"}))]);
    let first = app.answer(&run, approve.clone()).await.ok();
    assert_eq!(first["status"], "completed", "{first:#}");

    let shown = app.shown(&run).await;
    assert_members!(shown, {"status": "answered", "required_action": null, "answer_run_id": first["run_id"]});
    assert_eq!(listed(&app, "waiting").await, [Value::Null; 0]);
    assert_eq!(listed(&app, "answered").await, [run["run_id"].clone()]);
    // What has been said about the run stays.
    assert_eq!(app.events_after(&run, 0).await, waiting);

    let of = |session: &Value| json!({"base_session_id": session["session_id"], "answers": approve});
    for refused in [
        app.answer(&run, approve.clone()).await,
        app.post("/v1/runs", &of(&run)).await,
        // A session beside it has the same calls.
        app.post("/v1/runs", &of(&changed)).await,
        app.post(
            "/v1/runs",
            &json!({"base_session_id": run["session_id"], "input": "x", "deny_open": true}),
        )
        .await,
    ] {
        refused.assert_problem("run_not_waiting");
        assert_eq!(refused.json()["run_id"], first["run_id"]);
    }
    assert_eq!(app.deploy.begun(), 1);

    // A branch is asked for.
    let mut fork = of(&changed);
    fork["conflict"] = json!("fork");
    let forked = app.run_with(fork).await;
    assert_eq!((&forked["status"], app.deploy.begun()), (&json!("completed"), 2));
    assert_eq!(app.shown(&run).await["answer_run_id"], first["run_id"]);
    app.finish().await;
}

async fn answers_at_once_have_one_winner(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    for round in 1..=8 {
        // Every other run is on a thread, which may be busy, or have moved on.
        let (thread, codes) = match round % 2 {
            0 => (Value::Null, &["run_not_waiting"][..]),
            _ => (
                json!("t"),
                &["thread_busy", "session_not_waiting", "run_not_waiting"][..],
            ),
        };
        let calls = json!([["c1", "deploy", {}]]).to_string();
        let body = json!({"agent": "asker", "input": calls, "thread": thread});
        let run = app.run_with(body).await;
        let approve = json!([answer_to(&run, "c1", json!({"decision": "approve"}))]);
        let send = || app.answer(&run, approve.clone());
        let answers: [_; 4] = tokio::join!(send(), send(), send(), send()).into();
        let won: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
        assert_eq!(won.len(), 1);
        for lost in answers.iter().filter(|answer| answer.status != 200) {
            let code = lost.code();
            lost.assert_problem(&code);
            assert!(codes.contains(&code.as_str()), "{code}");
            if code == "run_not_waiting" {
                assert_eq!(lost.json()["run_id"], won[0].json()["run_id"]);
            }
        }
        assert_eq!(app.deploy.begun(), round);
    }
    app.finish().await;
}

async fn an_answer_that_fails_leaves_the_calls_open(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    app.put_agent("broken", broken()).await;
    let run = app.wait_for(json!([["c1", "deploy", {}]])).await;
    let deny = json!([answer_to(&run, "c1", json!({"decision": "deny"}))]);
    let path = run_path(&run, "/answers");
    let body = json!({"agent": "broken", "answers": deny});
    let failed = app.post(&path, &body).await.ok();
    assert_eq!(failed["status"], "failed", "{failed:#}");
    assert_eq!(app.shown(&run).await, run);
    let answered = app.answer(&run, deny).await.ok();
    assert_eq!(answered["status"], "completed", "{answered:#}");
    app.finish().await;
}

async fn readers_of_changes_know_whether_calls_are_open(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    app.put_agent("broken", broken()).await;
    let mut changes = Changes::open(&app, "").await;
    let calls = json!([["c1", "deploy", {}]]).to_string();
    let run = app
        .run_with(json!({"agent": "asker", "input": calls, "thread": "t"}))
        .await;
    let waiting = says(&run, "waiting");
    let said = changes.of_run_until(&run, "waiting").await;
    assert_eq!(said.last(), Some(&waiting));
    // The base of the answers is another session with the same calls, which is on no thread.
    let files = json!({"changes": [{"path": "a.txt", "content": "a"}]});
    let changed = app.post(&session_path(&run, "/files"), &files).await.json();
    assert_ne!(changed["session_id"], run["session_id"]);
    let deny = json!([answer_to(&run, "c1", json!({"decision": "deny"}))]);
    let answer = json!({"agent": "broken", "base_session_id": changed["session_id"], "answers": deny});
    let failed = app.run_with(answer.clone()).await;
    assert_eq!(failed["status"], "failed", "{failed:#}");
    assert_eq!(
        changes.of_run_until(&run, "waiting").await,
        [says(&run, "answered"), waiting.clone()]
    );
    let answer = extended(answer, &json!({"agent": "asker"}));
    let answered = app.run_with(answer.clone()).await;
    assert_eq!(answered["status"], "completed", "{answered:#}");
    assert_eq!(changes.of_run_until(&run, "answered").await, [says(&run, "answered")]);
    // A fork answers the calls once more, which changes nothing about them.
    let fork = app.run_with(extended(answer, &json!({"conflict": "fork"}))).await;
    let last = extended(says(&fork, "completed"), &json!({"thread": null}));
    loop {
        let event = changes.next().await.unwrap();
        assert_ne!(event["data"]["run_id"], run["run_id"], "{event}");
        if event["data"] == last {
            break;
        }
    }
    app.finish().await;
}

/// What the event of a run on the thread `t` says.
fn says(run: &Value, status: &str) -> Value {
    json!({"run_id": run["run_id"], "status": status, "session_id": run["session_id"], "thread": "t"})
}

async fn readers_of_changes_know_of_an_answer_that_had_to_wait_for_its_turn(database: TestDatabase) {
    let gate = Gate::new();
    let mock = MockModel::start(model).await;
    let look = FakeTool::new("look", Behaviour::Held(Arc::clone(&gate)));
    let deploy = FakeTool::new("deploy", Behaviour::EchoArguments);
    let app = TestApp::start_with_tools(database.url(), &mock, &[], [&look, &deploy]).await;
    app.put_agent("asker", asker()).await;
    app.put_agent("broken", broken()).await;
    let mut changes = Changes::open(&app, "").await;
    let calls = json!([["c1", "look", {}], ["c2", "deploy", {}]]).to_string();
    let body = json!({"agent": "asker", "input": calls, "thread": "t", "mode": "async"});
    let run = app.post("/v1/runs", &body).await.ok();
    gate.until_waiting(1).await;
    // Only its worker learns that it answers calls.
    let next = |agent: &str| {
        json!({
            "agent": agent, "input": "Next", "thread": "t", "mode": "async", "deny_open": true, "if_busy": "queue",
        })
    };
    let failing = app.post("/v1/runs", &next("broken")).await.ok();
    let answering = app.post("/v1/runs", &next("asker")).await.ok();
    gate.open(1);
    assert_eq!(app.ended(&failing).await["status"], "failed");
    assert_eq!(app.ended(&answering).await["status"], "completed");
    // Its session is the same from its acceptance on.
    let said = changes.of_run_until(&run, "waiting").await;
    assert_eq!(said.last(), Some(&says(&run, "waiting")));
    for expected in ["answered", "waiting", "answered"] {
        assert_eq!(changes.of_run_until(&run, expected).await, [says(&run, expected)]);
    }
    app.finish().await;
}

async fn a_late_answer_is_refused_at_once(database: TestDatabase) {
    let gate = Gate::new();
    let mock = MockModel::start(model).await;
    let look = FakeTool::new("look", Behaviour::EchoArguments);
    let deploy = FakeTool::new("deploy", Behaviour::Held(Arc::clone(&gate)));
    let app = TestApp::start_with_tools(database.url(), &mock, &[], [&look, &deploy]).await;
    app.put_agent("asker", asker()).await;
    let calls = json!([["c1", "deploy", {}]]).to_string();
    let run = app
        .run_with(json!({"agent": "asker", "input": calls, "thread": "t"}))
        .await;
    let approve = json!([answer_to(&run, "c1", json!({"decision": "approve"}))]);
    let path = run_path(&run, "/answers");
    let body = json!({"answers": approve, "mode": "async"});
    let first = app.post(&path, &body).await.ok();
    gate.until_waiting(1).await;
    for says in [json!({"answers": approve}), json!({"deny_open": true})] {
        for if_busy in ["queue", "interrupt"] {
            let mut body = says.clone();
            body["mode"] = json!("async");
            body["if_busy"] = json!(if_busy);
            let refused = app.post(&path, &body).await;
            refused.assert_problem("run_not_waiting");
            assert_eq!(refused.json()["run_id"], first["run_id"]);
        }
    }
    let mut body = json!({"answers": approve, "mode": "async", "thread": "t", "if_busy": "queue"});
    app.post("/v1/runs", &body).await.assert_problem("run_not_waiting");
    // A denial of what may be open by then has its turn, and finds nothing.
    body["answers"] = json!([]);
    body["deny_open"] = json!(true);
    body["input"] = json!("Next");
    let next = app.post("/v1/runs", &body).await.ok();
    gate.open(1);
    assert_eq!(app.ended(&first).await["status"], "completed");
    assert_eq!(app.ended(&next).await["output_text"], "echo: Next");
    assert_eq!(deploy.begun(), 1);
    app.finish().await;
}
