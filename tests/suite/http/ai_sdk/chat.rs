//! What people do on a page: they talk, answer calls, edit and regenerate.

use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::on_every_database;
use super::page::{Page, decide, output};
use crate::http::face_app::FaceApp;
use crate::support::members::column;
use crate::support::mock_model::{texts, tool_results};

on_every_database! {
    a_page_and_the_service_show_the_same_messages,
    a_call_is_approved_or_denied_in_its_message,
    the_page_executes_its_own_tool_beside_an_approval,
    a_message_instead_of_an_answer_denies_open_calls,
    an_edit_and_a_regeneration_are_forks,
    a_page_may_send_its_last_message_only,
    a_failed_question_is_asked_again_with_the_next_one,
    files_reach_the_model_and_come_back,
}

/// The texts that the model was asked last, without the instructions.
fn asked(app: &FaceApp) -> Vec<String> {
    let mut texts = texts(&app.last_request()["messages"]);
    texts.remove(0);
    texts
}

fn calls(calls: &Value) -> String {
    calls.to_string()
}

async fn a_page_and_the_service_show_the_same_messages(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let mut page = Page::open(&app, "every-form");
    assert_eq!(page.loaded().await, Vec::<Value>::new());
    for text in ["hello", "narrate", "stammer", "muse"] {
        page.ask(text).await;
    }
    let chat = app.get("/v1/threads/every-form").await;
    assert_eq!(page.last()["metadata"]["sessionId"], chat["session_id"]);
    let kinds = column(&page.messages[7]["parts"], "type");
    let expected = [
        "step-start",
        "reasoning",
        "text",
        "tool-look",
        "tool-look",
        "step-start",
        "text",
        "data-usage",
    ];
    assert_eq!(kinds, expected);
    app.finish().await;
}

async fn a_call_is_approved_or_denied_in_its_message(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    for (approves, state, said) in [
        (true, "output-available", r#"{"ms":1}"#),
        (false, "output-denied", "denied"),
    ] {
        let mut page = Page::open(&app, state);
        page.ask(&calls(&json!([["c1", "look", {"ms": 2}], ["c2", "deploy", {"ms": 1}]])))
            .await;
        let id = page.last()["id"].clone();
        assert_eq!(page.states(), ["output-available", "approval-requested"]);
        page.answer(|part| decide(part, approves)).await;
        assert_eq!((page.messages.len(), &page.last()["id"]), (2, &id));
        assert_eq!(page.states(), ["output-available", state]);
        assert!(page.text().contains(said), "{}", page.text());
        page.ask("and now?").await;
        assert_eq!(page.text(), "echo: and now?");
    }
    assert_eq!(app.deploy.begun(), 1);
    app.finish().await;
}

async fn the_page_executes_its_own_tool_beside_an_approval(database: TestDatabase) {
    let app = FaceApp::start_with_client_tool(&database).await;
    let mut page = Page::open(&app, "mixed");
    page.ask(&calls(&json!([["c1", "mine", {"x": 1}], ["c2", "deploy", {"ms": 1}]])))
        .await;
    assert_eq!(page.states(), ["input-available", "approval-requested"]);
    page.answer(|part| {
        output(part, &json!({"found": true}));
        decide(part, true);
    })
    .await;
    assert_eq!(page.states(), ["output-available", "output-available"]);
    assert_eq!(tool_results(&app.last_request()), [r#"{"found":true}"#, r#"{"ms":1}"#]);
    app.finish().await;
}

async fn a_message_instead_of_an_answer_denies_open_calls(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let mut page = Page::open(&app, "never-mind");
    page.ask(&calls(&json!([["c1", "deploy", {"ms": 1}]]))).await;
    page.write("never mind");
    page.send().await;
    assert_eq!(page.text(), "echo: never mind");
    assert_eq!(app.deploy.begun(), 0);
    // The same once more.
    page.messages.pop();
    page.send().await;
    assert_eq!((page.text().as_str(), page.messages.len()), ("echo: never mind", 4));
    // The page that was open shows the call as it was.
    let loaded = page.loaded().await;
    assert_eq!(loaded[1]["parts"][1]["state"], "output-denied");
    assert_eq!(column(&json!(loaded), "id"), column(&json!(page.messages), "id"));
    app.finish().await;
}

async fn an_edit_and_a_regeneration_are_forks(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let mut page = Page::open(&app, "branches");
    page.ask("one").await;
    page.ask("two").await;
    let first = page.last()["metadata"]["sessionId"].clone();
    // A regeneration: the page cuts the message, and sends the rest.
    page.messages.truncate(3);
    page.send().await;
    page.assert_same().await;
    assert_eq!(asked(&app), ["one", "echo: one", "two"]);
    let second = page.last()["metadata"]["sessionId"].clone();
    assert_ne!(first, second);
    // An edit of the second message, and then of the first.
    page.messages.truncate(2);
    page.ask("three").await;
    assert_eq!(asked(&app), ["one", "echo: one", "three"]);
    page.messages.truncate(0);
    page.ask("zero").await;
    assert_eq!(asked(&app), ["zero"]);
    for session in [&first, &second] {
        let messages = app
            .get(&format!("/v1/sessions/{}/messages", session.as_str().unwrap()))
            .await;
        assert_eq!(texts(&messages["data"]), ["one", "echo: one", "two", "echo: two"]);
    }
    app.finish().await;
}

async fn a_page_may_send_its_last_message_only(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let mut page = Page::open(&app, "alone");
    let (one, two) = ("one".to_owned(), "two".to_owned());
    for (text, id, expected) in [
        ("one", "u1", vec![one.clone()]),
        ("two", "u2", vec![one.clone(), "echo: one".to_owned(), two]),
        // A message with a known id replaces it, and what came after it.
        ("three", "u2", vec![one, "echo: one".to_owned(), "three".to_owned()]),
    ] {
        let message = json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]});
        let answer = page.post(&json!({"id": "alone", "message": message})).await;
        page.messages.push(message);
        page.fold(&answer.text());
        assert_eq!(asked(&app), expected);
    }
    app.finish().await;
}

async fn a_failed_question_is_asked_again_with_the_next_one(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let mut page = Page::open(&app, "again");
    page.ask("hello").await;
    page.write("overloaded");
    page.send().await;
    assert!(
        page.error.as_ref().is_some_and(|error| error.contains("slow down")),
        "{:?}",
        page.error
    );
    assert_eq!(page.loaded().await[2]["parts"][0]["text"], "overloaded");
    page.write("and?");
    page.send().await;
    assert_eq!(page.error, None);
    assert_eq!(asked(&app), ["hello", "echo: hello", "overloaded", "and?"]);
    app.finish().await;
}

async fn files_reach_the_model_and_come_back(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let mut page = Page::open(&app, "files");
    page.write("see");
    let file = json!({"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,aGk="});
    page.messages[0]["parts"].as_array_mut().unwrap().push(file.clone());
    page.send().await;
    let content = &app.last_request()["messages"][1]["content"];
    assert_eq!(content[1]["image_url"]["url"], "data:image/png;base64,aGk=");
    assert_eq!(page.loaded().await[0]["parts"][1], file);
    app.finish().await;
}
