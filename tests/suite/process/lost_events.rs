//! Events that are lost with the process and the Redis that held them: a follower still reads how
//! the run continues and ends.

use reqwest::Method;
use serde_json::json;
use test_support::wait::until;

use super::service::Service;
use super::workers::{Pair, pair};
use crate::support::gated::{assert_without_gap, numbers};
use crate::support::members::assert_members;
use crate::support::test_app::run_path;
use crate::support::text::assert_contains;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_lost_all_events_begins_with_its_start() {
    let Some(pair) = pair("api", "worker").await else {
        return;
    };
    let Pair {
        here,
        there,
        gate,
        redis,
        home,
        database,
        ..
    } = pair;
    let run = here.begin("echo", "wait").await;
    gate.until_waiting(1).await;
    let mut follower = here.follow(&run, 0).await;
    let mut followed = vec![follower.until("run.started").await];
    there.kill();
    gate.until_waiting(0).await;
    redis.command(&["FLUSHALL"]);
    let lost = "delete from run_events; update run_queue set leased_until = now() - interval '1 minute'";
    database.execute(lost).await.unwrap();
    let heir = Service::start_with(&home, &["--role", "worker"]).await;
    gate.until_waiting(1).await;
    gate.open(1);
    let ended = here.ended(&run).await;
    assert_members!(ended, {"status": "completed", "attempts": 2});

    let all = here.follow(&run, 0).await.rest().await;
    assert_without_gap(&all);
    assert_eq!(all[0]["type"], "run.started");
    assert_eq!(all[1]["type"], "run.resumed");
    // Before the end there may have been another event than that of the session.
    let last = all.len() as u64;
    assert_eq!(here.follow(&run, last - 1).await.rest().await, all[all.len() - 2..]);
    // A follower that has read lost events reads the end. If numbers repeat, they repeat without a
    // gap.
    followed.extend(follower.rest().await);
    for pair in numbers(&followed).windows(2) {
        assert!(pair[1] <= pair[0] + 1, "a gap: {pair:?}");
    }
    assert_eq!(followed.last(), all.last());
    heir.stop().await;
    here.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_at_another_replica_reads_the_end_although_events_are_lost() {
    let Some(pair) = pair("all", "all").await else { return };
    let Pair {
        here,
        there,
        gate,
        redis,
        ..
    } = pair;
    let mut caller = here.stream(json!({"input": "wait"})).await;
    let run = caller.until("run.started").await["data"].clone();
    gate.until_waiting(1).await;
    let mut follower = there.follow(&run, 0).await;
    follower.until("run.started").await;
    redis.command(&["FLUSHALL"]);
    gate.open(1);
    let received = caller.rest().await;
    let rest = follower.rest().await;
    assert_eq!(rest.last(), received.last());
    // Nothing but the record and the session is left of it, once the process of the run has noticed
    // the first loss and written its events again.
    until("the events are lost", async || {
        redis.command(&["FLUSHALL"]);
        there.follow(&run, 0).await.rest().await == received[received.len() - 2..]
    })
    .await;

    // The same for a run whose end no process knows.
    let mut caller = here.stream(json!({"input": "wait"})).await;
    let run = caller.until("run.started").await["data"].clone();
    gate.until_waiting(1).await;
    let mut follower = there.follow(&run, 0).await;
    follower.until("run.started").await;
    here.kill();
    redis.command(&["FLUSHALL"]);
    let last = follower.rest().await.pop().unwrap();
    assert_eq!(last["type"], "stream.dropped");
    assert_contains!(last["data"]["reason"].as_str().unwrap(), "gone, or can't be reached");
    there
        .refused(Method::GET, &run_path(&run, ""), None, "run_not_found")
        .await;
    there.stop().await;
}
