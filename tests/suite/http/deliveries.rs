//! Messages to webhooks about ended runs, and the list of their deliveries.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use reqwest::Method;
use serde_json::{Value, json};
use test_support::wait::until;

use super::service::Service;
use crate::support::answer::read;
use crate::support::members::{assert_members, column};
use crate::support::test_app::run_path;
use crate::support::webhook_receiver::{Reaction, WebhookReceiver};

/// Messages are sent as soon as they are written, since nobody looks for them otherwise, and once.
const SETTINGS: &[(&str, &str)] = &[
    ("webhooks.allow_private_addresses", "true"),
    ("webhooks.allow_http", "true"),
    ("webhooks.poll_interval", "1h"),
    ("webhooks.max_attempts", "1"),
];

on_every_store! {
    with super::SETTINGS;
    the_end_of_a_run_is_sent_as_the_api_shows_it,
    only_the_configured_ends_are_sent,
    a_dead_message_is_listed_and_sent_again_by_hand,
    a_request_to_send_again_is_answered_twice_and_done_once,
    deliveries_are_listed_in_pages,
}

/// Makes an agent whose runs are told of.
async fn put_agent(service: &Service, url: &str) {
    let agent = json!({"model": "mock/echo", "webhook": {"url": url}});
    service.put_agent("told", agent).await;
}

/// Returns the deliveries that a query finds.
async fn list(service: &Service, query: &str) -> Vec<Value> {
    let page = service.get(&format!("/v1/webhooks/deliveries?{query}")).await;
    page["data"].as_array().unwrap().clone()
}

/// Waits until the only delivery of a run is of this status, and returns it.
async fn until_status(service: &Service, run: &Value, status: &str) -> Value {
    let query = format!("status={status}&run_id={}", run["run_id"].as_str().unwrap());
    until("the delivery is never so", async || {
        !list(service, &query).await.is_empty()
    })
    .await;
    let found = list(service, &query).await;
    let [delivery] = &found[..] else { panic!("{found:?}") };
    delivery.clone()
}

async fn the_end_of_a_run_is_sent_as_the_api_shows_it(service: &Service) {
    let receiver = WebhookReceiver::content().await;
    let url = receiver.url("/ends");
    put_agent(service, &url).await;
    let run = service
        .run_with(json!({"agent": "told", "input": "hi", "metadata": {"ticket": 7}}))
        .await;
    let delivery = until_status(service, &run, "delivered").await;
    let [message] = &receiver.received()[..] else {
        panic!("{:?}", receiver.received())
    };
    let shown = service.get(&run_path(&run, "")).await;
    let expected = json!({
        "type": "run.completed",
        "timestamp": run["completed_at"],
        "tenant": "default",
        "data": shown,
    });
    assert_eq!(message.json(), expected);
    assert_eq!(message.header("webhook-id"), delivery["delivery_id"]);
    let expected = json!({
        "delivery_id": delivery["delivery_id"],
        "run_id": run["run_id"],
        "event": "run.completed",
        "url": url,
        "secret": null,
        "status": "delivered",
        "attempts": 1,
        "response_status": 204,
        "error": null,
        "created_at": run["completed_at"],
        "next_attempt_at": null,
        "delivered_at": delivery["delivered_at"],
    });
    assert_eq!(delivery, expected);
    assert!(delivery["delivered_at"].is_string());
    let path = format!("/v1/webhooks/deliveries/{}", delivery["delivery_id"].as_str().unwrap());
    assert_eq!(service.get(&path).await, delivery);
}

async fn only_the_configured_ends_are_sent(service: &Service) {
    let receiver = WebhookReceiver::content().await;
    // Nobody listens there, so the run fails.
    let broken = json!({"name": "webhook", "config": {"url": "http://127.0.0.1:2/", "points": ["before_execution"]}});
    for (events, hooks, status, event) in [
        (json!(["run.failed", "run.stopped"]), json!([]), "completed", None),
        (json!(["run.completed"]), json!([]), "completed", Some("run.completed")),
        (json!(["run.completed"]), json!([broken]), "failed", None),
        (
            json!(["run.stopped", "run.failed"]),
            json!([broken]),
            "failed",
            Some("run.failed"),
        ),
        (json!([]), json!([broken]), "failed", Some("run.failed")),
    ] {
        let webhook = json!({"url": receiver.url("/"), "events": events});
        let agent = json!({"model": "mock/echo", "hooks": hooks, "webhook": webhook});
        service.put_agent("choosy", agent).await;
        let run = service.run_with(json!({"agent": "choosy", "input": "hi"})).await;
        assert_eq!(run["status"], status);
        let Some(event) = event else {
            let query = format!("run_id={}", run["run_id"].as_str().unwrap());
            assert_eq!(list(service, &query).await, Vec::<Value>::new(), "{events}");
            continue;
        };
        assert_eq!(until_status(service, &run, "delivered").await["event"], event);
        let message = receiver.received().pop().unwrap().json();
        assert_members!(message, {"type": event, "data/status": status, "data/run_id": run["run_id"]});
    }
    assert_eq!(receiver.received().len(), 3);
}

