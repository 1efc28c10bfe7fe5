//! Callers control runs that have not ended: they stop or cancel them, and send them messages.

use agent::record::{MAX_RUN_MESSAGES, MAX_RUN_MESSAGES_BYTES, RunControl, SteeringStatus};
use store::queue::{MessagePut, SteeringRecord};
use store::runs::{Recorded, RunEnd};
use test_support::drafts::{run_id, tenant};
use values::message::{Message, Role};

use super::fixtures::{at, commit_of, failed_end, steering};
use crate::fixtures::Fixture;

on_both_engines!(
    a_cancellation_wins_over_a_stop,
    a_run_outside_the_queue_is_not_controlled,
    messages_are_stored_once_and_in_order,
    a_run_takes_a_limited_number_of_messages,
    a_run_takes_a_limited_size_of_messages_even_at_once,
    messages_are_applied_under_the_lease_only,
    messages_that_wait_at_the_end_are_too_late,
    messages_that_the_end_has_applied_are_so,
);

async fn a_cancellation_wins_over_a_stop(fixture: Fixture) {
    let run = fixture.enqueue_new().await.summary.run_id;
    let control = async |wanted| fixture.store.run_control(&fixture.tenant, run, wanted).await.unwrap();
    assert!(control(RunControl::Stop).await && control(RunControl::Stop).await);
    let leased = fixture.lease_one().await;
    assert_eq!(leased.control, Some(RunControl::Stop));
    let renewed = async || fixture.renew(&leased.lease, at(100)).await.remove(0).control;
    assert_eq!(renewed().await, Some(RunControl::Stop));
    assert!(control(RunControl::Cancel).await);
    assert!(control(RunControl::Stop).await);
    assert_eq!(renewed().await, Some(RunControl::Cancel));
    assert_eq!(fixture.lease_at(101, 10).await[0].control, Some(RunControl::Cancel));
}

async fn a_run_outside_the_queue_is_not_controlled(fixture: Fixture) {
    let store = &fixture.store;
    let run = fixture.enqueue_new().await.summary.run_id;
    assert!(
        !store
            .run_control(&fixture.tenant, run_id(), RunControl::Stop)
            .await
            .unwrap()
    );
    assert!(
        !store
            .run_control(&tenant("other"), run, RunControl::Cancel)
            .await
            .unwrap()
    );
    let leased = fixture.lease_one().await;
    assert_eq!(leased.control, None);
    fixture.fail(&leased).await;
    assert!(
        !store
            .run_control(&fixture.tenant, run, RunControl::Cancel)
            .await
            .unwrap()
    );
}

async fn messages_are_stored_once_and_in_order(fixture: Fixture) {
    let (store, tenant_id) = (&fixture.store, &fixture.tenant);
    let run = fixture.enqueue_new().await.summary.run_id;
    let messages = ["b", "a", "c"].map(steering);
    for message in &messages {
        let status = store.message_insert(tenant_id, run, message).await.unwrap();
        assert_eq!(status, MessagePut::Known(SteeringStatus::Received));
    }
    // Another message of a key changes nothing.
    let status = store.message_insert(tenant_id, run, &steering("a")).await.unwrap();
    assert_eq!(status, MessagePut::Known(SteeringStatus::Received));
    assert_eq!(store.waiting_message_list(tenant_id, run).await.unwrap(), messages);
    let expected = messages.map(|message| SteeringRecord {
        message,
        status: SteeringStatus::Received,
    });
    assert_eq!(store.run_message_list(tenant_id, run).await.unwrap(), expected);
    for (tenant_id, run) in [(tenant_id, run_id()), (&tenant("other"), run)] {
        assert_eq!(
            store.message_insert(tenant_id, run, &steering("a")).await.unwrap(),
            MessagePut::NoRun
        );
        assert_eq!(store.run_message_list(tenant_id, run).await.unwrap(), []);
        assert_eq!(store.waiting_message_list(tenant_id, run).await.unwrap(), []);
    }
}

async fn a_run_takes_a_limited_number_of_messages(fixture: Fixture) {
    let (store, tenant_id) = (&fixture.store, &fixture.tenant);
    let run = fixture.enqueue_new().await.summary.run_id;
    let lease = fixture.lease_one().await.lease;
    let insert = async |key: &str| store.message_insert(tenant_id, run, &steering(key)).await.unwrap();
    for number in 0..MAX_RUN_MESSAGES {
        let put = insert(&number.to_string()).await;
        assert_eq!(put, MessagePut::Known(SteeringStatus::Received), "{number}");
    }
    assert_eq!(insert("more").await, MessagePut::Full);
    // Those that are applied count as well.
    assert!(store.message_apply(&lease, &["7".to_owned()]).await.unwrap());
    assert_eq!(insert("more").await, MessagePut::Full);
    assert_eq!(insert("7").await, MessagePut::Known(SteeringStatus::Applied));
    let retained = store.run_message_list(tenant_id, run).await.unwrap();
    assert_eq!(retained.len(), MAX_RUN_MESSAGES);
    let waiting = store.waiting_message_list(tenant_id, run).await.unwrap();
    assert_eq!(waiting.len(), MAX_RUN_MESSAGES - 1);
    // Another run has room of its own.
    let other = fixture.enqueue_new().await.summary.run_id;
    let put = store.message_insert(tenant_id, other, &steering("more")).await;
    assert_eq!(put.unwrap(), MessagePut::Known(SteeringStatus::Received));
}

