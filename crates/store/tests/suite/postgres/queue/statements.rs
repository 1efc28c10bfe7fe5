//! How many statements the queue costs on PostgreSQL, beside those that begin transactions and
//! those that wake workers.

use store::queue::{IfBusy, NewQueuedRun};
use test_support::logs::listen;
use test_support::statements::Statements;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;

use crate::fixtures::Fixture;
use crate::sql::queue::fixtures::{at, commit_of, events, journal, key, queued_run, terms, thread_run, worker};

// One thread, so that the subscriber of this thread sees all of the driver's work.
#[tokio::test(flavor = "current_thread")]
async fn a_queued_run_takes_few_statements() {
    let Some(fixture) = Fixture::on_one_connection().await else {
        return;
    };
    let store = &fixture.store;
    // The committer connects with its first batch.
    fixture.root(&["first"]).await;
    let statements = Statements::default();
    let _listening = listen(Registry::default().with(statements.clone()));
    let taken = |expected: usize, what: &str| assert_eq!(statements.taken(), expected, "{what}");

    fixture.enqueue_new().await;
    taken(1, "accepting a run");
    let keyed = NewQueuedRun {
        idempotency: Some(key("a", "body", at(1_000_000_000))),
        lease: Some(terms(worker(), 0, 10)),
        ..queued_run(&fixture.tenant)
    };
    fixture.enqueue(&keyed).await;
    taken(1, "accepting a run under a key, with a lease");
    fixture.enqueue_new().await;
    taken(1, "accepting another");
    let leased = fixture.lease(10).await;
    taken(1, "leasing several runs");
    let leases: Vec<_> = leased.iter().map(|run| run.lease.clone()).collect();
    assert_eq!(store.lease_renew(&leases, at(100)).await.unwrap().len(), 2);
    taken(1, "renewing several leases");
    assert!(store.progress_append(&leases[0], &journal(1, 3), &[]).await.unwrap());
    taken(1, "appending to a journal");
    assert!(
        store
            .progress_append(&leases[0], &[], &events(leases[0].run_id, 1, 3))
            .await
            .unwrap()
    );
    taken(1, "appending events");
    let commit = commit_of(&fixture, &leased[0]);
    store.session_commit(&commit).await.unwrap();
    taken(1, "committing");
    fixture.fail(&leased[1]).await;
    taken(4, "recording: the lease, how to plan, the end, the commit");
    fixture.enqueue(&thread_run(&fixture.tenant, "t", IfBusy::Queue)).await;
    taken(3, "accepting a run on a thread: who is active, the rows, the end");
    let leased = fixture.lease_one().await;
    taken(1, "leasing it");
    fixture.complete(&leased).await;
    taken(
        6,
        "committing it: who is next, and the move of the thread, beside the others",
    );
}
