//! The stored progress of active runs: their journals and their events.

use std::sync::Arc;

use agent::record::RunEvent;
use store::{StoreSettings, open};
use test_support::databases::TestDatabase;
use test_support::drafts::{run_id, tenant};
use values::usage::{Cost, Usage};

use super::fixtures::{events, failed_end, journal, queued_run, steering};
use crate::fixtures::{Fixture, postgres};
use crate::postgres::held::{Held, until_waiting};

on_both_engines!(
    a_journal_is_read_in_order_and_by_its_run,
    nothing_is_appended_after_a_takeover,
    a_repeated_attempt_appends_nothing_twice,
    events_are_read_from_anywhere,
    what_a_run_has_used_is_read_with_its_next_lease,
);

async fn a_journal_is_read_in_order_and_by_its_run(fixture: Fixture) {
    let store = &fixture.store;
    fixture.enqueue(&queued_run(&fixture.tenant)).await;
    fixture.enqueue(&queued_run(&tenant("other"))).await;
    let leased = fixture.lease(2).await;
    for (index, run) in leased.iter().enumerate() {
        let last = 3 + index as u64;
        assert!(store.progress_append(&run.lease, &journal(1, 1), &[]).await.unwrap());
        assert!(store.progress_append(&run.lease, &journal(2, last), &[]).await.unwrap());
        assert!(store.progress_append(&run.lease, &[], &[]).await.unwrap());
        let read = store.journal_read(&run.lease.tenant, run.lease.run_id).await.unwrap();
        assert_eq!(read, journal(1, last));
    }
    let (first, second) = (&leased[0].lease, &leased[1].lease);
    assert_eq!(store.journal_read(&first.tenant, second.run_id).await.unwrap(), []);
    store.run_record(&first.tenant, &failed_end(&leased[0])).await.unwrap();
    assert_eq!(store.journal_read(&first.tenant, first.run_id).await.unwrap(), []);
    assert_eq!(
        store.journal_read(&second.tenant, second.run_id).await.unwrap(),
        journal(1, 4)
    );
}

async fn nothing_is_appended_after_a_takeover(fixture: Fixture) {
    let store = &fixture.store;
    let run = fixture.enqueue_new().await.summary.run_id;
    let first = fixture.lease_one().await.lease;
    let second = fixture.lease_at(101, 1).await.remove(0).lease;
    for (lease, retained) in [(&first, false), (&second, true)] {
        assert_eq!(
            store.progress_append(lease, &journal(1, 2), &[]).await.unwrap(),
            retained
        );
        assert_eq!(store.progress_append(lease, &[], &[]).await.unwrap(), retained);
        assert_eq!(
            store.progress_append(lease, &[], &events(run, 1, 2)).await.unwrap(),
            retained
        );
        assert_eq!(store.progress_append(lease, &[], &[]).await.unwrap(), retained);
        let rows = i64::from(retained);
        assert_eq!(
            (fixture.count("run_journal").await, fixture.count("run_events").await),
            (2 * rows, rows)
        );
    }
}

async fn a_repeated_attempt_appends_nothing_twice(fixture: Fixture) {
    let (store, tenant_id) = (&fixture.store, &fixture.tenant);
    let run = fixture.enqueue_new().await.summary.run_id;
    let lease = fixture.lease_one().await.lease;
    for _ in 0..2 {
        assert!(store.progress_append(&lease, &journal(1, 3), &[]).await.unwrap());
    }
    assert_eq!(store.journal_read(tenant_id, run).await.unwrap(), journal(1, 3));
    // The first attempt took effect, and the second has more events; a shorter one comes late.
    for last in [2, 4, 3] {
        assert!(store.progress_append(&lease, &[], &events(run, 1, last)).await.unwrap());
    }
    assert_eq!(
        store.event_read(tenant_id, run, 0, 100).await.unwrap(),
        events(run, 1, 4)
    );
    // Rows that overlap are read without gaps and without repetitions.
    assert!(store.progress_append(&lease, &[], &events(run, 4, 6)).await.unwrap());
    assert_eq!(
        store.event_read(tenant_id, run, 0, 100).await.unwrap(),
        events(run, 1, 6)
    );
    assert_eq!(store.event_last(tenant_id, run).await.unwrap(), 6);
}