async fn a_dead_message_is_listed_and_sent_again_by_hand(service: &Service) {
    let status = Arc::new(AtomicU16::new(503));
    let reported = Arc::clone(&status);
    let receiver =
        WebhookReceiver::start(move |_| Reaction::Status(reported.load(Ordering::SeqCst), String::new())).await;
    put_agent(service, &receiver.url("/")).await;
    let run = service.run_with(json!({"agent": "told", "input": "hi"})).await;
    let dead = until_status(service, &run, "dead").await;
    assert_members!(dead, {"attempts": 1, "response_status": 503, "error": "it answered with status 503"});
    status.store(200, Ordering::SeqCst);
    let path = format!("/v1/webhooks/deliveries/{}", dead["delivery_id"].as_str().unwrap());
    let answer = read(service.request(Method::POST, &format!("{path}/redeliver"))).await;
    assert_eq!(answer.status.as_u16(), 202);
    assert_eq!(
        (&answer.json()["status"], &answer.json()["attempts"]),
        (&json!("pending"), &json!(0))
    );
    let delivered = until_status(service, &run, "delivered").await;
    assert_eq!(delivered["attempts"], 1);
    let received = receiver.received();
    let [first, second] = &received[..] else {
        panic!("{received:?}")
    };
    assert_eq!(first.raw, second.raw, "byte for byte");
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"));
    let missing = "/v1/webhooks/deliveries/0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11/redeliver";
    read(service.request(Method::POST, missing))
        .await
        .assert_problem("delivery_not_found");
}

async fn a_request_to_send_again_is_answered_twice_and_done_once(service: &Service) {
    let receiver = WebhookReceiver::content().await;
    put_agent(service, &receiver.url("/")).await;
    let mut deliveries = Vec::new();
    for _ in 0..2 {
        let run = service.run_with(json!({"agent": "told", "input": "hi"})).await;
        deliveries.push((until_status(service, &run, "delivered").await, run));
    }
    let [(delivery, run), (other, _)] = &deliveries[..] else {
        panic!("{deliveries:?}")
    };
    let redeliver = async |delivery: &Value, key: &str| {
        let path = format!(
            "/v1/webhooks/deliveries/{}/redeliver",
            delivery["delivery_id"].as_str().unwrap()
        );
        read(service.request(Method::POST, &path).header("idempotency-key", key)).await
    };
    let first = redeliver(delivery, "k").await;
    assert_eq!((first.status.as_u16(), first.header("idempotency-replayed")), (202, ""));
    assert_eq!(first.json()["status"], "pending");
    let delivered = until_status(service, run, "delivered").await;
    for _ in 0..2 {
        let again = redeliver(delivery, "k").await;
        assert_eq!(
            (again.status.as_u16(), again.header("idempotency-replayed")),
            (202, "true")
        );
        // It is not sent again, so it stays as it is.
        assert_eq!(again.json(), delivered);
    }
    assert_eq!(receiver.received().len(), 3);
    redeliver(other, "k").await.assert_problem("idempotency_key_reused");
    // What was refused has no key.
    let missing = json!({"delivery_id": "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11"});
    redeliver(&missing, "k-2").await.assert_problem("delivery_not_found");
    let sent = redeliver(other, "k-2").await;
    assert_eq!((sent.status.as_u16(), sent.header("idempotency-replayed")), (202, ""));
    until("it is not sent", async || receiver.received().len() == 4).await;
}

async fn deliveries_are_listed_in_pages(service: &Service) {
    // Nobody listens there.
    put_agent(service, "http://127.0.0.1:2/").await;
    let mut runs = Vec::new();
    for _ in 0..5 {
        let run = service.run_with(json!({"agent": "told", "input": "hi"})).await;
        runs.insert(0, run["run_id"].clone());
    }
    let listed = json!(service.rows("/v1/webhooks/deliveries?limit=2").await);
    assert_eq!(json!(column(&listed, "run_id")), json!(runs));
    assert_eq!(list(service, "status=delivered").await, Vec::<Value>::new());
}
