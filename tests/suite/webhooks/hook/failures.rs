//! Webhooks that fail: a fail-closed one fails the run, and a fail-open one is skipped.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use test_support::gate::Gate;
use test_support::logs::{CapturedLog, listen};
use test_support::ports::RefusingAddress;

use super::setup::{LOCAL, Service};
use crate::support::hostile::{endless_prompt, endless_schemas};
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply};
use crate::support::webhook_receiver::{Reaction, WebhookReceiver};

fn reply_with_schema(schema: &Value) -> Value {
    json!({"response_format": {"type": "json_schema", "name": "a", "schema": schema}})
}

/// Every way of a receiver to fail, with what the caller reads.
fn ways() -> Vec<(Reaction, &'static str)> {
    let json = Reaction::Json;
    let ok = |body: &str| Reaction::Status(200, body.to_owned());
    let many: Value = (0..65)
        .map(|at| (format!("k{at}"), json!(1)))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let deep = (0..49).fold(json!({}), |schema, _| json!({"not": schema}));
    let refused = "its reply can't be used: response_format: the schema can't be used: ";
    let endless = endless_schemas().map(|(schema, _)| (json(reply_with_schema(&schema)), refused));
    let ways = [
        (Reaction::Status(500, "hunter2".into()), "it answered with status 500"),
        (Reaction::Status(404, String::new()), "it answered with status 404"),
        (Reaction::Status(202, String::new()), "it answered with status 202"),
        (
            Reaction::Redirect("/elsewhere".into()),
            "it answered with a redirect (status 307), which is not followed",
        ),
        (Reaction::Hang, "it did not answer in time"),
        (Reaction::HangInside, "it did not answer in time"),
        (Reaction::Break, "the connection to it broke"),
        (ok(&"x".repeat(70_000)), "its response has more than 65536 bytes"),
        (
            ok(" "),
            "its reply can't be used: it is no JSON: EOF while parsing a value at line 1 column 1",
        ),
        (ok("[]"), "its reply can't be used: it is no JSON object"),
        (
            json(json!({"metadata": {"a": "\0"}})),
            "its reply can't be used: it holds a NUL character",
        ),
        (
            json(json!({"metadata": many})),
            "its reply can't be used: metadata: at most 64 keys are allowed",
        ),
        (
            json(json!({"arguments": {}})),
            "its reply can't be used: it has `arguments`, which no webhook may change at before_step",
        ),
        (
            json(json!({"system_prompt": "{{ open"})),
            "its reply can't be used: system_prompt: ",
        ),
        (
            json(json!({"system_prompt": endless_prompt(900)})),
            "its reply can't be used: system_prompt: ",
        ),
        (
            json(reply_with_schema(&json!({"type": "array"}))),
            "its reply can't be used: response_format: the schema must have \"type\": \"object\"",
        ),
        (
            json(reply_with_schema(&json!({"type": "object", "allOf": [deep]}))),
            "its reply can't be used: response_format: the schema can't be used: it nests deeper than 48 levels",
        ),
        (
            json(
                json!({"messages": [{"content": [{"type": "tool_result", "call_id": "c", "name": "n", "content": []}]}]}),
            ),
            "its reply can't be used: messages: its content is not one or more texts, images and documents",
        ),
    ];
    ways.into_iter().chain(endless).collect()
}

#[tokio::test]
async fn a_failing_webhook_fails_the_run_if_closed_and_is_skipped_if_open() {
    let log = CapturedLog::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    let _listening = listen(subscriber);
    let settings = [&LOCAL[..], &[("webhooks.max_response_bytes", "65536")]].concat();
    let service = Service::start(MockModel::echoing().await, &settings).await;
    for (reaction, expected) in ways() {
        let shown = format!("{reaction:?}");
        // Only a receiver that hangs meets the limit.
        let timeout = if shown.starts_with("Hang") { "1s" } else { "10s" };
        let receiver = WebhookReceiver::start(move |_| reaction.clone()).await;
        let attach = async |policy: &str| {
            let more = json!({"on_failure": policy, "timeout": timeout});
            service
                .attach(&receiver.url("/?token=hunter2"), &["before_step"], &more)
                .await;
        };
        attach("closed").await;
        let asked = service.mock.asked();
        let failed = service.run("hi").await;
        assert_members!(failed, {
            "status": "failed",
            "error/code": "hook_failed",
            "stop_reason": "error_forbade",
        }, "{shown}");
        let message = failed["error"]["message"].as_str().unwrap();
        let whole = format!("the hook webhook failed: the webhook at 127.0.0.1 failed: {expected}");
        assert!(message.starts_with(&whole), "{shown}: {message}");
        assert_eq!(service.mock.asked(), asked, "{shown}");

        attach("open").await;
        let completed = service.run("hi").await;
        assert_members!(completed, {"status": "completed", "output_text": "echo: hi"}, "{shown}");
        assert_eq!(receiver.points(), ["before_step", "before_step"], "{shown}");
    }
    let log = log.text();
    let passed_over = log
        .matches("a webhook failed, and the run continues without its reply")
        .count();
    assert_eq!(passed_over, ways().len(), "{log}");
    assert!(!log.contains("hunter2"), "{log}");
    service.app.finish().await;
}

