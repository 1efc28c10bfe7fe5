//! The changes that a webhook may make, in whole runs.

use std::collections::BTreeMap;

use serde_json::json;
use values::json::Value;

use super::setup::{LOCAL, Service, hooked};
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, content_text, last_user_text, tool_results};
use crate::support::test_app::session_path;
use crate::support::text::{assert_contains, assert_lacks};
use crate::support::webhook_receiver::{Reaction, WebhookReceiver};

/// Starts a receiver that replies to the first message of each point from the map, and changes
/// nothing else.
async fn replying(answers: &[(&str, Value)]) -> WebhookReceiver {
    let mut answers: BTreeMap<String, Value> = answers
        .iter()
        .map(|(point, answer)| ((*point).to_owned(), answer.clone()))
        .collect();
    WebhookReceiver::start(move |message| match answers.remove(&message.point()) {
        Some(answer) => Reaction::Json(answer),
        None => Reaction::Status(204, String::new()),
    })
    .await
}

/// Starts a model that calculates first and then repeats what it read.
async fn calculating() -> MockModel {
    MockModel::start(|request| match tool_result(request) {
        Some(result) => Reply::text(&format!("read: {result}")),
        None => Reply::call("c1", "calculator", &json!({"expression": "6 * 7"})),
    })
    .await
}

fn tool_result(request: &Value) -> Option<String> {
    tool_results(request).into_iter().next()
}

async fn start(mock: MockModel, answers: &[(&str, Value)]) -> (WebhookReceiver, Service) {
    let receiver = replying(answers).await;
    let points: Vec<&str> = answers.iter().map(|(point, _)| *point).collect();
    let service = hooked(mock, &receiver, &points).await;
    (receiver, service)
}

#[tokio::test]
async fn a_reply_without_a_body_changes_nothing() {
    for status in [200, 204] {
        let receiver = WebhookReceiver::start(move |_| Reaction::Status(status, String::new())).await;
        let points = ["before_execution", "before_tool_use", "after_model_request"];
        let service = hooked(calculating().await, &receiver, &points).await;
        let result = service.run("go").await;
        assert_members!(result, {"status": "completed", "output_text": "read: 42"}, "{status}");
        assert_eq!(receiver.received().len(), 4, "{status}");
        service.app.finish().await;
    }
}

