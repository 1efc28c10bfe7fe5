//! Several workers of one outbox, and workers that end.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agent::record::DeliveryStatus;
use agent_runtime::outbox::OutboxSettings;
use chrono::TimeDelta;
use test_support::databases::Engine;
use test_support::wait::until;
use tokio_util::sync::CancellationToken;
use tools::webhooks::{SecretTenants, SenderSettings};
use values::clock::Clock as _;

use super::setup::{LOCAL_SENDER, Outbox, SETTINGS};
use crate::support::webhook_receiver::{Reaction, WebhookReceiver};

async fn two_workers_share(engine: Engine) {
    let Some(outbox) = Outbox::open_on(engine).await else {
        return;
    };
    let receiver = WebhookReceiver::content().await;
    let mut ids = Vec::new();
    for _ in 0..60 {
        ids.push(outbox.write(&receiver.url("/")).await);
    }
    let workers = [outbox.work(LOCAL_SENDER), outbox.work(LOCAL_SENDER)];
    for id in &ids {
        until("a message is left", async || {
            outbox.wake();
            outbox.read(*id).await.status == DeliveryStatus::Delivered
        })
        .await;
        assert_eq!(outbox.read(*id).await.attempts, 1);
    }
    for worker in workers {
        worker.end().await;
    }
    let mut counts = BTreeMap::new();
    for message in receiver.received() {
        *counts.entry(message.header("webhook-id").to_owned()).or_insert(0) += 1;
    }
    assert_eq!(counts.len(), 60);
    assert!(counts.values().all(|count| *count == 1), "{counts:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workers_never_send_the_same_message_on_sqlite() {
    two_workers_share(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_workers_never_send_the_same_message_on_postgres() {
    two_workers_share(Engine::Postgres).await;
}

#[tokio::test]
async fn deliveries_of_a_killed_worker_are_repeated_after_its_lease() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let receiver = WebhookReceiver::start(move |_| match counted.fetch_add(1, Ordering::SeqCst) {
        0 => Reaction::Hang,
        _ => Reaction::Status(200, String::new()),
    })
    .await;
    let outbox = Outbox::open().await;
    let id = outbox.write(&receiver.url("/")).await;
    let killed = outbox.work(LOCAL_SENDER);
    until("nothing was sent", async || receiver.received().len() == 1).await;
    killed.kill().await;
    let left = outbox.read(id).await;
    assert_eq!((left.status, left.attempts), (DeliveryStatus::Pending, 1));
    assert_eq!(left.due_at, Some(outbox.lease_end()));

    let _heir = outbox.work(LOCAL_SENDER);
    outbox.advance(TimeDelta::seconds(30) - TimeDelta::microseconds(1));
    let marker = outbox.send(&receiver.url("/marker")).await;
    outbox.until_attempted(marker, 1).await;
    assert_eq!(outbox.read(id).await, left, "no sooner");
    outbox.advance(TimeDelta::microseconds(1));
    let delivered = outbox.until_attempted(id, 2).await;
    assert_eq!(delivered.status, DeliveryStatus::Delivered);
    let own = receiver.received().into_iter().filter(|message| message.path == "/");
    let ids: Vec<_> = own.map(|message| message.header("webhook-id").to_owned()).collect();
    assert_eq!(ids, vec![id.to_string(); 2]);
}

#[tokio::test]
async fn a_worker_that_shuts_down_finishes_deliveries_in_flight_and_starts_none() {
    let answered = CancellationToken::new();
    let held = answered.clone();
    let receiver = WebhookReceiver::start(move |_| Reaction::StatusAfter(200, held.clone())).await;
    let outbox = Outbox::open().await;
    let worker = outbox.work(LOCAL_SENDER);
    let id = outbox.send(&receiver.url("/")).await;
    until("nothing was sent", async || receiver.received().len() == 1).await;
    // A poll that has begun by now finds nothing that becomes due later.
    worker.stop();
    let minute = TimeDelta::minutes(1);
    let left = outbox
        .write_signed(&receiver.url("/"), None, outbox.clock.now() + minute)
        .await;
    outbox.advance(minute);
    answered.cancel();
    worker.end().await;
    assert_eq!(outbox.read(id).await.status, DeliveryStatus::Delivered);
    assert_eq!(outbox.read(left).await.attempts, 0);
    let _next = outbox.work(LOCAL_SENDER);
    assert_eq!(outbox.until_attempted(left, 1).await.status, DeliveryStatus::Delivered);
}

#[tokio::test]
async fn a_worker_that_shuts_down_does_not_wait_for_a_receiver_that_hangs() {
    let receiver = WebhookReceiver::start(|_| Reaction::Hang).await;
    let outbox = Outbox::open().await;
    let patient = SenderSettings {
        timeout: Duration::from_mins(10),
        ..LOCAL_SENDER
    };
    let worker = outbox.work(patient);
    let id = outbox.send(&receiver.url("/")).await;
    until("nothing was sent", async || receiver.received().len() == 1).await;
    worker.end().await;
    let left = outbox.read(id).await;
    assert_eq!((left.status, left.attempts), (DeliveryStatus::Pending, 1));
    assert_eq!(left.due_at, Some(outbox.clock.now() + TimeDelta::seconds(620)));
}

#[tokio::test]
async fn a_receiver_that_hangs_delays_no_other() {
    let slow = WebhookReceiver::start(|_| Reaction::Hang).await;
    let quick = WebhookReceiver::start_on("127.0.0.2", |_| Reaction::Status(204, String::new())).await;
    let outbox = Outbox::open().await;
    for path in 0..3 * SETTINGS.concurrency {
        outbox.write(&slow.url(&format!("/{path}"))).await;
    }
    let _worker = outbox.work(LOCAL_SENDER);
    // It has all slots but the last quarter.
    let most = SETTINGS.concurrency - SETTINGS.concurrency / 4;
    until("places lie idle", async || slow.received().len() == most).await;
    for _ in 0..5 {
        let id = outbox.send(&quick.url("/")).await;
        assert_eq!(outbox.until_attempted(id, 1).await.status, DeliveryStatus::Delivered);
    }
    assert_eq!(slow.received().len(), most);
}

#[tokio::test]
async fn a_host_is_one_receiver_however_its_addresses_are_written() {
    let slow = WebhookReceiver::start(|_| Reaction::Hang).await;
    let outbox = Outbox::open().await;
    for host in ["127.0.0.1", "0x7f.1", "127.1", "2130706433"] {
        for path in 0..SETTINGS.concurrency {
            outbox.write(&format!("http://{host}:{}/{path}", slow.port())).await;
        }
    }
    let _worker = outbox.work(LOCAL_SENDER);
    let most = SETTINGS.concurrency - SETTINGS.concurrency / 4;
    until("slots lie idle", async || slow.received().len() == most).await;
    let quick = WebhookReceiver::start_on("127.0.0.2", |_| Reaction::Status(204, String::new())).await;
    let id = outbox.send(&quick.url("/")).await;
    assert_eq!(outbox.until_attempted(id, 1).await.status, DeliveryStatus::Delivered);
    assert_eq!(slow.received().len(), most);
}

#[tokio::test]
async fn a_tenant_whose_hosts_all_hang_delays_no_other_tenant() {
    let outbox = Outbox::open().await;
    let mut slow = Vec::new();
    for number in 2..10 {
        let receiver = WebhookReceiver::start_on(&format!("127.0.0.{number}"), |_| Reaction::Hang).await;
        for path in 0..4 {
            outbox.write(&receiver.url(&format!("/{path}"))).await;
        }
        slow.push(receiver);
    }
    let settings = OutboxSettings {
        concurrency: 16,
        ..SETTINGS
    };
    let _worker = outbox.work_with(settings, LOCAL_SENDER, Arc::clone(&outbox.clock) as _);
    let in_flight = || slow.iter().map(|receiver| receiver.received().len()).sum::<usize>();
    until("slots lie idle", async || in_flight() == 14).await;
    let quick = WebhookReceiver::content().await;
    outbox.write_of("rival", &quick.url("/")).await;
    outbox.wake();
    until("the other tenant waits", async || quick.received().len() == 1).await;
    assert_eq!(in_flight(), 14);
}

#[tokio::test]
async fn a_secret_that_signs_for_other_tenants_signs_nothing() {
    let receiver = WebhookReceiver::content().await;
    let others = SecretTenants::These(BTreeSet::from(["rival".parse().unwrap()]));
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let outbox = Outbox::open().await.with_secret_for(others, "main", secret);
    let id = outbox
        .write_signed(&receiver.url("/"), Some("main"), outbox.clock.now())
        .await;
    let _worker = outbox.work(LOCAL_SENDER);
    let attempted = outbox.until_attempted(id, 1).await;
    assert_eq!(
        (attempted.status, attempted.error.as_deref()),
        (
            DeliveryStatus::Pending,
            Some("there is no secret \"main\" to sign it with")
        )
    );
    assert!(receiver.received().is_empty(), "it is never sent unsigned");
}

#[tokio::test]
async fn a_message_to_a_busy_receiver_is_sent_once_it_has_responded() {
    let receiver = WebhookReceiver::content().await;
    let outbox = Outbox::open().await;
    let mut ids = Vec::new();
    for _ in 0..3 * SETTINGS.concurrency {
        ids.push(outbox.write(&receiver.url("/")).await);
    }
    // It polls once at its start. Later wake-ups come only from itself.
    let _worker = outbox.work(LOCAL_SENDER);
    for id in ids {
        assert_eq!(outbox.until_attempted(id, 1).await.status, DeliveryStatus::Delivered);
    }
}

#[tokio::test]
async fn a_message_that_kills_its_workers_is_given_up() {
    for (refused, expected) in [
        (0, (None, "no attempt has ended")),
        (2, (Some(503), "it answered with status 503")),
    ] {
        let count = AtomicUsize::new(0);
        let receiver = WebhookReceiver::start(move |_| match count.fetch_add(1, Ordering::SeqCst) {
            number if number < refused => Reaction::Status(503, String::new()),
            _ => Reaction::Hang,
        })
        .await;
        let outbox = Outbox::open().await;
        let id = outbox.write(&receiver.url("/")).await;
        for attempt in 1..=SETTINGS.max_attempts as usize {
            let killed = outbox.work(LOCAL_SENDER);
            until("nothing was sent", async || receiver.received().len() == attempt).await;
            if attempt <= refused {
                outbox.until_attempted(id, u32::try_from(attempt).unwrap()).await;
            }
            killed.kill().await;
            outbox.advance(TimeDelta::seconds(30));
        }
        let _worker = outbox.work(LOCAL_SENDER);
        until("it is not given up", async || {
            outbox.read(id).await.status == DeliveryStatus::Dead
        })
        .await;
        let given_up = outbox.read(id).await;
        assert_eq!((given_up.response_status, given_up.error.as_deref().unwrap()), expected);
        assert_eq!((given_up.attempts, given_up.due_at), (SETTINGS.max_attempts + 1, None));
        assert_eq!(receiver.received().len(), SETTINGS.max_attempts as usize);
    }
}

#[tokio::test]
async fn no_more_messages_are_in_flight_than_allowed() {
    let outbox = Outbox::open().await;
    let (mut receivers, mut ids) = (Vec::new(), Vec::new());
    for _ in 0..=SETTINGS.concurrency {
        let slow = WebhookReceiver::start(|_| Reaction::Hang).await;
        ids.push(outbox.write(&slow.url("/")).await);
        receivers.push(slow);
    }
    let cut = SenderSettings {
        timeout: Duration::from_millis(300),
        ..LOCAL_SENDER
    };
    let _worker = outbox.work(cut);
    until("too few are sent", async || {
        receivers.iter().filter(|slow| !slow.received().is_empty()).count() >= SETTINGS.concurrency
    })
    .await;
    let mut begun = 0;
    for id in &ids {
        let record = outbox.read(*id).await;
        begun += usize::from(record.attempts == 1 && record.error.is_none());
    }
    assert!(begun <= SETTINGS.concurrency, "{begun} are on their way");
    // The last one takes the slot of the first that was cut.
    for id in &ids {
        until("one is never sent", async || outbox.read(*id).await.error.is_some()).await;
    }
}
