//! Connections to PostgreSQL that are cut: nothing is half-written, and a repeated attempt returns
//! the result of the first.

use std::sync::Arc;

use agent::record::RunStatus;
use store::queue::{Acceptance, Lease, NewQueuedRun};
use store::runs::Recorded;
use store::sessions::Commit;
use store::{CommitError, Store, StoreSettings, open};
use test_support::databases::TestDatabase;
use test_support::drafts::object;
use test_support::proxy::{Proxy, split_url};

use crate::fixtures::{Fixture, postgres};
use crate::sql::queue::fixtures::{
    commit_of, delivery, events, failed_end, journal, queued_run, terms, thread_run, worker,
};

/// A text in the request or in the metadata of a run; PostgreSQL gets it unchanged, in the
/// statement that writes it.
const MARK: &str = "lose-the-answer-to-this";

/// A second store on the fixture's database, whose connection is cut once.
async fn cut_store(fixture: &Fixture, mark: &'static str) -> (Arc<dyn Store>, Proxy) {
    let proxy = Proxy::start(split_url(fixture.database.url()).0, mark).await;
    let settings = StoreSettings {
        migrate: false,
        ..TestDatabase::settings()
    };
    let store = open(&proxy.url(fixture.database.url()), settings).await.unwrap();
    (store, proxy)
}

