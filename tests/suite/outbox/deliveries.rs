//! A message is delivered, or retried with growing pauses, or given up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use agent::record::{DeliveryRecord, DeliveryStatus};
use chrono::TimeDelta;
use store::outbox::Restarted;
use test_support::drafts::requester_at;
use test_support::ports::RefusingAddress;
use tools::webhooks::SenderSettings;
use values::clock::Clock as _;
use values::tenant::TenantId;

use super::setup::{LOCAL_SENDER, Outbox, SETTINGS};
use crate::support::webhook_receiver::{Reaction, WebhookReceiver};

/// Starts a receiver, and returns it with the status of its responses.
async fn configurable_receiver() -> (WebhookReceiver, Arc<AtomicU16>) {
    let status = Arc::new(AtomicU16::new(503));
    let current = Arc::clone(&status);
    let receiver =
        WebhookReceiver::start(move |_| Reaction::Status(current.load(Ordering::SeqCst), "no".to_owned())).await;
    (receiver, status)
}

/// How long a delivery waits for its next attempt, from now on.
fn waits(outbox: &Outbox, record: &DeliveryRecord) -> Duration {
    (record.due_at.unwrap() - outbox.clock.now()).to_std().unwrap()
}

#[tokio::test]
async fn a_message_is_delivered_once() {
    for status in [200, 201, 204, 299] {
        let receiver = WebhookReceiver::start(move |_| Reaction::Status(status, String::new())).await;
        let outbox = Outbox::open().await;
        let _worker = outbox.work(LOCAL_SENDER);
        let id = outbox.write(&receiver.url("/ends?of=runs")).await;
        let written = outbox.read(id).await;
        outbox.wake();
        let expected = DeliveryRecord {
            status: DeliveryStatus::Delivered,
            attempts: 1,
            response_status: Some(status),
            due_at: None,
            delivered_at: Some(outbox.clock.now()),
            ..written
        };
        assert_eq!(outbox.until_attempted(id, 1).await, expected);
        let [message] = &receiver.received()[..] else {
            panic!("{:?}", receiver.received())
        };
        assert_eq!(message.header("webhook-id"), id.to_string());
        assert_eq!(
            message.header("webhook-timestamp"),
            outbox.clock.now().timestamp().to_string()
        );
        assert_eq!(message.header("content-type"), "application/json");
        assert!(!message.headers.contains_key("webhook-signature"));
        assert_eq!(message.json()["data"]["words"], "Zürich");
        // A year later there is nothing more to send: another message comes alone.
        outbox.clock.advance(TimeDelta::days(365));
        let next = outbox.send(&receiver.url("/next")).await;
        outbox.until_attempted(next, 1).await;
        assert_eq!(receiver.received().len(), 2);
    }
}

#[tokio::test]
async fn a_failing_message_is_retried_with_growing_pauses_and_then_given_up() {
    let (receiver, _) = configurable_receiver().await;
    let outbox = Outbox::open().await;
    let _worker = outbox.work(LOCAL_SENDER);
    let id = outbox.send(&receiver.url("/")).await;
    for (attempts, whole) in [(1, 8), (2, 16), (3, 20)] {
        let record = outbox.until_attempted(id, attempts).await;
        assert_eq!(record.status, DeliveryStatus::Pending);
        assert_eq!(record.response_status, Some(503));
        assert_eq!(record.error.as_deref(), Some("it answered with status 503"));
        let whole = Duration::from_secs(whole);
        let waits = waits(&outbox, &record);
        assert!((whole / 2..=whole).contains(&waits), "{attempts}: {waits:?}");
        // A moment before, only what was written since is sent.
        outbox
            .clock
            .advance(TimeDelta::from_std(waits).unwrap() - TimeDelta::microseconds(1));
        let marker = outbox.send(&receiver.url("/marker")).await;
        outbox.until_attempted(marker, 1).await;
        assert_eq!(outbox.read(id).await, record);
        outbox.advance(TimeDelta::microseconds(1));
    }
    let dead = outbox.until_attempted(id, 4).await;
    assert_eq!((dead.status, dead.due_at), (DeliveryStatus::Dead, None));
    assert_eq!(dead.error.as_deref(), Some("it answered with status 503"));
    let messages = receiver.received();
    let own = messages.iter().filter(|message| message.path == "/");
    let ids: Vec<_> = own.map(|message| message.header("webhook-id")).collect();
    assert_eq!(ids, vec![id.to_string(); 4], "one id over all attempts");
}

#[tokio::test]
async fn a_receiver_that_asks_for_more_time_gets_it() {
    // The date is 15 seconds after the clock's.
    for (status, retry_after, expected) in [
        (429, "15", Some(15)),
        (503, "Fri, 02 Jan 2026 03:04:20 GMT", Some(15)),
        (503, "3600", Some(20)),
        (503, "1", None),
        (503, "soon", None),
    ] {
        let receiver = WebhookReceiver::start(move |_| Reaction::RetryAfter(status, retry_after.to_owned())).await;
        let outbox = Outbox::open().await;
        let _worker = outbox.work(LOCAL_SENDER);
        let id = outbox.send(&receiver.url("/")).await;
        let record = outbox.until_attempted(id, 1).await;
        let waits = waits(&outbox, &record);
        let own = SETTINGS.retry_base_delay / 2..=SETTINGS.retry_base_delay;
        match expected {
            Some(seconds) => assert_eq!(waits, Duration::from_secs(seconds), "{retry_after}"),
            None => assert!(own.contains(&waits), "{retry_after}: {waits:?}"),
        }
    }
}

