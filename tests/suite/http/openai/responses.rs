//! Responses in a stream, in the background, and in JSON.

use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::{FaceApp, on_every_database, text};
use crate::support::test_app::sse_data;

on_every_database! {
    the_last_event_of_a_stream_is_the_response,
    a_stored_stream_continues_after_an_event,
    a_response_in_the_background_is_polled_and_cancelled,
    a_schema_reaches_the_model_and_the_response,
}

/// The events of a stream, which ends with `[DONE]`.
fn events(stream: &str) -> Vec<Value> {
    let stream = stream
        .strip_suffix("data: [DONE]\n\n")
        .unwrap_or_else(|| panic!("{stream}"));
    sse_data(stream)
}

fn path(response: &Value) -> String {
    format!("/v1/responses/{}", response["id"].as_str().unwrap())
}

async fn the_last_event_of_a_stream_is_the_response(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let answer = app.respond(&json!({"input": "hi", "stream": true})).await;
    let id = answer.header("x-response-id").to_owned();
    let events = events(&answer.text());
    let numbers: Vec<_> = events
        .iter()
        .map(|event| event["sequence_number"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (0..events.len() as u64).collect::<Vec<_>>());
    assert_eq!(events[0]["type"], "response.created");
    let last = events.last().unwrap();
    assert_eq!(
        (&last["type"], &last["response"]["id"]),
        (&json!("response.completed"), &json!(id))
    );
    app.until_idle().await;
    assert_eq!(app.get(&path(&last["response"])).await, last["response"]);
    app.finish().await;
}

async fn a_stored_stream_continues_after_an_event(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let answer = app
        .respond(&json!({"input": "hi", "stream": true, "background": true}))
        .await;
    let sent = events(&answer.text());
    let response = &sent.last().unwrap()["response"];
    assert_eq!(
        (text(response).as_str(), &response["background"]),
        ("echo: hi", &json!(true))
    );
    let all = app.try_get(&format!("{}?stream=true", path(response))).await.text();
    assert_eq!(events(&all), sent);
    let rest = app
        .try_get(&format!("{}?stream=true&starting_after=1", path(response)))
        .await
        .text();
    assert_eq!(events(&rest), sent[2..]);
    app.finish().await;
}

async fn a_response_in_the_background_is_polled_and_cancelled(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let response = app.response(&json!({"input": "hi", "background": true})).await;
    assert!(
        ["queued", "in_progress"].contains(&response["status"].as_str().unwrap()),
        "{response}"
    );
    app.until_idle().await;
    test_support::wait::until("the response never ends", async || {
        app.get(&path(&response)).await["status"] == "completed"
    })
    .await;
    // What has ended stays as it is.
    let cancelled = app.post(&format!("{}/cancel", path(&response)), &json!({})).await.ok();
    assert_eq!(
        (&cancelled["status"], text(&cancelled).as_str()),
        (&json!("completed"), "echo: hi")
    );
    app.finish().await;
}

async fn a_schema_reaches_the_model_and_the_response(database: TestDatabase) {
    let app = FaceApp::start(&database).await;
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]});
    let format = json!({"type": "json_schema", "name": "shape", "schema": schema, "strict": true});
    let answer = app.respond(&json!({"input": "hi", "text": {"format": format}})).await;
    // The model of this test writes no JSON, so the run fails after its corrections.
    assert_eq!(answer.status, 500, "{}", answer.text());
    let asked = app.last_request();
    assert_eq!(asked["response_format"]["json_schema"]["name"], "shape");
    let id = answer.json()["error"]["response_id"].clone();
    let response = app.get(&path(&json!({"id": id}))).await;
    let shown = &response["text"]["format"];
    assert_eq!((&shown["schema"], &shown["description"]), (&schema, &Value::Null));
    app.finish().await;
}