/// Commits over a store whose connection is cut at the mark, and returns that store.
async fn cut_commit(fixture: &Fixture, mark: &'static str, commit: &Commit) -> (Arc<dyn Store>, Proxy) {
    let (store, proxy) = cut_store(fixture, mark).await;
    let error = store.session_commit(commit).await.unwrap_err();
    assert!(
        matches!(&error, CommitError::Store(error) if error.is_transient()),
        "{mark}: {error:?}"
    );
    assert_eq!(proxy.cuts(), 1, "{mark}");
    (store, proxy)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_that_is_cut_anywhere_is_whole_or_nothing() {
    // The transaction sends the end of the run in one statement, with the session, the record and
    // the events. Then it sends who is next, the webhooks, the thread and the commit.
    let marks = [
        ("delete from run_queue", false),
        ("update run_queue set is_held", false),
        ("update threads", false),
        (MARK, false),
        ("insert into run_events", false),
        ("insert into webhook_deliveries", false),
        ("insert into history_segments", false),
        ("COMMIT", true),
    ];
    let Some(fixture) = postgres().await else { return };
    for (turn, (mark, is_done)) in marks.into_iter().enumerate() {
        let mut run = thread_run(&fixture.tenant, &format!("t{turn}"), store::queue::IfBusy::Reject);
        run.summary.metadata = object(serde_json::json!({"mark": MARK}));
        fixture.enqueue(&run).await;
        let leased = fixture.lease_one().await;
        let run_id = leased.lease.run_id;
        assert!(
            fixture
                .store
                .progress_append(&leased.lease, &journal(1, 2), &[])
                .await
                .unwrap()
        );
        let mut commit = commit_of(&fixture, &leased);
        if let Some(end) = &mut commit.run {
            end.events = events(run_id, 1, 3);
            end.deliveries = vec![delivery(), delivery()];
        }
        let reported = format!("webhook_deliveries where run_id = '{run_id}'");
        let (store, _proxy) = cut_commit(&fixture, mark, &commit).await;
        // The server may not have noticed yet; a lock tells when it has.
        let lock = format!("begin; select from run_queue where run_id = '{run_id}' for update; commit");
        fixture.execute(&lock).await;
        let left = format!("run_queue where run_id = '{run_id}'");
        assert_eq!(fixture.count(&left).await, i64::from(!is_done), "{mark}");
        let found = fixture.run(run_id).await.unwrap();
        let status = if is_done {
            RunStatus::Completed
        } else {
            RunStatus::Running
        };
        assert_eq!(found.summary.status, status, "{mark}");
        let session = fixture
            .store
            .bundle_load(&fixture.tenant, commit.draft.session_id)
            .await
            .unwrap();
        assert_eq!(session.is_some(), is_done, "{mark}");
        let retained = fixture.store.event_last(&fixture.tenant, run_id).await.unwrap();
        assert_eq!(retained, if is_done { 3 } else { 0 }, "{mark}");
        assert_eq!(fixture.count(&reported).await, if is_done { 2 } else { 0 }, "{mark}");

        let committed = store.session_commit(&commit).await.unwrap();
        assert_eq!(fixture.load(commit.draft.session_id).await, committed.session);
        assert_eq!(fixture.count(&left).await, 0, "{mark}");
        assert_eq!(fixture.count(&reported).await, 2, "{mark}");
        store.close().await;
    }
    assert_eq!(fixture.count("sessions").await, 8);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_light_commit_that_is_cut_anywhere_sends_its_webhook_once_or_never() {
    let Some(fixture) = postgres().await else { return };
    for (mark, is_done) in [
        ("insert into webhook_deliveries", false),
        ("insert into history_segments", false),
        ("COMMIT", true),
    ] {
        let mut commit = fixture.commit(None, &["question"]);
        let run_id = commit.draft.run_id.unwrap();
        if let Some(end) = &mut commit.run {
            end.deliveries = vec![delivery(), delivery()];
        }
        let (store, _proxy) = cut_commit(&fixture, mark, &commit).await;
        // It waits for a transaction that the server has not given up yet.
        let lock = "begin; lock table webhook_deliveries, sessions; commit";
        fixture.execute(lock).await;
        let written = async || {
            let mut counts = Vec::new();
            for table in ["runs", "sessions", "webhook_deliveries"] {
                counts.push(fixture.count(&format!("{table} where run_id = '{run_id}'")).await);
            }
            counts
        };
        assert_eq!(written().await, if is_done { [1, 1, 2] } else { [0, 0, 0] }, "{mark}");
        let committed = store.session_commit(&commit).await.unwrap();
        assert_eq!(fixture.load(commit.draft.session_id).await, committed.session);
        assert_eq!(written().await, [1, 1, 2], "{mark}");
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_repeated_after_a_lost_response_returns_the_first_result() {
    let Some(fixture) = postgres().await else { return };
    let marked = |run: NewQueuedRun| NewQueuedRun {
        request: format!("{{\"input\":\"{MARK}\"}}"),
        lease: Some(terms(worker(), 0, 100)),
        ..run
    };
    for run in [
        marked(queued_run(&fixture.tenant)),
        marked(thread_run(&fixture.tenant, "t", store::queue::IfBusy::Reject)),
    ] {
        let (store, proxy) = cut_store(&fixture, MARK).await;
        let error = store.run_accept(&run).await.unwrap_err();
        assert!(error.is_transient() && proxy.cuts() == 1, "{error:?}");
        let lease = Lease {
            tenant: fixture.tenant.clone(),
            run_id: run.summary.run_id,
            fence: 1,
        };
        let expected = Acceptance::Accepted {
            lease: Some(lease),
            interrupted: None,
        };
        assert_eq!(store.run_accept(&run).await.unwrap(), expected);
        store.close().await;
    }
    assert_eq!(fixture.counts(["runs", "run_queue"]).await, [2, 2]);

    let mut run = queued_run(&fixture.tenant);
    run.summary.metadata = object(serde_json::json!({"mark": MARK}));
    fixture.enqueue(&run).await;
    let leased = fixture.lease_one().await;
    for (mark, recorded) in [(MARK, Recorded::Now), ("COMMIT", Recorded::Before)] {
        let leased = if recorded == Recorded::Now {
            leased.clone()
        } else {
            fixture.enqueue_new().await;
            fixture.lease_one().await
        };
        let (store, proxy) = cut_store(&fixture, mark).await;
        let mut end = failed_end(&leased);
        end.deliveries = vec![delivery(), delivery()];
        let reported = format!("webhook_deliveries where run_id = '{}'", leased.lease.run_id);
        let error = store.run_record(&fixture.tenant, &end).await.unwrap_err();
        assert!(error.is_transient() && proxy.cuts() == 1, "{error:?}");
        let lock = format!(
            "begin; select from run_queue where run_id = '{}' for update; commit",
            leased.lease.run_id
        );
        fixture.execute(&lock).await;
        let written = if recorded == Recorded::Before { 2 } else { 0 };
        assert_eq!(fixture.count(&reported).await, written, "{mark}");
        assert_eq!(
            store.run_record(&fixture.tenant, &end).await.unwrap(),
            recorded,
            "{mark}"
        );
        assert_eq!(fixture.count(&reported).await, 2, "{mark}");
        store.close().await;
    }
}
