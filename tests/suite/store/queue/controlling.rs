//! What callers want of runs that have not ended: to stop or cancel them, and to say something to them.

use agent_runtime::record::{RunControl, SteeringStatus};
use agent_runtime::store::SteeringRecord;

use super::fixtures::{at, failed_end, steering};
use crate::store::fixtures::{Fixture, run_id, tenant};

on_both_engines!(
    a_cancellation_wins_over_a_stop,
    what_is_not_in_the_queue_is_not_controlled,
    messages_are_kept_once_and_in_order,
    messages_are_applied_under_the_lease_only,
    messages_that_wait_at_the_end_are_too_late,
);

async fn a_cancellation_wins_over_a_stop(fixture: Fixture) {
    let run = fixture.enqueue_new().await.summary.run_id;
    let control = async |wanted| fixture.store.run_control(&fixture.tenant, run, wanted).await.unwrap();
    assert!(control(RunControl::Stop).await && control(RunControl::Stop).await);
    let leased = fixture.lease_one().await;
    assert_eq!(leased.control, Some(RunControl::Stop));
    let renewed = async || {
        let renewed = fixture
            .store
            .lease_renew(std::slice::from_ref(&leased.lease), at(100))
            .await;
        renewed.unwrap().remove(0).control
    };
    assert_eq!(renewed().await, Some(RunControl::Stop));
    assert!(control(RunControl::Cancel).await);
    assert!(control(RunControl::Stop).await);
    assert_eq!(renewed().await, Some(RunControl::Cancel));
    assert_eq!(fixture.lease_at(101, 10).await[0].control, Some(RunControl::Cancel));
}

async fn what_is_not_in_the_queue_is_not_controlled(fixture: Fixture) {
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
    store.run_record(&fixture.tenant, &failed_end(&leased)).await.unwrap();
    assert!(
        !store
            .run_control(&fixture.tenant, run, RunControl::Cancel)
            .await
            .unwrap()
    );
}

async fn messages_are_kept_once_and_in_order(fixture: Fixture) {
    let (store, tenant_id) = (&fixture.store, &fixture.tenant);
    let run = fixture.enqueue_new().await.summary.run_id;
    let messages = ["b", "a", "c"].map(steering);
    for message in &messages {
        let status = store.message_insert(tenant_id, run, message).await.unwrap();
        assert_eq!(status, Some(SteeringStatus::Received));
    }
    // Another message of a key changes nothing.
    let status = store.message_insert(tenant_id, run, &steering("a")).await.unwrap();
    assert_eq!(status, Some(SteeringStatus::Received));
    let expected = messages.map(|message| SteeringRecord {
        message,
        status: SteeringStatus::Received,
    });
    assert_eq!(store.run_message_list(tenant_id, run).await.unwrap(), expected);
    for (tenant_id, run) in [(tenant_id, run_id()), (&tenant("other"), run)] {
        assert_eq!(
            store.message_insert(tenant_id, run, &steering("a")).await.unwrap(),
            None
        );
        assert_eq!(store.run_message_list(tenant_id, run).await.unwrap(), []);
    }
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
        .map(|kept| kept.status)
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
    assert_eq!(status, Some(SteeringStatus::Applied));
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
        ("a", Some(SteeringStatus::Applied)),
        ("b", Some(SteeringStatus::TooLate)),
        ("c", None),
    ] {
        let answer = store.message_insert(tenant_id, run, &steering(key)).await.unwrap();
        assert_eq!(answer, status, "{key}");
    }
}
