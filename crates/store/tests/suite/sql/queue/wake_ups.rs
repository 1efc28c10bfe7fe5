//! Wake-ups of workers: everything that may free work sends one, also from other processes and
//! after an outage.

use std::time::Duration;

use agent::record::RunControl;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::BoxStream;
use sqlx::postgres::PgListener;
use store::open;
use store::queue::{Acceptance, IfBusy};
use test_support::databases::{Engine, TestDatabase};
use test_support::proxy::{Proxy, split_url};
use test_support::wait::until;
use tokio::join;
use tokio::time::timeout;

use super::fixtures::{queued_run, thread_run};
use crate::fixtures::{Fixture, postgres};
use crate::postgres::held::{Held, until_waiting};

on_both_engines!(all_that_frees_or_controls_a_run_wakes_workers);

async fn is_woken(wake_ups: &mut BoxStream<'static, ()>, what: &str) {
    let woken = timeout(Duration::from_mins(1), wake_ups.next()).await;
    assert_eq!(woken.ok(), Some(Some(())), "{what}");
}

async fn all_that_frees_or_controls_a_run_wakes_workers(fixture: Fixture) {
    let store = &fixture.store;
    let mut streams = [store.queue_wake_ups(), store.queue_wake_ups()];
    if fixture.database.engine == Engine::Postgres {
        for wake_ups in &mut streams {
            is_woken(wake_ups, "the connection is there").await;
        }
    }
    let mut all = async |what: &str| {
        for wake_ups in &mut streams {
            is_woken(wake_ups, what).await;
        }
    };
    let run = fixture.enqueue_new().await.summary.run_id;
    all("a run is accepted").await;
    let leased = fixture.lease_one().await;
    assert!(store.lease_release(&leased.lease).await.unwrap());
    all("a run is given back").await;
    assert!(store.run_control(&fixture.tenant, run, RunControl::Stop).await.unwrap());
    all("a run is controlled").await;
    let leased = fixture.lease_one().await;
    fixture.fail(&leased).await;

    fixture.enqueue(&thread_run(&fixture.tenant, "t", IfBusy::Reject)).await;
    all("a run on a thread is accepted").await;
    for _ in 0..2 {
        store
            .run_accept(&thread_run(&fixture.tenant, "t", IfBusy::Interrupt))
            .await
            .unwrap();
        all("a run is stopped for another").await;
    }
    let leased = fixture.lease_one().await;
    fixture.fail(&leased).await;
    all("a thread is free after a failure").await;
    let leased = fixture.lease_one().await;
    fixture.complete(&leased).await;
    all("a thread is free after a commit").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_processes_are_woken_over_one_connection_that_comes_back() {
    let Some(fixture) = postgres().await else { return };
    let other = open(fixture.database.url(), TestDatabase::settings()).await.unwrap();
    let mut streams = [other.queue_wake_ups(), other.queue_wake_ups(), other.queue_wake_ups()];
    for wake_ups in &mut streams {
        is_woken(wake_ups, "the connection is there").await;
    }
    let listening = "select count(*) from pg_stat_activity
        where datname = current_database() and query like 'LISTEN%'";
    assert_eq!(fixture.database.number(listening).await, 1);
    fixture.enqueue_new().await;
    for wake_ups in &mut streams {
        is_woken(wake_ups, "another process has accepted a run").await;
    }
    let cut = "select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and query like 'LISTEN%'";
    fixture.execute(cut).await;
    for wake_ups in &mut streams {
        is_woken(wake_ups, "the connection is back: something may have been missed").await;
    }
    fixture.enqueue_new().await;
    for wake_ups in &mut streams {
        is_woken(wake_ups, "wake-ups come again").await;
    }
    other.close().await;
    until("the listener is gone", async || {
        fixture.database.number(listening).await == 0
    })
    .await;
    fixture.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wake_ups_come_again_after_their_connection_has_gone_silent() {
    let Some(fixture) = postgres().await else { return };
    let proxy = Proxy::start(split_url(fixture.database.url()).0, "no answer is lost").await;
    let url = proxy.url(fixture.database.url());
    let other = open(&url, TestDatabase::settings()).await.unwrap();
    let mut wake_ups = other.queue_wake_ups();
    is_woken(&mut wake_ups, "the connection is there").await;
    proxy.silence();
    fixture.enqueue_new().await;
    is_woken(&mut wake_ups, "there is another connection: something was missed").await;
    fixture.enqueue_new().await;
    is_woken(&mut wake_ups, "wake-ups come again").await;
    fixture.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_wake_up_stands_for_all_that_came_meanwhile() {
    let Some(fixture) = postgres().await else { return };
    let mut notifications = listen(&fixture).await;
    join_all((0..200).map(|_| fixture.enqueue_new())).await;
    // What is to be sent is sent before the store is closed.
    fixture.store.close().await;
    let notified = count_up_to_now(&fixture, &mut notifications).await;
    assert!((1..100).contains(&notified), "{notified} for 200 runs");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_in_flight_when_a_store_is_closed_wakes_workers() {
    let Some(fixture) = postgres().await else { return };
    let mut notifications = listen(&fixture).await;
    let run = thread_run(&fixture.tenant, "t", IfBusy::Reject);
    let queue = Held::begin(&fixture, "lock table run_queue in share mode").await;
    let accepting = fixture.enqueue(&run);
    let closing = async {
        until_waiting(&fixture, 1).await;
        let closing = fixture.store.close();
        tokio::pin!(closing);
        let early = timeout(Duration::from_millis(100), &mut closing).await;
        assert!(early.is_err(), "the store waits for what is under way");
        queue.end("commit").await;
        closing.await;
    };
    join!(accepting, closing);
    assert_eq!(count_up_to_now(&fixture, &mut notifications).await, 1);
}

/// Puts a function before the server's own that counts its calls, and fails.
const BREAK: &str = "create schema broken;
    create sequence broken.calls;
    create function broken.pg_notify(text, text) returns void language plpgsql as $$
        begin
            perform nextval('broken.calls');
            raise 'not now';
        end $$;
    do $$ begin
        execute format('alter database %I set search_path = broken, pg_catalog, public', current_database());
    end $$";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wake_up_that_could_not_be_sent_is_sent_later() {
    let Some(fixture) = postgres().await else { return };
    let mut notifications = listen(&fixture).await;
    fixture.execute(BREAK).await;
    let other = open(fixture.database.url(), TestDatabase::settings()).await.unwrap();
    let accepted = other.run_accept(&queued_run(&fixture.tenant)).await.unwrap();
    assert!(matches!(accepted, Acceptance::Accepted { .. }));
    until("a wake-up has failed", async || {
        fixture
            .database
            .number("select count(*) from broken.calls where is_called")
            .await
            > 0
    })
    .await;
    fixture.execute("drop function broken.pg_notify(text, text)").await;
    let sent = timeout(Duration::from_mins(1), notifications.recv()).await;
    assert_eq!(sent.unwrap().unwrap().payload(), "");
    other.close().await;
    fixture.store.close().await;
}

async fn listen(fixture: &Fixture) -> PgListener {
    let mut listener = PgListener::connect(fixture.database.url()).await.unwrap();
    listener.listen("agent_runtime_queue").await.unwrap();
    listener
}

/// Counts the notifications that have been sent by now.
async fn count_up_to_now(fixture: &Fixture, notifications: &mut PgListener) -> u32 {
    let end = "select pg_notify('agent_runtime_queue', 'end')";
    fixture.execute(end).await;
    let mut count = 0;
    while notifications.recv().await.unwrap().payload() != "end" {
        count += 1;
    }
    count
}