#[tokio::test]
async fn a_blocked_call_is_not_executed_and_the_model_reads_why() {
    let block = json!({"decision": {"block": "no arithmetic on Sundays"}});
    let (receiver, service) = start(calculating().await, &[("before_tool_use", block)]).await;
    let result = service.run("go").await;
    assert_members!(result, {"status": "completed", "output_text": "read: no arithmetic on Sundays"});
    let asked = &receiver.received()[0].json()["tool_call"];
    assert_eq!(asked["arguments"], r#"{"expression":"6 * 7"}"#);
    let requests = service.mock.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(tool_result(&requests[1]).as_deref(), Some("no arithmetic on Sundays"));
    service.app.finish().await;
}

#[tokio::test]
async fn a_tool_s_arguments_and_results_can_be_changed_or_supplied() {
    let tool = "before_tool_use";
    for (answer, expected) in [
        ((tool, json!({"arguments": {"expression": "1 + 1"}})), "read: 2"),
        ((tool, json!({"decision": {"supply": "forty-two"}})), "read: forty-two"),
        (
            (
                tool,
                json!({"decision": {"supply": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}}),
            ),
            "read: a\nb",
        ),
        (("after_tool_use", json!({"content": "[removed]"})), "read: [removed]"),
    ] {
        let shown = format!("{answer:?}");
        let (_receiver, service) = start(calculating().await, &[answer]).await;
        let result = service.run("go").await;
        assert_eq!(result["output_text"], expected, "{shown}: {result:#}");
        service.app.finish().await;
    }
}

#[tokio::test]
async fn a_completion_can_be_replaced_before_it_is_emitted() {
    let mock = MockModel::start(|_| Reply::Text(vec!["my password ".into(), "is hunter2".into()])).await;
    let (_receiver, service) = start(mock, &[("after_model_request", json!({"content": "[removed]"}))]).await;
    let events = service.app.stream(json!({"agent": "hooked", "input": "go"})).await;
    let emitted = json!(events).to_string();
    assert_contains!(emitted, "[removed]");
    assert_lacks!(emitted, "hunter2");
    service.app.finish().await;
}

#[tokio::test]
async fn context_and_input_can_be_changed_before_the_model_request() {
    let answers = [
        (
            "before_execution",
            json!({"input": [{"content": "redacted"}], "metadata": {"ticket": 7}}),
        ),
        ("before_step", json!({"system_prompt": "Ticket {{ metadata.ticket }}."})),
    ];
    let (_receiver, service) = start(MockModel::echoing().await, &answers).await;
    let result = service.run("my card is 4111").await;
    assert_eq!(result["output_text"], "echo: redacted", "{result:#}");
    let request = &service.mock.requests()[0];
    assert_eq!(content_text(&request["messages"][0]["content"]), "Ticket 7.");
    let session = service.app.get(&session_path(&result, "")).await;
    assert_eq!(session["metadata"]["ticket"], 7, "{session:#}");
    service.app.finish().await;
}

#[tokio::test]
async fn a_run_can_be_stopped_and_continued() {
    let stop = json!({"stop": {"message": "outside of office hours"}});
    let (_receiver, service) = start(MockModel::echoing().await, &[("before_step", stop)]).await;
    let events = service.app.stream(json!({"agent": "hooked", "input": "hi"})).await;
    let errors = events
        .iter()
        .find(|event| event["type"] == "continuation.evaluated")
        .unwrap()
        .to_string();
    for part in ["stop_requested", "webhook", "outside of office hours"] {
        assert!(errors.contains(part), "{errors}");
    }
    assert!(service.mock.requests().is_empty());
    service.app.finish().await;

    let on = json!({"continue": true, "messages": [{"content": "and in French?"}]});
    let (receiver, service) = start(MockModel::echoing().await, &[("after_step", on)]).await;
    let result = service.run("hi").await;
    assert_members!(result, {"status": "completed", "output_text": "echo: and in French?"});
    let requests = service.mock.requests();
    assert_eq!(
        requests.iter().map(last_user_text).collect::<Vec<_>>(),
        ["hi", "and in French?"]
    );
    assert_eq!(receiver.points(), ["after_step", "after_step"]);
    service.app.finish().await;
}

#[tokio::test]
async fn histories_are_sent_only_if_configured() {
    for include in [false, true] {
        let receiver = WebhookReceiver::content().await;
        let service = Service::start(MockModel::echoing().await, &LOCAL).await;
        let more = json!({"include_messages": include});
        service
            .attach(&receiver.url("/"), &["before_model_request"], &more)
            .await;
        service.run("hi").await;
        let request = receiver.received()[0].json()["request"].clone();
        assert_eq!(request["message_count"], 1);
        let text = &request["messages"][0]["content"][0]["text"];
        assert_eq!(text, &if include { json!("hi") } else { Value::Null }, "{request:#}");
        service.app.finish().await;
    }
}

#[tokio::test]
async fn a_run_that_a_webhook_fails_has_the_message_of_the_webhook() {
    let mock = MockModel::start(|_| Reply::call("c1", "calculator", &json!({"expression": "6 *"}))).await;
    let stop = json!({"stop": {"reason": "error_forbade", "message": "no arithmetic today"}});
    let (_receiver, service) = start(mock, &[("after_tool_use", stop)]).await;
    let result = service.run("go").await;
    assert_eq!(result["status"], "failed", "{result:#}");
    // Without the webhook, the model would have read the tool's error and continued.
    assert_members!(result["error"], {"code": "execution_failed", "message": "no arithmetic today"});
    service.app.finish().await;
}
