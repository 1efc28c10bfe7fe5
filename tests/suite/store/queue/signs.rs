//! Signs to workers: they come with whatever may have given somebody something to do, also from other processes and after an outage.

use std::time::Duration;

use agent_runtime::record::RunControl;
use agent_runtime::store::{IfBusy, open};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use tokio::time::timeout;

use super::fixtures::{commit_of, failed_end, thread_run};
use crate::store::fixtures::Fixture;
use crate::support::databases::{Engine, TestDatabase};
use crate::support::proxy::{Proxy, split_url};
use crate::support::wait::until;

on_both_engines!(whatever_frees_or_controls_a_run_gives_a_sign);

async fn sign(signs: &mut BoxStream<'static, ()>, what: &str) {
    let given = timeout(Duration::from_mins(1), signs.next()).await;
    assert_eq!(given.ok(), Some(Some(())), "{what}");
}

async fn whatever_frees_or_controls_a_run_gives_a_sign(fixture: Fixture) {
    let store = &fixture.store;
    let mut streams = [store.queue_signs(), store.queue_signs()];
    if fixture.database.engine == Engine::Postgres {
        for signs in &mut streams {
            sign(signs, "the connection is there").await;
        }
    }
    let mut all = async |what: &str| {
        for signs in &mut streams {
            sign(signs, what).await;
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
async fn other_processes_hear_signs_on_one_connection_that_comes_back() {
    let Some(fixture) = Fixture::new(Engine::Postgres).await else {
        return;
    };
    let other = open(fixture.database.url(), TestDatabase::settings()).await.unwrap();
    let mut streams = [other.queue_signs(), other.queue_signs(), other.queue_signs()];
    for signs in &mut streams {
        sign(signs, "the connection is there").await;
    }
    let listening = "select count(*) from pg_stat_activity
        where datname = current_database() and query like 'LISTEN%'";
    assert_eq!(fixture.database.number(listening).await, 1);
    fixture.enqueue_new().await;
    for signs in &mut streams {
        sign(signs, "another process has accepted a run").await;
    }
    let cut = "select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and query like 'LISTEN%'";
    fixture.database.execute(cut).await.unwrap();
    for signs in &mut streams {
        sign(signs, "the connection is back: something may have been missed").await;
    }
    fixture.enqueue_new().await;
    for signs in &mut streams {
        sign(signs, "signs come again").await;
    }
    other.close().await;
    until("the listener is gone", async || {
        fixture.database.number(listening).await == 0
    })
    .await;
    fixture.store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signs_come_again_after_their_connection_has_gone_silent() {
    let Some(fixture) = Fixture::new(Engine::Postgres).await else {
        return;
    };
    let proxy = Proxy::start(split_url(fixture.database.url()).0, "no answer is lost").await;
    let url = proxy.url(fixture.database.url());
    let other = open(&url, TestDatabase::settings()).await.unwrap();
    let mut signs = other.queue_signs();
    sign(&mut signs, "the connection is there").await;
    proxy.silence();
    fixture.enqueue_new().await;
    sign(&mut signs, "there is another connection: something was missed").await;
    fixture.enqueue_new().await;
    sign(&mut signs, "signs come again").await;
    fixture.store.close().await;
}
