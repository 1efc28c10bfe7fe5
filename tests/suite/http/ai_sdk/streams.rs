//! A page that is loaded again, and one that goes.

use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::json;
use test_support::databases::{Engine, TestDatabase};
use test_support::wait::until;

use super::on_every_database;
use super::page::{Page, decide};
use crate::http::face_app::FaceApp;
use crate::support::answer::with_json;
use crate::support::mock_model::texts;

on_every_database! {
    a_page_that_is_loaded_again_reads_the_message_from_its_start,
    an_answered_message_is_replayed_with_its_calls,
    a_stop_retains_what_was_said,
    a_message_interrupts_the_one_at_work,
}

/// Sends the messages of a page, and waits until the model holds its completion back.
async fn begin(page: &Page<'_>, app: &FaceApp, query: &str) -> Response {
    let body = json!({"id": page.chat, "messages": page.messages});
    let request = app.request(Method::POST, &format!("/v1/ai-sdk/own/chat?{query}"));
    let answer = with_json(request, &body).send().await.unwrap();
    app.gate.until_waiting(1).await;
    answer
}

/// Opens the stream of a chat, and reads its first words.
async fn follow(page: &Page<'_>, app: &FaceApp) -> (String, Response) {
    let mut stream = app.request(Method::GET, &page.path("stream")).send().await.unwrap();
    let mut read = String::new();
    while !read.contains("text-delta") {
        read.push_str(&String::from_utf8_lossy(&stream.chunk().await.unwrap().unwrap()));
    }
    (read, stream)
}

/// Reads a stream to its end. Returns all of it.
async fn rest_of((read, stream): (String, Response)) -> String {
    read + &stream.text().await.unwrap()
}

async fn a_page_that_is_loaded_again_reads_the_message_from_its_start(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let mut page = Page::open(&app, "again");
    page.ask("hello").await;
    assert_eq!(app.try_get(&page.path("stream")).await.status, 204);
    page.write("hold");
    drop(begin(&page, &app, "on_disconnect=continue").await);
    // The question is there, though no session has it yet.
    let mut again = Page::open(&app, "again");
    again.messages = again.loaded().await;
    assert_eq!(again.messages.len(), 3);
    assert_eq!(again.messages[2]["id"], page.messages[2]["id"]);
    let stream = follow(&again, &app).await;
    app.gate.open(1);
    again.fold(&rest_of(stream).await);
    assert_eq!(again.text(), "some words");
    again.assert_same().await;
    app.finish().await;
}

async fn an_answered_message_is_replayed_with_its_calls(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let mut page = Page::open(&app, "replay");
    page.ask(&json!([["c1", "look", {"ms": 2}], ["c2", "deploy", {"ms": 777}]]).to_string())
        .await;
    decide(&mut page.messages[1]["parts"][2], true);
    drop(begin(&page, &app, "on_disconnect=continue").await);
    let mut again = Page::open(&app, "replay");
    let stream = follow(&again, &app).await;
    app.gate.open(1);
    again.messages = page.messages[..1].to_vec();
    again.fold(&rest_of(stream).await);
    assert_eq!(again.messages[1]["id"], page.messages[1]["id"]);
    assert_eq!(again.states(), ["output-available", "output-available"]);
    again.assert_same().await;
    app.finish().await;
}

async fn a_stop_retains_what_was_said(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let mut page = Page::open(&app, "stop");
    page.write("hold");
    let stop = async {
        app.gate.until_waiting(1).await;
        assert_eq!(app.post(&page.path("stop"), &json!({})).await.status, 204);
    };
    let body = json!({"id": "stop", "messages": page.messages});
    let (answer, ()) = tokio::join!(page.post(&body), stop);
    assert!(
        answer.text().contains(r#"{"type":"abort","reason":"stopped"}"#),
        "{}",
        answer.text()
    );
    page.fold(&answer.text());
    page.assert_same().await;
    page.ask("go on").await;
    let asked = texts(&app.last_request()["messages"]);
    assert_eq!(asked[1..], ["hold", "some words", "go on"]);
    app.finish().await;
}

async fn a_message_interrupts_the_one_at_work(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let mut page = Page::open(&app, "busy");
    page.write("hold");
    let body = json!({"id": "busy", "messages": page.messages});
    let other = async {
        app.gate.until_waiting(1).await;
        let mut other = Page::open(&app, "busy");
        other.messages = other.loaded().await;
        other.write("instead");
        other.send().await;
        assert_eq!(other.text(), "echo: instead");
        other
    };
    let (first, other) = tokio::join!(page.post(&body), other);
    page.fold(&first.text());
    assert_eq!(page.text(), "some words");
    // The second page knew no answer to the question, so it has asked both.
    assert_eq!(texts(&app.last_request()["messages"])[1..], ["hold", "instead"]);
    other.assert_same().await;
    app.finish().await;
}

/// Replicas on PostgreSQL could not ask each other without Redis: see `process::replicas`.
#[tokio::test]
async fn a_run_without_readers_ends_after_a_while() {
    let database = TestDatabase::new(Engine::Sqlite).await.unwrap();
    let app = FaceApp::start(&database).await;
    let mut page = Page::open(&app, "gone");
    page.write("hold");
    let first = begin(&page, &app, "grace_seconds=1").await;
    // Another reader is enough.
    let second = follow(&page, &app).await;
    drop(first);
    let status = async || app.get("/v1/runs?thread=gone").await["data"][0]["status"].clone();
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(status().await, "running");
    drop(second);
    until("the run has ended", async || status().await == "stopped").await;
    assert_eq!(page.loaded().await[1]["parts"][1]["text"], "some words");
    app.finish().await;
}
