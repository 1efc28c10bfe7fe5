//! The cost of a sweep: it depends on what it checks, not on the length of the queue or the number
//! of runs.

use store::retention::RemovalFigures;
use test_support::drafts::now;

use super::rules::queue;
use super::{KEEP_ALL, aged, older_than, try_sweep};
use crate::fixtures::postgres;
use crate::postgres::plans::{MANY_ENDED, rows_read};

/// Puts copies of the only run in the queue beside it, each from a base of its own.
const MANY: &str = "with added as (
        insert into runs
        select copy.* from generate_series(1, 10000) number, runs one,
            lateral jsonb_populate_record(one, jsonb_build_object(
                'run_id', md5('run' || number), 'session_id', md5('session' || number),
                'base_session_id', md5('base' || number))) copy
        where one.completed_at is null
        returning run_id)
    insert into run_queue
    select copy.* from added, run_queue one,
        lateral jsonb_populate_record(one, jsonb_build_object('run_id', added.run_id)) copy";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_does_not_read_the_queue() {
    let Some(fixture) = postgres().await else { return };
    for text in 0..30 {
        let old = aged(fixture.commit(None, &[&text.to_string()]), now(), 50);
        fixture.publish(&old).await;
    }
    let base = fixture.publish(&aged(fixture.commit(None, &["base"]), now(), 50)).await;
    queue(&fixture, Some(base.head.session_id)).await;
    fixture.execute(MANY).await;
    assert_eq!(fixture.count("run_queue").await, 10_001);

    let read = rows_read(&fixture, "'runs', 'run_queue'", async |store| {
        let swept = try_sweep(store, older_than(2), now(), 5).await.unwrap();
        assert_eq!(swept.sessions, 30);
    })
    .await;
    assert!(read < 1_000, "{read} rows of runs and the queue were read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sweep_of_open_calls_reads_runs_that_wait() {
    let Some(fixture) = postgres().await else { return };
    fixture.root(&["root"]).await;
    fixture.execute(MANY_ENDED).await;
    let read = rows_read(&fixture, "'runs'", async |store| {
        let swept = try_sweep(store, KEEP_ALL, now(), 100).await.unwrap();
        assert_eq!(swept, RemovalFigures::default());
    })
    .await;
    let left = "runs where status = 'waiting' and person_until is not null";
    assert_eq!(fixture.count(left).await, 40);
    assert!(read < 2_000, "{read} rows of runs were read");
}
