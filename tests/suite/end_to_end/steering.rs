//! Messages to runs at work: the model reads them at its next step, once, and they are part of the
//! session.

use std::sync::Arc;

use reqwest::{Method, StatusCode};
use serde_json::json;
use test_support::databases::{Engine, TestDatabase};
use test_support::gate::Gate;
use test_support::wait::until;
use values::json::Value;

use super::on_every_store;
use crate::support::answer::read;
use crate::support::gated::{GatedApp, id};
use crate::support::mock_model::{MockModel, Reply, content_text, last_user_text};
use crate::support::test_app::TestApp;

on_every_store!(
    a_message_is_read_at_the_next_step_and_only_once,
    a_run_that_somebody_waits_for_is_steered_as_well,
    a_run_that_has_not_begun_reads_its_messages_when_it_does,
    a_message_to_a_light_run_that_publishes_nothing_is_too_late,
    a_message_to_an_ended_run_is_too_late,
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
        let messages = request["messages"].as_array().unwrap();
        if messages.iter().any(|message| message["role"] == "tool") {
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
    let session = format!("/v1/sessions/{}/messages", run["session_id"].as_str().unwrap());
    (count(&last["messages"]), count(&app.get(&session).await["data"]))
}

async fn a_message_is_read_at_the_next_step_and_only_once(database: TestDatabase) {
    let (app, mock, gate) = with_subagent(&database).await;
    let body = json!({"agent": "lead", "input": "begin", "mode": "async"});
    let running = app.post("/v1/runs", &body);
    let steering = async {
        gate.until_waiting(1).await;
        let run = app.get("/v1/runs?status=running").await["data"][0].clone();
        let path = format!("/v1/runs/{}/steer", id(&run));
        let message = json!({"id": "m-1", "input": "be brief"});
        for _ in 0..2 {
            let answer = app.post(&path, &message).await;
            assert_eq!(
                (answer.status, answer.json()),
                (StatusCode::ACCEPTED, json!({"id": "m-1", "status": "received"}))
            );
        }
        gate.open(1);
        path
    };
    let (_, path) = tokio::join!(running, steering);
    let shown = path.strip_suffix("/steer").unwrap();
    until("the run does not end", async || {
        app.get(shown).await["status"] == "completed"
    })
    .await;
    let ended = app.get(shown).await;
    assert_eq!(ended["output_text"], "heard: be brief");
    assert_eq!(occurrences(&app, &mock, &ended, "be brief").await, (1, 1));
    // The id alone identifies a message: the first text stays.
    for (key, status) in [("m-1", "applied"), ("m-2", "too_late")] {
        let late = app.post(&path, &json!({"id": key, "input": "once more"})).await;
        assert_eq!(
            (late.status, late.json()),
            (StatusCode::OK, json!({"id": key, "status": status})),
            "{key}"
        );
    }
    assert_eq!(app.get(shown).await, ended);
    app.finish().await;
}

async fn a_run_that_somebody_waits_for_is_steered_as_well(database: TestDatabase) {
    let (app, mock, gate) = with_subagent(&database).await;
    let body = json!({"agent": "lead", "input": "begin"});
    let running = app.post("/v1/runs", &body);
    let steering = async {
        gate.until_waiting(1).await;
        let run = app.get("/v1/runs?status=running").await["data"][0].clone();
        let path = format!("/v1/runs/{}/steer", id(&run));
        let answer = app
            .post(
                &path,
                &json!({"id": "m-1", "input": [{"type": "text", "text": "be brief"}]}),
            )
            .await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text());
        gate.open(1);
    };
    let (ended, ()) = tokio::join!(running, steering);
    let ended = ended.ok();
    assert_eq!(ended["output_text"], "heard: be brief");
    assert_eq!(occurrences(&app, &mock, &ended, "be brief").await, (1, 1));
    app.until_stored(id(&ended)).await;
    // The process has forgotten the run; its session has not.
    assert_eq!(database.number("select count(*) from run_messages").await, 0);
    let path = format!("/v1/runs/{}/steer", id(&ended));
    for (key, status) in [("m-1", "applied"), ("m-2", "too_late")] {
        let late = app.post(&path, &json!({"id": key, "input": "once more"})).await;
        assert_eq!(
            (late.status, late.json()),
            (StatusCode::OK, json!({"id": key, "status": status})),
            "{key}"
        );
    }
    app.finish().await;
}

async fn a_message_to_a_light_run_that_publishes_nothing_is_too_late(database: TestDatabase) {
    let (app, _mock, gate) = with_subagent(&database).await;
    let body = json!({"agent": "lead", "input": "begin"});
    let running = app.post("/v1/runs", &body);
    let steer = async |run: &Value| {
        let message = json!({"id": "m-1", "input": "wait, be brief"});
        let path = format!("/v1/runs/{}/steer", id(run));
        app.post(&path, &message).await.json()["status"].clone()
    };
    let steering = async {
        gate.until_waiting(1).await;
        let run = app.get("/v1/runs?status=running").await["data"][0].clone();
        assert_eq!(steer(&run).await, "received");
        gate.open(1);
        until("the message is not applied", async || steer(&run).await == "applied").await;
        read(app.request(Method::POST, &format!("/v1/runs/{}/cancel", id(&run)))).await;
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
    let path = format!("/v1/sessions/{}/messages", ended["session_id"].as_str().unwrap());
    let messages = app.get(&path).await;
    let said: Vec<_> = messages["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| content_text(&message["content"]))
        .collect();
    assert_eq!(said, ["wait", "echo: wait", "two", "three", "four", "echo: four"]);
    assert_eq!(app.steer(&second, "three", "three").await.json()["status"], "applied");
    app.finish().await;
}

async fn a_message_to_an_ended_run_is_too_late(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let queued = app.begin("hi", json!({})).await;
    let queued = app.ended(&queued).await;
    let light = app.run(None, "hi").await;
    app.until_stored(id(&light)).await;
    for run in [&queued, &light] {
        for _ in 0..2 {
            let late = app.steer(run, "m-1", "wait, no").await;
            assert_eq!(
                (late.status, late.json()),
                (StatusCode::OK, json!({"id": "m-1", "status": "too_late"}))
            );
        }
        assert_eq!(app.shown(run).await, *run);
    }
    app.finish().await;
}

/// Has the store refuse to note what becomes of messages while their run is in the queue.
async fn refuse_notes(database: &TestDatabase) {
    let queued = "exists (select 1 from run_queue q where q.tenant = new.tenant and q.run_id = new.run_id)";
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
    let path = format!("/v1/runs/{}", id(&run));
    let steer = async || {
        let message = json!({"id": "m-1", "input": "be brief"});
        app.post(&format!("{path}/steer"), &message).await.json()["status"].clone()
    };
    assert_eq!(steer().await, "received");
    gate.open(1);
    until("the run does not end", async || {
        app.get(&path).await["status"] == "completed"
    })
    .await;
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
    let response = app.post(&format!("/v1/runs/{}/stop", id(&run)), &json!({})).await;
    assert_eq!(response.status, StatusCode::ACCEPTED, "{}", response.text());
    gate.until_waiting(0).await;
    let shown = format!("/v1/runs/{}", id(&run));
    until("the run does not stop", async || {
        app.get(&shown).await["status"] == "stopped"
    })
    .await;
    assert_eq!(app.get(&shown).await["stop_reason"], "user_requested");
    app.get(&format!("/v1/sessions/{}", run["session_id"].as_str().unwrap()))
        .await;
    assert_eq!(mock.asked(), 2);
    app.finish().await;
}
