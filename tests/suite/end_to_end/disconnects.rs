//! The caller goes away: the run stops with what it has, also while it waits for its thread.
//! `http::runs::create` has runs that are cancelled, and those that go on.

use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::wait::until;
use tokio::time::timeout;

use super::on_every_store;
use crate::support::answer::with_json;
use crate::support::gated::{GatedApp, request};
use crate::support::members::{assert_members, column};
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::{TestApp, run_path, session_path, sse_data};

on_every_store!(
    a_run_that_shall_stop_publishes_what_there_is,
    a_closed_stream_on_a_thread_retains_the_input_and_half_the_response,
    a_run_that_waits_on_a_thread_retains_the_input_of_a_caller_that_leaves,
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

/// Reads the stream of a run with these fields up to the first words of the answer, and leaves.
async fn leave_in_the_middle(app: &TestApp, fields: Value) -> Value {
    let post = app.request(Method::POST, "/v1/runs");
    let response = with_json(post, &request("stream", "hi", fields)).send().await.unwrap();
    let mut stream = response.bytes_stream();
    let mut text = String::new();
    while !text.contains("message.delta") {
        text.push_str(std::str::from_utf8(&stream.next().await.unwrap().unwrap()).unwrap());
    }
    sse_data(text.split_inclusive("\n\n").next().unwrap())[0]["data"].clone()
}

/// Checks that the run was stopped, and that its session has the words and a part of the answer.
async fn assert_half_an_answer(app: &TestApp, begun: &Value) {
    let run = app.get(&run_path(begun, "?wait=30")).await;
    assert_members!(run, {"status": "stopped", "stop_reason": "user_requested"});
    let session = app.get(&session_path(begun, "")).await;
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
        let begun = leave_in_the_middle(&app, fields).await;
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
    let begun = leave_in_the_middle(&app, json!({"thread": "chat"})).await;
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
    let opening = with_json(app.request(Method::POST, "/v1/runs"), &waiting);
    let mut stream = opening.send().await.unwrap().bytes_stream();
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
    let messages = app.get(&session_path(&ended, "/messages")).await;
    let texts = column(&messages["data"], "content/0/text");
    assert_eq!((texts.len(), texts[2]), (3, &json!("two")), "{messages:#}");
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
