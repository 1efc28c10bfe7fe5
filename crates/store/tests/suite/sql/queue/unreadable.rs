//! Unreadable rows of the queue: they wait for a version that can read them, or end, and do not
//! hold up others.

use agent::record::RunStatus;
use store::queue::{IfBusy, UNREADABLE_ATTEMPTS, UnreadableRequest};

use super::fixtures::{at, events, ids, queued_run, steering, terms, thread_run, worker};
use crate::fixtures::Fixture;

on_both_engines!(
    unreadable_runs_do_not_hold_up_others,
    an_unreadable_run_fails_after_some_attempts,
    a_run_of_a_newer_version_is_deferred,
    a_request_that_cannot_be_read_is_handed_over,
    a_deferred_run_is_leased_when_it_is_due,
    an_unreadable_control_does_not_lose_the_lease,
);

/// Ways to damage the record of the run that is named, or its place in the queue.
const DAMAGES: [&str; 5] = [
    "update runs set metadata = '[]' where",
    "update runs set model = '' where",
    "update runs set status = 'dreaming', durability = 'never' where",
    "update run_queue set fence = -9 where",
    "delete from runs where",
];

/// The condition on the row of a run.
fn of_run(fixture: &Fixture, run_id: values::ids::RunId) -> String {
    match fixture.database.engine {
        test_support::databases::Engine::Postgres => format!("run_id = '{run_id}'"),
        test_support::databases::Engine::Sqlite => format!("run_id = x'{}'", run_id.as_uuid().simple()),
    }
}

async fn damage(fixture: &Fixture, damage: &str, run_id: values::ids::RunId) {
    let condition = of_run(fixture, run_id);
    fixture.execute(&format!("{damage} {condition}")).await;
}

async fn unreadable_runs_do_not_hold_up_others(fixture: Fixture) {
    for spoil in DAMAGES {
        let run_id = fixture.enqueue_new().await.summary.run_id;
        damage(&fixture, spoil, run_id).await;
    }
    let good = fixture.enqueue_new().await.summary.run_id;
    // Each of them has the place of the one that can be read.
    assert_eq!(ids(&fixture.lease(1).await), [good]);
    assert_eq!(fixture.lease(10).await, [], "they are leased as any other");
    let urgent = fixture.enqueue_new().await.summary.run_id;
    assert_eq!(ids(&fixture.lease_at(101, 1).await), [good]);
    assert_eq!(ids(&fixture.lease_at(102, 10).await), [urgent]);
}

async fn an_unreadable_run_fails_after_some_attempts(fixture: Fixture) {
    for spoil in DAMAGES {
        let bad = thread_run(&fixture.tenant, "t", IfBusy::Queue);
        fixture.enqueue(&bad).await;
        let run_id = bad.summary.run_id;
        let next = thread_run(&fixture.tenant, "t", IfBusy::Queue);
        fixture.enqueue(&next).await;
        let leased = fixture.lease_one().await;
        let retained = events(run_id, 1, 3);
        assert!(
            fixture
                .store
                .progress_append(&leased.lease, &[], &retained)
                .await
                .unwrap()
        );
        let message = steering("late");
        fixture
            .store
            .message_insert(&fixture.tenant, run_id, &message)
            .await
            .unwrap();
        assert!(fixture.store.lease_release(&leased.lease).await.unwrap());
        damage(&fixture, spoil, run_id).await;

        let condition = of_run(&fixture, run_id);
        let queued = format!("run_queue where {condition}");
        for attempt in 0..i64::from(UNREADABLE_ATTEMPTS) {
            assert_eq!(fixture.count(&queued).await, 1, "{spoil} {attempt}");
            let leased = fixture.lease_at(attempt * 101, 1).await;
            let is_last = attempt + 1 == i64::from(UNREADABLE_ATTEMPTS);
            // The end of the one lets the other begin.
            let expected = if is_last { vec![next.summary.run_id] } else { vec![] };
            assert_eq!(ids(&leased), expected, "{spoil} {attempt}");
        }
        assert_eq!(fixture.count(&queued).await, 0, "{spoil}");
        let ended = format!(
            "runs where {condition} and status = 'failed' and error like '%request_unusable%' and event_count = 4
                and completed_at is not null"
        );
        let is_there = !spoil.starts_with("delete");
        assert_eq!(fixture.count(&ended).await, i64::from(is_there), "{spoil}");
        let late = format!("run_messages where {condition} and status = 'too_late'");
        assert_eq!(fixture.count(&late).await, 1, "{spoil}");
        fixture.execute("delete from run_queue").await;
    }
}