async fn events_are_read_from_anywhere(fixture: Fixture) {
    let (store, tenant_id) = (&fixture.store, &fixture.tenant);
    let run = fixture.enqueue_new().await.summary.run_id;
    assert_eq!(store.event_last(tenant_id, run).await.unwrap(), 0);
    assert_eq!(store.event_read(tenant_id, run, 0, 10).await.unwrap(), []);
    let leased = fixture.lease_one().await;
    for (from, to) in [(1, 3), (4, 4), (5, 9)] {
        assert!(
            store
                .progress_append(&leased.lease, &[], &events(run, from, to))
                .await
                .unwrap()
        );
    }
    let mut end = failed_end(&leased);
    end.events = events(run, 10, 12);
    store.run_record(tenant_id, &end).await.unwrap();
    assert_eq!(store.event_last(tenant_id, run).await.unwrap(), 12);
    for after in 0..=13 {
        let mut seen: Vec<Arc<RunEvent>> = Vec::new();
        loop {
            let last = seen.last().map_or(after, |event| event.sequence);
            let page = store.event_read(tenant_id, run, last, 2).await.unwrap();
            // About as many as asked for: to the end of a row.
            assert!(page.len() <= 6, "{page:?}");
            if page.is_empty() {
                break;
            }
            seen.extend(page);
        }
        assert_eq!(seen, events(run, after + 1, 12), "{after}");
    }
    assert_eq!(store.event_read(tenant_id, run_id(), 0, 10).await.unwrap(), []);
    assert_eq!(store.event_read(&tenant("other"), run, 0, 10).await.unwrap(), []);
    assert_eq!(
        store.event_read(tenant_id, run, 0, 0).await.unwrap(),
        events(run, 1, 3),
        "at least one"
    );
}

async fn what_a_run_has_used_is_read_with_its_next_lease(fixture: Fixture) {
    let store = &fixture.store;
    let run_id = fixture.enqueue_new().await.summary.run_id;
    let shown = async || {
        store
            .run_lookup(&fixture.tenant, run_id)
            .await
            .unwrap()
            .unwrap()
            .summary
            .usage
    };
    let usage = |tokens| Usage {
        input_tokens: tokens,
        total_tokens: tokens,
        cost_known_part: Cost::from_dollars(0.25),
        ..Usage::default()
    };
    let first = fixture.lease_one().await;
    for tokens in [1, 2, 2] {
        assert!(store.usage_update(&first.lease, &usage(tokens)).await.unwrap());
        assert_eq!(shown().await, usage(tokens));
    }
    let second = fixture.lease_at(101, 10).await.remove(0);
    assert_eq!(second.summary.usage, usage(2));
    assert!(!store.usage_update(&first.lease, &usage(9)).await.unwrap());
    assert!(store.usage_update(&second.lease, &usage(3)).await.unwrap());
    // A record in its final form stays as it is.
    let end = failed_end(&second);
    store.run_record(&fixture.tenant, &end).await.unwrap();
    assert!(!store.usage_update(&second.lease, &usage(9)).await.unwrap());
    assert_eq!(shown().await, end.record.summary.usage);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_during_a_takeover_waits_for_it_and_changes_nothing() {
    let Some(fixture) = postgres().await else { return };
    // Half of the connections persist progress.
    let settings = StoreSettings {
        max_connections: 8,
        ..TestDatabase::settings()
    };
    let (store, tenant_id) = (&open(fixture.database.url(), settings).await.unwrap(), &fixture.tenant);
    let run = fixture.enqueue_new().await.summary.run_id;
    store.message_insert(tenant_id, run, &steering("a")).await.unwrap();
    let leased = fixture.lease_one().await;
    let (journal, events) = (journal(1, 2), events(run, 1, 2));
    let usage = Usage {
        total_tokens: 9,
        ..Usage::default()
    };
    let keys = ["a".to_owned()];
    let takeover = Held::taking_over(&fixture, run).await;
    let written = async {
        tokio::join!(
            store.progress_append(&leased.lease, &journal, &[]),
            store.progress_append(&leased.lease, &[], &events),
            store.usage_update(&leased.lease, &usage),
            store.message_apply(&leased.lease, &keys),
        )
    };
    let ((journal, events, usage, applied), ()) = tokio::join!(written, async {
        until_waiting(&fixture, 4).await;
        takeover.end("commit").await;
    });
    let written = [journal, events, usage, applied].map(Result::unwrap);
    assert_eq!(written, [false; 4]);
    assert_eq!(fixture.counts(["run_journal", "run_events"]).await, [0, 0]);
    assert_eq!(fixture.count("run_messages where status = 'received'").await, 1);
    let record = store.run_lookup(tenant_id, run).await.unwrap().unwrap();
    assert_eq!(record.summary.usage, leased.summary.usage);
    store.close().await;
}
