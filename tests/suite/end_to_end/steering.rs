//! Messages to runs at work: the model reads them at its next step, once, and they are part of the
//! session.

use std::sync::Arc;

use reqwest::StatusCode;
use serde_json::json;
use test_support::databases::{Engine, TestDatabase};
use test_support::gate::Gate;
use test_support::wait::until;
use values::json::Value;

use super::on_every_store;
use crate::support::gated::{GatedApp, id};
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, content_text, last_user_text, texts, tool_results};
use crate::support::test_app::{TestApp, run_path, session_path};

on_every_store!(
    a_message_is_read_at_the_next_step_and_only_once,
    a_run_that_somebody_waits_for_is_steered_as_well,
    a_run_that_has_not_begun_reads_its_messages_when_it_does,
    a_message_to_a_light_run_that_publishes_nothing_is_too_late,
    a_message_that_the_session_holds_is_applied_if_the_store_did_not_note_it,
    a_run_takes_no_more_messages_than_it_can_hold,
    a_stopped_run_stops_those_who_work_for_it
);

/// A service whose agent `lead` has another one work on a call, which waits at the gate.
async fn with_subagent(database: &TestDatabase) -> (TestApp, MockModel, Arc<Gate>) {
    let gate = Gate::new();
    let behind = Arc::clone(&gate);
    let mock = MockModel::start(move |request| {
        if request["model"] == "worker" {
            return Reply::Held(Arc::clone(&behind), "found".to_owned());
        }
        if !tool_results(request).is_empty() {
            let emitted = format!("heard: {}", last_user_text(request));
            if emitted.starts_with("heard: wait") {
                return Reply::Held(Arc::clone(&behind), emitted);
            }
            return Reply::text(&emitted);
        }
        Reply::call("c1", "research", &json!({"task": "look"}))
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("worker", json!({"model": "mock/worker"})).await;
    let lead = json!({"model": "mock/lead", "subagents": [{"agent": "worker", "tool": "research"}]});
    app.put_agent("lead", lead).await;
    (app, mock, gate)
}

/// How often a model was told the text in its last request, and how often a session holds it.
async fn occurrences(app: &TestApp, mock: &MockModel, run: &Value, text: &str) -> (usize, usize) {
    let count = |messages: &Value| {
        let messages = messages.as_array().unwrap().iter();
        messages
            .filter(|message| content_text(&message["content"]) == text)
            .count()
    };
    let requests = mock.requests();
    let last = requests
        .iter()
        .rev()
        .find(|request| request["model"] == "lead")
        .unwrap();
    (
        count(&last["messages"]),
        count(&app.get(&session_path(run, "/messages")).await["data"]),
    )
}

async fn a_message_is_read_at_the_next_step_and_only_once(database: TestDatabase) {
    steer_once(&database, "async", json!("be brief")).await;
}

async fn a_run_that_somebody_waits_for_is_steered_as_well(database: TestDatabase) {
    steer_once(&database, "sync", json!([{"type": "text", "text": "be brief"}])).await;
}

/// Sends a message to a run at work, twice, and checks what becomes of it.
async fn steer_once(database: &TestDatabase, mode: &str, message: Value) {
    let (app, mock, gate) = with_subagent(database).await;
    let body = json!({"agent": "lead", "input": "begin", "mode": mode});
    let running = app.post("/v1/runs", &body);
    let steering = async {
        gate.until_waiting(1).await;
        let run = app.get("/v1/runs?status=running").await["data"][0].clone();
        let message = json!({"id": "m-1", "input": message});
        for _ in 0..2 {
            let answer = app.post(&run_path(&run, "/steer"), &message).await;
            assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text());
            assert_eq!(answer.json(), json!({"id": "m-1", "status": "received"}));
        }
        gate.open(1);
        run
    };
    let (_, run) = tokio::join!(running, steering);
    app.until_stored(id(&run)).await;
    let ended = app.ended(&run).await;
    assert_members!(ended, {"status": "completed", "output_text": "heard: be brief"});
    assert_eq!(occurrences(&app, &mock, &ended, "be brief").await, (1, 1));
    if mode == "sync" {
        // The process has forgotten the run; its session has not.
        assert_eq!(database.number("select count(*) from run_messages").await, 0);
    }
    // The id alone identifies a message: the first text stays.
    for (key, status) in [("m-1", "applied"), ("m-2", "too_late"), ("m-2", "too_late")] {
        let late = app.steer(&ended, key, "once more").await;
        assert_eq!(late.status, StatusCode::OK, "{key}");
        assert_eq!(late.json(), json!({"id": key, "status": status}));
    }
    assert_eq!(app.shown(&ended).await, ended);
    app.finish().await;
}

async fn a_message_to_a_light_run_that_publishes_nothing_is_too_late(database: TestDatabase) {
    let (app, _mock, gate) = with_subagent(&database).await;
    let body = json!({"agent": "lead", "input": "begin"});
    let running = app.post("/v1/runs", &body);
    let steer = async |run: &Value| app.steer(run, "m-1", "wait, be brief").await.json()["status"].clone();
    let steering = async {
        gate.until_waiting(1).await;
        let run = app.get("/v1/runs?status=running").await["data"][0].clone();
        assert_eq!(steer(&run).await, "received");
        gate.open(1);
        until("the message is not applied", async || steer(&run).await == "applied").await;
        app.control(&run, "cancel").await;
    };
    let (ended, ()) = tokio::join!(running, steering);
    let ended = ended.ok();
    assert_eq!(ended["status"], "cancelled");
    app.until_stored(id(&ended)).await;
    until("the run is remembered", async || steer(&ended).await == "too_late").await;
    app.finish().await;
}

async fn a_run_that_has_not_begun_reads_its_messages_when_it_does(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let first = app.begin("wait", json!({"thread": "t"})).await;
    app.gate.until_waiting(1).await;
    let second = app.begin("two", json!({"thread": "t", "if_busy": "queue"})).await;
    for text in ["three", "four"] {
        let received = app.steer(&second, text, text).await;
        assert_eq!(received.json(), json!({"id": text, "status": "received"}));
    }
    app.gate.open(1);
    app.ended(&first).await;
    let ended = app.ended(&second).await;
    assert_eq!(ended["output_text"], "echo: four");
    let messages = app.get(&session_path(&ended, "/messages")).await;
    let said = texts(&messages["data"]);
    assert_eq!(said, ["wait", "echo: wait", "two", "three", "four", "echo: four"]);
    assert_eq!(app.steer(&second, "three", "three").await.json()["status"], "applied");
    app.finish().await;
}

/// Has the store refuse to note what becomes of messages while their run is in the queue.
async fn refuse_notes(database: &TestDatabase) {
    let queued = "new.status = 'applied'
        and exists (select 1 from run_queue q where q.tenant = new.tenant and q.run_id = new.run_id)";
    let trigger = match database.engine {
        Engine::Sqlite => format!(
            "create trigger refuse_notes before update on run_messages when {queued}
            begin select raise(abort, 'not now'); end"
        ),
        Engine::Postgres => format!(
            "create function refuse_notes() returns trigger language plpgsql as
            $$begin if {queued} then raise exception 'not now'; end if; return new; end$$;
            create trigger refuse_notes before update on run_messages for each row execute function refuse_notes()"
        ),
    };
    database.execute(&trigger).await.unwrap();
}

async fn a_message_that_the_session_holds_is_applied_if_the_store_did_not_note_it(database: TestDatabase) {
    let (app, mock, gate) = with_subagent(&database).await;
    refuse_notes(&database).await;
    let body = json!({"agent": "lead", "input": "begin", "mode": "async"});
    let run = app.post("/v1/runs", &body).await.json();
    gate.until_waiting(1).await;
    let steer = async || app.steer(&run, "m-1", "be brief").await.json()["status"].clone();
    assert_eq!(steer().await, "received");
    gate.open(1);
    assert_eq!(app.ended(&run).await["status"], "completed");
    assert_eq!(occurrences(&app, &mock, &run, "be brief").await, (1, 1));
    assert_eq!(steer().await, "applied");
    app.finish().await;
}

async fn a_run_takes_no_more_messages_than_it_can_hold(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    // A request has at most 10 MiB, so one fits and another one does not.
    let long = "a".repeat(9 * 1024 * 1024);
    let steering = async |run: &Value| {
        let said = app.steer(run, "m-1", &long).await;
        assert_eq!(said.json(), json!({"id": "m-1", "status": "received"}));
        let refused = app.steer(run, "m-2", &long).await;
        refused.assert_problem("too_many_steering_messages");
        assert_eq!(refused.json()["run_id"], run["run_id"]);
        assert_eq!(app.steer(run, "m-1", &long).await.json()["status"], "received");
        assert_eq!(app.steer(run, "m-3", "be brief").await.json()["status"], "received");
        app.control(run, "cancel").await;
    };
    let queued = app.begin("wait", json!({})).await;
    app.gate.until_waiting(1).await;
    steering(&queued).await;
    app.ended(&queued).await;
    let light = json!({"agent": "echo", "input": "wait"});
    let light = app.post("/v1/runs", &light);
    let (light, ()) = tokio::join!(light, async {
        app.gate.until_waiting(1).await;
        let run = app.get("/v1/runs?status=running").await["data"][0].clone();
        steering(&run).await;
    });
    assert_eq!(light.ok()["status"], "cancelled");
    app.finish().await;
}

async fn a_stopped_run_stops_those_who_work_for_it(database: TestDatabase) {
    let (app, mock, gate) = with_subagent(&database).await;
    let body = json!({"agent": "lead", "input": "begin", "mode": "async"});
    let run = app.post("/v1/runs", &body).await.json();
    gate.until_waiting(1).await;
    let response = app.control(&run, "stop").await;
    assert_eq!(response.status, StatusCode::ACCEPTED, "{}", response.text());
    gate.until_waiting(0).await;
    let ended = app.ended(&run).await;
    assert_members!(ended, {"status": "stopped", "stop_reason": "user_requested"});
    app.get(&session_path(&run, "")).await;
    assert_eq!(mock.asked(), 2);
    app.finish().await;
}