#[tokio::test]
async fn an_invalid_response_format_fails_the_run_also_if_open() {
    let service = Service::start(MockModel::echoing().await, &LOCAL).await;
    let answer = reply_with_schema(&json!({"type": "object", "properties": {"a": {"type": "moon"}}}));
    let receiver = WebhookReceiver::start(move |_| Reaction::Json(answer.clone())).await;
    for policy in ["closed", "open"] {
        let more = json!({"on_failure": policy});
        service.attach(&receiver.url("/"), &["before_step"], &more).await;
        let failed = service.run("hi").await;
        assert_members!(failed, {"status": "failed", "error/code": "response_format_invalid"}, "{policy}");
        let message = failed["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("the schema is not valid: "), "{policy}: {message}");
    }
    assert_eq!(service.mock.asked(), 0);
    service.app.finish().await;
}

#[tokio::test]
async fn an_unreachable_receiver_is_a_failure() {
    let refusing = RefusingAddress::new();
    let service = Service::start(MockModel::echoing().await, &LOCAL).await;
    service
        .attach(
            &format!("http://{}/", refusing.address()),
            &["before_execution"],
            &json!({}),
        )
        .await;
    let failed = service.run("hi").await;
    assert_eq!(
        failed["error"]["message"],
        "the hook webhook failed: the webhook at 127.0.0.1 failed: it can't be reached"
    );
    service.app.finish().await;
}

#[tokio::test]
async fn a_name_that_resolves_to_this_machine_gets_no_message() {
    let receiver = WebhookReceiver::content().await;
    let service = Service::start(MockModel::echoing().await, &[("webhooks.allow_http", "true")]).await;
    let url = format!("http://localhost:{}/", receiver.port());
    service.attach(&url, &["before_execution"], &json!({})).await;
    let failed = service.run("hi").await;
    assert_eq!(
        failed["error"]["message"],
        "the hook webhook failed: the webhook at localhost failed: its address is not public"
    );
    service
        .attach(&url, &["before_execution"], &json!({"on_failure": "open"}))
        .await;
    assert_eq!(service.run("hi").await["status"], "completed");
    assert!(receiver.received().is_empty());
    service.app.finish().await;
}

#[tokio::test]
async fn a_run_out_of_time_waits_for_no_webhook() {
    let receiver = WebhookReceiver::start(|_| Reaction::Hang).await;
    // With `open` the model has the rest of the time, which is nearly nothing. It must not complete
    // in it.
    let gate = Gate::new();
    let mock = MockModel::start(move |_| Reply::Held(Arc::clone(&gate), "late".into())).await;
    let service = Service::start(mock, &LOCAL).await;
    for (policy, status, reason) in [
        ("closed", "failed", "error_forbade"),
        ("open", "stopped", "time_limit_reached"),
    ] {
        let more = json!({"on_failure": policy});
        service
            .attach(&receiver.url("/"), &["before_model_request"], &more)
            .await;
        let body = json!({"agent": "hooked", "input": "hi", "budget": {"max_seconds": 1}});
        let result = service.app.run_with(body).await;
        assert_members!(result, {"status": status, "stop_reason": reason, "output_text": ""});
        let is_asked = !service.mock.requests().is_empty();
        assert!(
            !is_asked || policy == "open",
            "the model was asked before the webhook had answered"
        );
    }
    service.app.finish().await;
}

#[tokio::test]
async fn the_end_of_a_run_out_of_time_is_sent() {
    let receiver = WebhookReceiver::content().await;
    let mock = MockModel::start(|_| Reply::Slow(vec!["one ".into(), "two".into()], Duration::from_mins(1))).await;
    let service = Service::start(mock, &LOCAL).await;
    service
        .attach(&receiver.url("/"), &["on_stop", "after_execution"], &json!({}))
        .await;
    let body = json!({"agent": "hooked", "input": "hi", "budget": {"max_seconds": 0.1}});
    let result = service.app.run_with(body).await;
    assert_members!(result, {"status": "stopped", "stop_reason": "time_limit_reached"});
    assert_eq!(receiver.points(), ["on_stop", "after_execution"]);
    for message in receiver.received() {
        assert_eq!(message.json()["stop_reason"], "time_limit_reached");
    }
    service.app.finish().await;
}