async fn a_run_of_a_newer_version_is_deferred(fixture: Fixture) {
    let run = fixture.enqueue_new().await;
    let run_id = run.summary.run_id;
    let version = fixture
        .database
        .number("select cast(schema_version as bigint) from runs")
        .await;
    damage(&fixture, "update runs set schema_version = 99 where", run_id).await;
    let good = fixture.enqueue_new().await.summary.run_id;
    assert_eq!(ids(&fixture.lease(1).await), [good]);
    // However often this version finds it, it stays.
    for round in 1..=2 * i64::from(UNREADABLE_ATTEMPTS) {
        assert_eq!(ids(&fixture.lease_at(round * 101, 10).await), [good]);
    }
    let left = "run_queue where attempts = 0 and owner is null and leased_until is not null";
    assert_eq!(fixture.count(left).await, 1);
    let back = format!("update runs set schema_version = {version} where");
    damage(&fixture, &back, run_id).await;
    assert_eq!(fixture.lease_at(606, 10).await, [], "it is not due yet");
    let leased = fixture.lease_at(707, 10).await;
    let leased = leased.iter().find(|leased| leased.lease.run_id == run_id).unwrap();
    assert_eq!(
        (leased.summary.attempts, leased.is_taken_over, leased.summary.status),
        (1, false, RunStatus::Running)
    );
}

async fn a_request_that_cannot_be_read_is_handed_over(fixture: Fixture) {
    let zeros = match fixture.database.engine {
        test_support::databases::Engine::Postgres => r"'\x0000'",
        test_support::databases::Engine::Sqlite => "x'0000'",
    };
    fixture.enqueue_new().await;
    let cases = [
        ("schema_version = 7".to_owned(), true),
        ("schema_version = 1, encoding = 9".to_owned(), true),
        ("encoding = -1".to_owned(), false),
        (format!("encoding = 1, request = {zeros}"), false),
    ];
    for (index, (spoil, is_newer)) in (0..).zip(cases) {
        let update = format!("update run_queue set {spoil}");
        fixture.execute(&update).await;
        let mut leased = fixture.lease_at(index * 101, 10).await;
        assert_eq!(leased.len(), 1, "{spoil}");
        let leased = leased.remove(0);
        assert_eq!(leased.summary.attempts, u32::try_from(index + 1).unwrap(), "{spoil}");
        let found = leased.request.read().unwrap_err();
        let expected = |found: &UnreadableRequest| match found {
            UnreadableRequest::Newer(_) => is_newer,
            UnreadableRequest::Damaged(_) => !is_newer,
        };
        assert!(expected(&found), "{spoil}: {found:?}");
    }
}

async fn a_deferred_run_is_leased_when_it_is_due(fixture: Fixture) {
    let run = fixture.enqueue_new().await;
    let run_id = run.summary.run_id;
    let leased = fixture.lease_one().await;
    let store = &fixture.store;
    assert!(store.lease_defer(&leased.lease, at(50)).await.unwrap());
    assert!(
        !store.lease_defer(&leased.lease, at(50)).await.unwrap(),
        "it is given back once"
    );
    assert!(!store.lease_release(&leased.lease).await.unwrap());
    let renewed = store.lease_renew(std::slice::from_ref(&leased.lease), at(60)).await;
    assert_eq!(renewed.unwrap(), []);
    let summary = store
        .run_lookup(&fixture.tenant, run_id)
        .await
        .unwrap()
        .unwrap()
        .summary;
    assert_eq!((summary.status, summary.attempts), (RunStatus::Queued, 0));
    assert_eq!(fixture.lease_at(50, 10).await, []);
    // A caller can end it without waiting.
    let now = terms(worker(), 10, 20);
    let leased = store
        .run_lease_now(&now, &fixture.tenant, run_id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!((leased.summary.attempts, leased.is_taken_over), (1, false));
    assert_eq!(store.run_lease_now(&now, &fixture.tenant, run_id).await.unwrap(), None);
    assert!(store.lease_defer(&leased.lease, at(50)).await.unwrap());
    let due = fixture.lease_at(51, 10).await;
    assert_eq!((ids(&due), due[0].is_taken_over), (vec![run_id], false));
    assert!(due[0].lease.fence > leased.lease.fence);
}

async fn an_unreadable_control_does_not_lose_the_lease(fixture: Fixture) {
    for _ in 0..2 {
        fixture.enqueue(&queued_run(&fixture.tenant)).await;
    }
    let leased = fixture.lease(2).await;
    let leases: Vec<_> = leased.iter().map(|leased| leased.lease.clone()).collect();
    fixture.execute("update run_queue set control = 'dance'").await;
    let renewed = fixture.store.lease_renew(&leases, at(200)).await.unwrap();
    let controls: Vec<_> = renewed.iter().map(|renewed| renewed.control).collect();
    assert_eq!(controls, [None, None]);
    let again = fixture.lease_at(201, 2).await;
    let controls: Vec<_> = again.iter().map(|leased| leased.control).collect();
    assert_eq!(controls, [None, None]);
}
