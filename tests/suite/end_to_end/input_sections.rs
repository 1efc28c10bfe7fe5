//! Sections of the input over HTTP: a model is sent those that the agent's compiler names.

use serde_json::json;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, content_text};
use crate::support::test_app::{TestApp, session_path};

on_every_store!(sections_of_the_input_are_sent_where_the_compiler_names_them);

/// Returns who says what in a request.
fn said(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    let line = |message: &Value| {
        format!(
            "{}: {}",
            message["role"].as_str().unwrap(),
            content_text(&message["content"])
        )
    };
    messages.map(line).collect()
}

async fn sections_of_the_input_are_sent_where_the_compiler_names_them(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent(
        "noter",
        json!({"model": "mock/m", "compiler": {"kind": "sections", "names": ["messages", "notes"]}}),
    )
    .await;
    let input = |section: &str| {
        json!([
            {"role": "user", "content": "noted", "section": section},
            {"role": "user", "content": "asked"},
        ])
    };
    let first = app.run_with(json!({"agent": "echo", "input": input("notes")})).await;
    app.run_with(json!({"agent": "noter", "input": "more", "base_session_id": first["session_id"]}))
        .await;
    let requests = mock.requests();
    assert_eq!(said(&requests[0]), ["user: asked"]);
    assert_eq!(
        said(&requests[1]),
        ["user: noted", "user: asked", "assistant: echo: asked", "user: more"]
    );
    let session = app.get(&session_path(&first, "")).await;
    let noted = &session["message_history_state"]["messages"][0];
    assert_eq!(noted["tags"]["section"], "notes");
    let only_note = json!([{"role": "user", "content": "noted", "section": "notes"}]);
    for (input, pointer) in [
        (input("a b"), "/input/0/section"),
        (input("summary"), "/input/0/section"),
        (only_note, "/input"),
    ] {
        let answer = app.post("/v1/runs", &json!({"agent": "echo", "input": input})).await;
        let problem: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_members!(problem, {"code": "invalid_field", "errors/0/pointer": pointer});
    }
    let imported =
        json!({"message_history_state": {"messages": [{"role": "user", "content": "x", "tags": {"section": ""}}]}});
    let answer = app.post("/v1/sessions", &imported).await;
    let problem: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(
        problem["errors"][0]["pointer"], "/message_history_state/messages/0/tags/section",
        "{problem:#}"
    );
    app.finish().await;
}
