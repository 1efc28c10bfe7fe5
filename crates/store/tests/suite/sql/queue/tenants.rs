//! The limit of waiting runs of a tenant: it binds, and other tenants do not suffer.

use futures_util::future::join_all;
use store::queue::{Acceptance, IfBusy, NewQueuedRun};
use test_support::drafts::tenant;

use super::fixtures::{at, key, queued_run, terms, thread_run, worker};
use crate::fixtures::Fixture;

on_both_engines!(
    a_tenant_has_no_more_runs_waiting_than_it_may,
    a_repeated_request_returns_the_first_result_even_if_the_queue_is_full,
    racing_requests_get_no_more_than_their_tenant_may,
);

fn limited(run: NewQueuedRun, max_waiting: u32) -> NewQueuedRun {
    NewQueuedRun {
        max_waiting: Some(max_waiting),
        ..run
    }
}

async fn a_tenant_has_no_more_runs_waiting_than_it_may(fixture: Fixture) {
    let own = || limited(queued_run(&fixture.tenant), 2);
    let enqueue = async |run: NewQueuedRun| fixture.store.run_accept(&run).await.unwrap();
    fixture.enqueue(&own()).await;
    // One that waits for its thread waits as well.
    fixture
        .enqueue(&limited(thread_run(&fixture.tenant, "t", IfBusy::Queue), 2))
        .await;
    assert_eq!(enqueue(own()).await, Acceptance::TenantFull);
    let on_thread = limited(thread_run(&fixture.tenant, "u", IfBusy::Queue), 2);
    assert_eq!(enqueue(on_thread).await, Acceptance::TenantFull);
    assert_eq!(fixture.counts(["runs", "run_queue"]).await, [2, 2]);
    assert_eq!(fixture.count("threads").await, 1);

    // One that begins at once does not wait, and another tenant's runs are its own.
    let at_once = NewQueuedRun {
        lease: Some(terms(worker(), 0, 10)),
        ..own()
    };
    assert!(fixture.enqueue(&at_once).await.is_some());
    fixture.enqueue(&limited(queued_run(&tenant("another")), 1)).await;
    fixture.enqueue(&queued_run(&fixture.tenant)).await;
    assert_eq!(fixture.lease(10).await.len(), 4);
    fixture.enqueue(&own()).await;
}

async fn a_repeated_request_returns_the_first_result_even_if_the_queue_is_full(fixture: Fixture) {
    let first = limited(queued_run(&fixture.tenant), 1);
    fixture.enqueue(&first).await;
    let expected = Acceptance::Accepted {
        lease: None,
        interrupted: None,
    };
    assert_eq!(fixture.store.run_accept(&first).await.unwrap(), expected);
    fixture.lease_one().await;
    let keyed = || {
        let run = NewQueuedRun {
            idempotency: Some(key("a", "body", at(1_000_000_000))),
            ..queued_run(&fixture.tenant)
        };
        limited(run, 1)
    };
    fixture.enqueue(&keyed()).await;
    let again = fixture.store.run_accept(&keyed()).await.unwrap();
    assert!(matches!(again, Acceptance::Known(_)), "{again:?}");
}

async fn racing_requests_get_no_more_than_their_tenant_may(fixture: Fixture) {
    let runs: Vec<NewQueuedRun> = (0..24)
        .map(|number| match number % 2 {
            0 => limited(queued_run(&fixture.tenant), 5),
            _ => limited(thread_run(&fixture.tenant, &format!("t{number}"), IfBusy::Reject), 5),
        })
        .collect();
    let answers = join_all(runs.iter().map(|run| fixture.store.run_accept(run))).await;
    let accepted = answers
        .into_iter()
        .map(Result::unwrap)
        .filter(|answer| *answer != Acceptance::TenantFull);
    assert_eq!(accepted.count(), 5);
    assert_eq!(fixture.counts(["runs", "run_queue"]).await, [5, 5]);
}
