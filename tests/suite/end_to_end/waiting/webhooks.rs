//! The message about a run that waits, from the commit to a receiver: signed, sent once, and with
//! everything that is needed to answer.

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::wait::until;
use values::json::Value;

use super::{WaitingApp, answer_to, mixed};
use crate::end_to_end::on_every_store;
use crate::outbox::standard_webhooks::{NEW, given, verify};
use crate::support::members::assert_members;
use crate::support::test_app::run_path;
use crate::support::webhook_receiver::WebhookReceiver;

on_every_store!(a_receiver_answers_with_what_the_message_has);

async fn a_receiver_answers_with_what_the_message_has(database: TestDatabase) {
    let receiver = WebhookReceiver::content().await;
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, NEW).unwrap();
    let settings = [
        ("webhooks.allow_private_addresses", "true"),
        ("webhooks.allow_http", "true"),
        ("webhooks.secrets.main.file", secret.to_str().unwrap()),
        ("webhooks.secrets.main.tenants", "[\"*\"]"),
    ];
    let app = WaitingApp::start(&database, &settings).await;
    let mut sent = 0;
    for mode in ["sync", "async"] {
        let webhook = |events: Value| json!({"url": receiver.url("/runs"), "events": events, "secret": "main"});
        let body = json!({
            "agent": "asker", "input": mixed().to_string(), "mode": mode,
            "webhook": webhook(json!(["run.waiting", "run.completed"])),
        });
        let run = app.post("/v1/runs", &body).await.ok();
        let run = app.ended(&run).await;
        until("no message comes", async || receiver.received().len() > sent).await;
        let message = receiver.received().pop().unwrap().json();
        assert_members!(message, {"type": "run.waiting", "data": run});
        assert_eq!(message["data"]["required_action"]["calls"].as_array().unwrap().len(), 2);

        // The answers are made of nothing but the message. Their run wants to be heard of, too.
        let waiting = &message["data"];
        let body = json!({"mode": mode, "webhook": webhook(json!([])), "answers": [
            answer_to(waiting, "c2", json!({"result": {"choice": "yes"}})),
            answer_to(waiting, "c3", json!({"decision": "approve"})),
        ]});
        let next = app.post(&run_path(waiting, "/answers"), &body).await.ok();
        let next = app.ended(&next).await;
        assert_eq!(next["status"], "completed", "{next:#}");
        until("no second message comes", async || receiver.received().len() > sent + 1).await;
        let message = receiver.received().pop().unwrap().json();
        assert_members!(message, {"type": "run.completed", "data": next});
        sent += 2;
    }
    // A run that reports other ends only says nothing of waiting.
    let body = json!({
        "agent": "asker", "input": mixed().to_string(),
        "webhook": {"url": receiver.url("/runs"), "events": ["run.failed"]},
    });
    assert_eq!(app.run_with(body).await["status"], "waiting");
    let delivered = async || {
        app.get("/v1/webhooks/deliveries?status=delivered").await["data"]
            .as_array()
            .unwrap()
            .len()
    };
    until("the deliveries are not noted", async || delivered().await == sent).await;
    assert_eq!(
        app.get("/v1/webhooks/deliveries").await["data"]
            .as_array()
            .unwrap()
            .len(),
        sent
    );
    let received = receiver.received();
    assert_eq!(received.len(), sent);
    let messages: Vec<_> = received.iter().map(|message| given(message, NEW)).collect();
    if let Some(verified) = verify(&messages) {
        assert_eq!(verified, vec!["verified"; sent]);
    }
    app.finish().await;
}
