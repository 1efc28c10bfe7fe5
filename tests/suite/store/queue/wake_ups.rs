//! Wake-ups of workers: they come with whatever may have given somebody something to do, also from other processes and after an outage.

use std::time::Duration;

use agent_runtime::record::RunControl;
use agent_runtime::store::{IfBusy, open};
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::BoxStream;
use sqlx::postgres::PgListener;
use tokio::time::timeout;

use super::fixtures::{commit_of, failed_end, thread_run};
use crate::store::fixtures::Fixture;
use crate::support::databases::{Engine, TestDatabase};
use crate::support::proxy::{Proxy, split_url};
use crate::support::wait::until;

on_both_engines!(whatever_frees_or_controls_a_run_wakes_workers);

async fn is_woken(wake_ups: &mut BoxStream<'static, ()>, what: &str) {
    let woken = timeout(Duration::from_mins(1), wake_ups.next()).await;
    assert_eq!(woken.ok(), Some(Some(())), "{what}");
}

async fn whatever_frees_or_controls_a_run_wakes_workers(fixture: Fixture) {
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
    store.run_record(&fixture.tenant, &failed_end(&leased)).await.unwrap();

    fixture.enqueue(&thread_run(&fixture.tenant, "t", IfBusy::Reject)).await;
    all("a run on a thread is accepted").await;
    for _ in 0..2 {
        store
            .run_enqueue(&thread_run(&fixture.tenant, "t", IfBusy::Interrupt))
            .await
            .unwrap();
        all("a run is stopped for another").await;
    }
    let leased = fixture.lease_one().await;
    store.run_record(&fixture.tenant, &failed_end(&leased)).await.unwrap();
    all("a thread is free after a failure").await;
    let leased = fixture.lease_one().await;
    store.session_commit(&commit_of(&fixture, &leased)).await.unwrap();
    all("a thread is free after a commit").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_processes_are_woken_over_one_connection_that_comes_back() {
    let Some(fixture) = Fixture::new(Engine::Postgres).await else {
        return;
    };
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
    fixture.database.execute(cut).await.unwrap();
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
    let Some(fixture) = Fixture::new(Engine::Postgres).await else {
        return;
    };
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
    let Some(fixture) = Fixture::new(Engine::Postgres).await else {
        return;
    };
    let mut listener = PgListener::connect(fixture.database.url()).await.unwrap();
    listener.listen("agent_runtime_queue").await.unwrap();
    join_all((0..200).map(|_| fixture.enqueue_new())).await;
    // What is to be sent is sent before the store is closed.
    fixture.store.close().await;
    fixture
        .database
        .execute("select pg_notify('agent_runtime_queue', 'end')")
        .await
        .unwrap();
    let mut received = 0;
    while listener.recv().await.unwrap().payload() != "end" {
        received += 1;
    }
    assert!((1..100).contains(&received), "{received} for 200 runs");
}