#[tokio::test]
async fn a_receiver_that_is_gone_gets_nothing_more() {
    let receiver = WebhookReceiver::start(|_| Reaction::RetryAfter(410, "5".to_owned())).await;
    let outbox = Outbox::open().await;
    let _worker = outbox.work(LOCAL_SENDER);
    let id = outbox.send(&receiver.url("/")).await;
    let record = outbox.until_attempted(id, 1).await;
    assert_eq!((record.status, record.due_at), (DeliveryStatus::Dead, None));
    assert_eq!(record.response_status, Some(410));
}

#[tokio::test]
async fn a_dead_message_that_is_restarted_starts_over() {
    let (receiver, status) = configurable_receiver().await;
    status.store(410, Ordering::SeqCst);
    let outbox = Outbox::open().await;
    let _worker = outbox.work(LOCAL_SENDER);
    let id = outbox.send(&receiver.url("/")).await;
    outbox.until_attempted(id, 1).await;
    status.store(200, Ordering::SeqCst);
    outbox.clock.advance(TimeDelta::days(1));
    let tenant: TenantId = "acme".parse().unwrap();
    let now = outbox.clock.now();
    let restarted = outbox
        .store
        .delivery_restart(&tenant, id, None, &requester_at(now))
        .await;
    assert!(matches!(restarted.unwrap(), Restarted::Now(_)));
    outbox.wake();
    let delivered = outbox.until_attempted(id, 1).await;
    assert_eq!(delivered.status, DeliveryStatus::Delivered);
    let messages = receiver.received();
    let [first, second] = &messages[..] else {
        panic!("{messages:?}")
    };
    assert_eq!(first.header("webhook-id"), second.header("webhook-id"));
    assert_ne!(first.header("webhook-timestamp"), second.header("webhook-timestamp"));
}

#[tokio::test]
async fn a_failed_delivery_is_reported_and_retried() {
    let elsewhere = WebhookReceiver::content().await;
    let quick = SenderSettings {
        timeout: Duration::from_secs(2),
        ..LOCAL_SENDER
    };
    let guarded = SenderSettings {
        allow_private_addresses: false,
        ..LOCAL_SENDER
    };
    let location = elsewhere.url("/");
    let cases = [
        (Reaction::Hang, quick, "it did not answer in time", None),
        (Reaction::HangInside, quick, "it did not answer in time", None),
        (Reaction::Break, LOCAL_SENDER, "the connection to it broke", None),
        (
            Reaction::Redirect(location),
            LOCAL_SENDER,
            "it answered with a redirect (status 307), which is not followed",
            Some(307),
        ),
        (
            Reaction::Status(200, "x".repeat(1_025)),
            LOCAL_SENDER,
            "its response has more than 1024 bytes",
            None,
        ),
        (
            Reaction::Status(404, String::new()),
            LOCAL_SENDER,
            "it answered with status 404",
            Some(404),
        ),
        (
            Reaction::Status(204, String::new()),
            guarded,
            "its address is not public",
            None,
        ),
    ];
    for (reaction, sender, expected, status) in cases {
        let receiver = WebhookReceiver::start(move |_| reaction.clone()).await;
        let outbox = Outbox::open().await;
        let _worker = outbox.work(sender);
        let id = outbox.send(&format!("http://localhost:{}/", receiver.port())).await;
        let record = outbox.until_attempted(id, 1).await;
        assert_eq!(record.error.as_deref(), Some(expected));
        assert_eq!(
            (record.status, record.response_status),
            (DeliveryStatus::Pending, status)
        );
        assert!(record.due_at.unwrap() > outbox.clock.now(), "{expected}");
        let received = receiver.received().len();
        if status.is_some() {
            assert_eq!(received, 1, "{expected}");
        } else {
            // The time for the answer may pass before the message is sent.
            assert!(received <= usize::from(!expected.contains("public")), "{expected}");
        }
    }
    assert!(elsewhere.received().is_empty());
}

#[tokio::test]
async fn a_message_without_its_secret_is_not_sent() {
    let receiver = WebhookReceiver::content().await;
    let guarded = SenderSettings {
        allow_private_addresses: false,
        ..LOCAL_SENDER
    };
    for (sender, secret, expected) in [
        (guarded, None, "the address can't be used: its address is not public"),
        (
            LOCAL_SENDER,
            Some("lost"),
            "there is no secret \"lost\" to sign it with",
        ),
    ] {
        let outbox = Outbox::open().await;
        let _worker = outbox.work(sender);
        let now = outbox.clock.now();
        let id = outbox.write_signed(&receiver.url("/"), secret, now).await;
        outbox.wake();
        let record = outbox.until_attempted(id, 1).await;
        assert!(
            record.error.as_ref().unwrap().starts_with(expected),
            "{:?}",
            record.error
        );
        assert_eq!((record.status, record.response_status), (DeliveryStatus::Pending, None));
    }
    assert!(receiver.received().is_empty());
}

#[tokio::test]
async fn the_cause_of_a_failure_is_only_logged() {
    let outbox = Outbox::open().await;
    let _worker = outbox.work(LOCAL_SENDER);
    let refusing = RefusingAddress::new();
    let id = outbox
        .write(&format!("http://{}/hooks?token=hunter2", refusing.address()))
        .await;
    outbox.wake();
    let record = outbox.until_attempted(id, 1).await;
    assert_eq!(record.error.as_deref(), Some("it can't be reached"));
}
