//! The caller goes away: the run is cancelled and publishes nothing, or goes on when told so.

use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::wait::until;
use tokio::time::timeout;

use super::on_every_store;
use crate::support::gated::{GatedApp, request};
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::{TestApp, sse_data};

on_every_store!(
    a_run_whose_caller_leaves_is_cancelled,
    a_run_that_shall_stop_publishes_what_there_is,
    a_closed_stream_on_a_thread_retains_the_input_and_half_the_response,
    a_run_that_waits_on_a_thread_retains_the_input_of_a_caller_that_leaves,
    a_run_that_shall_go_on_commits,
    a_live_run_can_be_read,
    a_caller_that_gets_an_unreadable_record_has_not_left
);

fn slow() -> Reply {
    numbers(20)
}

/// Goes on for minutes, so that it has not ended when something is looked at meanwhile.
fn endless() -> Reply {
    numbers(10_000)
}

fn numbers(count: usize) -> Reply {
    Reply::Slow((0..count).map(|n| format!("{n} ")).collect(), Duration::from_millis(25))
}

/// Reads a stream up to the first words of the answer, and leaves.
async fn leave_in_the_middle(app: &TestApp, on_disconnect: &str) -> Value {
    leave_in_the_middle_of(app, json!({"on_disconnect": on_disconnect})).await
}

/// The same for a run with these fields.
async fn leave_in_the_middle_of(app: &TestApp, fields: Value) -> Value {
    let mut body = json!({"agent": "echo", "input": "hi", "mode": "stream"});
    body.as_object_mut()
        .unwrap()
        .extend(fields.as_object().unwrap().clone());
    let request = app
        .request(Method::POST, "/v1/runs")
        .header("content-type", "application/json");
    let response = request.body(body.to_string()).send().await.unwrap();
    let mut stream = response.bytes_stream();
    let mut text = String::new();
    while !text.contains("message.delta") {
        text.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
    }
    sse_data(text.split_inclusive("\n\n").next().unwrap())[0]["data"].clone()
}

async fn a_run_whose_caller_leaves_is_cancelled(database: TestDatabase) {
    let mock = MockModel::start(|_| endless()).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let begun = leave_in_the_middle(&app, "cancel").await;
    app.until_idle().await;
    let run = app
        .get(&format!("/v1/runs/{}", begun["run_id"].as_str().unwrap()))
        .await;
    assert_eq!(
        (&run["status"], &run["stop_reason"]),
        (&json!("cancelled"), &json!("user_requested"))
    );
    let (status, problem) = app
        .call(
            Method::GET,
            &format!("/v1/sessions/{}", begun["session_id"].as_str().unwrap()),
            None,
        )
        .await;
    assert_eq!(
        (status, &problem["code"], &problem["run_id"], &problem["run_status"]),
        (
            StatusCode::NOT_FOUND,
            &json!("session_not_committed"),
            &begun["run_id"],
            &json!("cancelled")
        )
    );
    assert_eq!(app.get("/v1/sessions").await["data"], json!([]));
    app.finish().await;
}