async fn a_run_takes_a_limited_size_of_messages_even_at_once(fixture: Fixture) {
    let (store, tenant_id) = (&fixture.store, &fixture.tenant);
    let run = fixture.enqueue_new().await.summary.run_id;
    let of_bytes = |key: usize, bytes: usize| {
        let mut message = steering("words");
        message.key = key.to_string();
        let words = "a".repeat(bytes - message.size());
        let text = format!("{}{words}", message.message.joined_text());
        message.message = Message::text(message.message.id, Role::User, text, message.message.created_at);
        assert_eq!(message.size(), bytes);
        message
    };
    // Each takes a fourth, so four of them fit.
    let messages: Vec<_> = (0..12).map(|key| of_bytes(key, MAX_RUN_MESSAGES_BYTES / 4)).collect();
    let puts = messages
        .iter()
        .map(|message| store.message_insert(tenant_id, run, message));
    let puts = futures_util::future::try_join_all(puts).await.unwrap();
    let retained = puts
        .iter()
        .filter(|put| **put == MessagePut::Known(SteeringStatus::Received));
    assert_eq!(retained.count(), 4, "{puts:?}");
    assert_eq!(puts.iter().filter(|put| **put == MessagePut::Full).count(), 8);
    let records = store.run_message_list(tenant_id, run).await.unwrap();
    assert_eq!(records.len(), 4);
    let smallest = store.message_insert(tenant_id, run, &steering("small")).await;
    assert_eq!(smallest.unwrap(), MessagePut::Full);
}

async fn messages_are_applied_under_the_lease_only(fixture: Fixture) {
    let (store, tenant_id) = (&fixture.store, &fixture.tenant);
    let run = fixture.enqueue_new().await.summary.run_id;
    for key in ["a", "b", "c"] {
        store.message_insert(tenant_id, run, &steering(key)).await.unwrap();
    }
    let first = fixture.lease_one().await.lease;
    let second = fixture.lease_at(101, 1).await.remove(0).lease;
    let keys = |keys: &[&str]| -> Vec<String> { keys.iter().map(|key| (*key).to_owned()).collect() };
    assert!(!store.message_apply(&first, &keys(&["a"])).await.unwrap());
    assert!(!store.message_apply(&first, &[]).await.unwrap());
    assert!(store.message_apply(&second, &[]).await.unwrap());
    for _ in 0..2 {
        assert!(
            store
                .message_apply(&second, &keys(&["b", "a", "unheard of"]))
                .await
                .unwrap()
        );
    }
    let statuses: Vec<_> = store
        .run_message_list(tenant_id, run)
        .await
        .unwrap()
        .iter()
        .map(|retained| retained.status)
        .collect();
    assert_eq!(
        statuses,
        [
            SteeringStatus::Applied,
            SteeringStatus::Applied,
            SteeringStatus::Received
        ]
    );
    let status = store.message_insert(tenant_id, run, &steering("b")).await.unwrap();
    assert_eq!(status, MessagePut::Known(SteeringStatus::Applied));
    let waiting = store.waiting_message_list(tenant_id, run).await.unwrap();
    let waiting: Vec<_> = waiting.iter().map(|message| message.key.as_str()).collect();
    assert_eq!(waiting, ["c"]);
    let renewed = store.lease_renew(&[second], at(300)).await.unwrap();
    assert!(renewed[0].has_messages);
}

async fn messages_that_wait_at_the_end_are_too_late(fixture: Fixture) {
    let (store, tenant_id) = (&fixture.store, &fixture.tenant);
    let run = fixture.enqueue_new().await.summary.run_id;
    let leased = fixture.lease_one().await;
    for key in ["a", "b"] {
        store.message_insert(tenant_id, run, &steering(key)).await.unwrap();
    }
    store.message_apply(&leased.lease, &["a".to_owned()]).await.unwrap();
    store.run_record(tenant_id, &failed_end(&leased)).await.unwrap();
    for (key, status) in [
        ("a", MessagePut::Known(SteeringStatus::Applied)),
        ("b", MessagePut::Known(SteeringStatus::TooLate)),
        ("c", MessagePut::NoRun),
    ] {
        let answer = store.message_insert(tenant_id, run, &steering(key)).await.unwrap();
        assert_eq!(answer, status, "{key}");
    }
}

async fn messages_that_the_end_has_applied_are_so(fixture: Fixture) {
    let (store, tenant_id) = (&fixture.store, &fixture.tenant);
    for is_committed in [true, false] {
        let run = fixture.enqueue_new().await.summary.run_id;
        let leased = fixture.lease_one().await;
        for key in ["a", "b", "c"] {
            store.message_insert(tenant_id, run, &steering(key)).await.unwrap();
        }
        store.message_apply(&leased.lease, &["a".to_owned()]).await.unwrap();
        let applied = vec!["a".to_owned(), "c".to_owned(), "unheard of".to_owned()];
        if is_committed {
            let mut commit = commit_of(&fixture, &leased);
            commit.run = commit.run.map(|end| RunEnd { applied, ..end });
            store.session_commit(&commit).await.unwrap();
        } else {
            let end = RunEnd {
                applied,
                ..failed_end(&leased)
            };
            assert_eq!(store.run_record(tenant_id, &end).await.unwrap(), Recorded::Now);
        }
        for (key, status) in [
            ("a", SteeringStatus::Applied),
            ("b", SteeringStatus::TooLate),
            ("c", SteeringStatus::Applied),
        ] {
            let answer = store.message_insert(tenant_id, run, &steering(key)).await.unwrap();
            assert_eq!(answer, MessagePut::Known(status), "{key}, {is_committed}");
        }
    }
}
