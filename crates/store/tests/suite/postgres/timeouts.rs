//! Responses of PostgreSQL that never come: what waits for one times out, and the store works
//! afterwards.

use std::error::Error;
use std::fmt::Write as _;
use std::time::Duration;

use futures_util::future::join_all;
use sqlx::{Connection as _, PgConnection};
use store::outbox::DueFilter;
use store::queue::IfBusy;
use store::runs::RunFilter;
use store::{Page, open};
use test_support::databases::TestDatabase;
use test_support::drafts::run_id;
use test_support::proxy::{Proxy, split_url};
use test_support::wait::until;
use tokio::time::timeout;

use crate::fixtures::{Fixture, postgres};
use crate::sql::commit::subagents::subagent;
use crate::sql::queue::fixtures::{all, at, queued_run, terms, thread_run, worker};

/// One operation of each kind: rows one after another, one row, a statement that returns what it
/// has written, one with a connection of its own, a transaction, and the commits of both kinds.
const OPERATIONS: [&str; 9] = [
    "list runs",
    "look up a run",
    "look up a key",
    "lease runs",
    "lease deliveries",
    "enqueue a run",
    "enqueue a run on a thread",
    "commit",
    "commit with a subagent",
];

const AT_WORK: &str = "select count(*) from pg_stat_activity
    where datname = current_database() and backend_type = 'client backend' and state <> 'idle' and pid <> pg_backend_pid()";

/// Performs it; returns the error with its causes.
async fn perform(fixture: &Fixture, operation: &str) -> Result<(), String> {
    let (store, tenant) = (&fixture.store, &fixture.tenant);
    let terms = terms(worker(), 0, 100);
    match operation {
        "list runs" => {
            let page = Page { before: None, limit: 1 };
            done(store.run_list(tenant, &RunFilter::default(), page).await)
        }
        "look up a run" => done(store.run_lookup(tenant, run_id()).await),
        "look up a key" => done(store.idempotency_lookup(tenant, "key", at(0)).await),
        "lease runs" => done(store.run_lease(&terms, all(1)).await),
        "lease deliveries" => {
            let filter = DueFilter {
                limit: 1,
                except_receivers: &[],
                except_tenants: &[],
            };
            done(store.delivery_lease(&terms, filter).await)
        }
        "enqueue a run" => done(store.run_accept(&queued_run(tenant)).await),
        "enqueue a run on a thread" => done(store.run_accept(&thread_run(tenant, "main", IfBusy::Queue)).await),
        "commit" => done(store.session_commit(&fixture.commit(None, &["alone"])).await),
        _ => {
            let mut commit = fixture.commit(None, &["above"]);
            let child = subagent(&commit, commit.draft.session_id, None, &["below"]);
            commit.children.push(child);
            done(store.session_commit(&commit).await)
        }
    }
}

fn done<T, E: Error + 'static>(result: Result<T, E>) -> Result<(), String> {
    let Err(error) = result else { return Ok(()) };
    let (mut text, mut source) = (error.to_string(), error.source());
    while let Some(cause) = source {
        write!(text, ": {cause}").unwrap();
        source = cause.source();
    }
    Err(text)
}

#[tokio::test]
async fn operations_without_a_response_time_out_and_work_afterwards() {
    let Some(fixture) = postgres().await else { return };
    let mut rival = PgConnection::connect(fixture.database.url()).await.unwrap();
    for operation in OPERATIONS {
        // A statement that was given up goes on in the server, and would meet the locks halfway.
        until("nothing is at work in the server", async || {
            fixture.database.number(AT_WORK).await == 0
        })
        .await;
        let mut locking = rival.begin().await.unwrap();
        let lock = "lock table runs, sessions, run_queue, threads, idempotency_keys, webhook_deliveries";
        sqlx::raw_sql(lock).execute(&mut *locking).await.unwrap();
        let pausing = async {
            until("it does not wait for the server", async || {
                fixture.database.waiting_clients().await > 0
            })
            .await;
            // From here on nothing passes but time.
            tokio::time::pause();
        };
        let (performed, ()) = tokio::join!(perform(&fixture, operation), pausing);
        tokio::time::resume();
        let error = performed.unwrap_err();
        assert!(
            error.contains("the store is unavailable") && error.ends_with("database: timed out: timed out"),
            "{operation}: {error}"
        );
        locking.rollback().await.unwrap();
        assert_eq!(perform(&fixture, operation).await, Ok(()), "{operation}");
    }
    fixture.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_do_not_wait_for_a_batch_whose_connection_is_forgotten_until_a_statement_times_out() {
    let Some(fixture) = postgres().await else { return };
    let proxy = Proxy::start(split_url(fixture.database.url()).0, "no response is lost").await;
    let url = proxy.url(fixture.database.url());
    let store = open(&url, TestDatabase::settings()).await.unwrap();
    store.session_commit(&fixture.commit(None, &["before"])).await.unwrap();
    // The connection was used a moment ago, so nobody tests it.
    proxy.silence();
    let commits: Vec<_> = (0..3).map(|_| fixture.commit(None, &["after"])).collect();
    let writing = join_all(commits.iter().map(|commit| store.session_commit(commit)));
    let written = timeout(Duration::from_secs(20), writing).await.expect("they waited");
    for (commit, written) in commits.iter().zip(written) {
        assert_eq!(written.unwrap().session.head.session_id, commit.draft.session_id);
    }
    assert_eq!(fixture.count("sessions").await, 4);
    store.close().await;
}