/// Checks that the run was stopped, and that its session has the words and a part of the answer.
async fn assert_half_an_answer(app: &TestApp, begun: &Value) {
    let run = app
        .get(&format!("/v1/runs/{}?wait=30", begun["run_id"].as_str().unwrap()))
        .await;
    assert_eq!(
        (&run["status"], &run["stop_reason"]),
        (&json!("stopped"), &json!("user_requested")),
        "{run:#}"
    );
    let session = app
        .get(&format!("/v1/sessions/{}", begun["session_id"].as_str().unwrap()))
        .await;
    let messages = session["message_history_state"]["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 2, "{session:#}");
    assert_eq!(messages[0]["content"][0]["text"], "hi");
    let answer = messages[1]["content"][0]["text"].as_str().unwrap();
    assert!(answer.starts_with("0 ") && !answer.contains("9999"), "{answer}");
}

async fn a_run_that_shall_stop_publishes_what_there_is(database: TestDatabase) {
    let mock = MockModel::start(|_| endless()).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    for durability in ["session", "step"] {
        let fields = json!({"on_disconnect": "stop", "durability": durability});
        let begun = leave_in_the_middle_of(&app, fields).await;
        assert_half_an_answer(&app, &begun).await;
    }
    app.finish().await;
}

async fn a_closed_stream_on_a_thread_retains_the_input_and_half_the_response(database: TestDatabase) {
    let mock = MockModel::start(|request| match last_user_text(request).as_str() {
        "hi" => endless(),
        _ => slow(),
    })
    .await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let begun = leave_in_the_middle_of(&app, json!({"thread": "chat"})).await;
    assert_half_an_answer(&app, &begun).await;
    // The conversation goes on from there.
    let thread = app.get("/v1/threads/chat").await;
    assert_eq!(thread["session_id"], begun["session_id"]);
    let next = json!({"agent": "echo", "input": "go on", "thread": "chat", "mode": "stream"});
    let events = app.stream(next).await;
    assert_eq!(events.last().unwrap()["type"], "run.completed");
    let asked = mock.requests().pop().unwrap();
    assert_eq!(asked["messages"].as_array().unwrap().len(), 3, "{asked:#}");
    app.finish().await;
}

async fn a_run_that_waits_on_a_thread_retains_the_input_of_a_caller_that_leaves(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let ahead = app.begin("wait", json!({"thread": "t"})).await;
    app.gate.until_waiting(1).await;
    let waiting = request("stream", "two", json!({"thread": "t", "if_busy": "queue"}));
    let opening = app
        .request(Method::POST, "/v1/runs")
        .header("content-type", "application/json");
    let mut stream = opening.body(waiting.to_string()).send().await.unwrap().bytes_stream();
    stream.next().await.unwrap().unwrap();
    drop(stream);
    let rows = "select count(*) from run_queue where control = 'stop'";
    until("the run that waits is not stopped", async || {
        database.number(rows).await == 1
    })
    .await;
    app.gate.open(1);
    assert_eq!(app.ended(&ahead).await["status"], "completed");
    let listed = app.get("/v1/runs?thread=t").await;
    let ended = app.ended(&listed["data"][0]).await;
    assert_eq!(ended["status"], "stopped", "{ended:#}");
    let path = format!("/v1/sessions/{}/messages", ended["session_id"].as_str().unwrap());
    let messages = app.get(&path).await;
    let texts: Vec<_> = messages["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| &message["content"][0]["text"])
        .collect();
    assert_eq!(texts.len(), 3, "{messages:#}");
    assert_eq!(texts[2], "two");
    app.finish().await;
}

async fn a_run_that_shall_go_on_commits(database: TestDatabase) {
    let mock = MockModel::start(|_| slow()).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let begun = leave_in_the_middle(&app, "continue").await;
    app.until_idle().await;
    let run = app
        .get(&format!("/v1/runs/{}", begun["run_id"].as_str().unwrap()))
        .await;
    assert_eq!(run["status"], "completed");
    let session = app
        .get(&format!("/v1/sessions/{}", begun["session_id"].as_str().unwrap()))
        .await;
    assert_eq!(
        session["message_history_state"]["messages"].as_array().unwrap().len(),
        2
    );
    app.finish().await;
}

async fn a_live_run_can_be_read(database: TestDatabase) {
    let mock = MockModel::start(|_| endless()).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let begun = leave_in_the_middle(&app, "continue").await;
    let run = app
        .get(&format!("/v1/runs/{}", begun["run_id"].as_str().unwrap()))
        .await;
    assert_eq!((&run["status"], &run["agent"]), (&json!("running"), &json!("echo")));
    let listed = app.get("/v1/runs?status=running").await;
    assert_eq!(listed["data"][0]["run_id"], begun["run_id"]);
    let (status, problem) = app
        .call(
            Method::GET,
            &format!("/v1/sessions/{}", begun["session_id"].as_str().unwrap()),
            None,
        )
        .await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::NOT_FOUND, &json!("session_not_committed"))
    );
    let cancel = format!("/v1/runs/{}/cancel", begun["run_id"].as_str().unwrap());
    let (status, answer) = app.call(Method::POST, &cancel, None).await;
    assert!(status.is_success(), "{answer:#}");
    app.until_idle().await;
    app.finish().await;
}

async fn a_caller_that_gets_an_unreadable_record_has_not_left(database: TestDatabase) {
    let app = GatedApp::start(&database, &[]).await;
    let ahead = app.begin("wait", json!({"thread": "t"})).await;
    app.gate.until_waiting(1).await;
    let waiting = request("sync", "two", json!({"thread": "t", "if_busy": "queue"}));
    let damaging = async {
        let is_waiting = async || database.number("select count(*) from run_queue").await == 2;
        until("the second run is not accepted", is_waiting).await;
        let damage = "update runs set status = 'odd' where status = 'queued'";
        database.execute(damage).await.unwrap();
    };
    let (told, ()) = tokio::join!(app.post("/v1/runs", &waiting), damaging);
    assert_eq!(told.status, StatusCode::INTERNAL_SERVER_ERROR, "{}", told.text());
    let repair = "update runs set status = 'queued' where status = 'odd'";
    database.execute(repair).await.unwrap();
    app.gate.open(1);
    assert_eq!(app.ended(&ahead).await["status"], "completed");
    let listed = app.get("/v1/runs?thread=t").await;
    let ended = app.ended(&listed["data"][0]).await;
    assert_eq!(ended["status"], "completed", "{ended:#}");
    app.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removals_whose_callers_have_left_leave_connections_to_others() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let app = GatedApp::start(&database, &[("store.max_connections", "4")]).await;
    let mut paths = Vec::new();
    for _ in 0..8 {
        let session = app.post("/v1/sessions", &json!({})).await.ok()["session_id"].clone();
        paths.push(format!("/v1/sessions/{}", session.as_str().unwrap()));
    }
    // Another replica removes something.
    let removing = database.stall_removals().await.unwrap();
    let is_waiting = async || database.waiting_clients().await == 1;
    for path in &paths {
        // However far a removal has come when its caller leaves, it takes no connection while
        // another waits.
        let removal = app.request(Method::DELETE, path).send();
        let leaving = async {
            tokio::join!(
                tokio::time::sleep(Duration::from_millis(200)),
                until("a removal waits", is_waiting)
            )
        };
        tokio::select! {
            _ = removal => panic!("{path} is removed"),
            _ = leaving => (),
        }
        until("a removal waits alone", is_waiting).await;
    }
    for path in &paths {
        // A read that finds no connection is refused long before.
        let read = timeout(Duration::from_mins(1), app.get(path)).await;
        assert!(read.is_ok(), "{path}");
    }
    removing.end().await;
    until("the first is removed", async || {
        app.try_get(&paths[0]).await.status == StatusCode::NOT_FOUND
    })
    .await;
    app.finish().await;
}
