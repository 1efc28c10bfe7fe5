//! The queue on PostgreSQL beside open transactions: which operations wait, and for which others.

use std::sync::Arc;
use std::time::Duration;

use agent::record::RunControl;
use futures_util::future::join_all;
use store::queue::{Acceptance, IfBusy, NewQueuedRun};
use store::runs::Recorded;
use test_support::drafts::{session_id, tenant};
use tokio::time::timeout;
use values::ids::RunId;
use values::usage::Usage;

use crate::fixtures::postgres;
use crate::postgres::held::{Held, RIVAL, until_waiting};
use crate::sql::queue::fixtures::{at, commit_of, events, failed_end, queued_run, thread_run, thread_session};

/// Far longer than anything here takes, even on a busy machine. What is stuck waits for a
/// transaction that stays open for longer.
const AT_ONCE: Duration = Duration::from_mins(1);

/// More requests than there are connections.
const MANY: usize = 12;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_and_the_end_of_a_run_never_wait_for_each_other() {
    let Some(fixture) = postgres().await else { return };
    fixture.enqueue(&thread_run(&fixture.tenant, "t", IfBusy::Queue)).await;
    let active = fixture.lease_one().await;
    let waiting = thread_run(&fixture.tenant, "t", IfBusy::Queue);
    fixture.enqueue(&waiting).await;
    let id = waiting.summary.run_id;
    fixture
        .store
        .run_control(&fixture.tenant, id, RunControl::Cancel)
        .await
        .unwrap();
    // An open transaction that leases several runs: it has locked the one that was cancelled.
    // Another is a fork, which begins from the session of the thread.
    let lock = format!("select 1 from run_queue where run_id = '{id}' for update");
    let mut lease = Held::begin(&fixture, &lock).await;
    let commit = commit_of(&fixture, &active);
    let (committed, ()) = tokio::join!(fixture.store.session_commit(&commit), async {
        until_waiting(&fixture, 1).await;
        lease.execute("select 1 from threads for share").await;
        lease.end("commit").await;
    });
    committed.unwrap();
    assert_eq!(thread_session(&fixture, "t").await, Some(active.summary.session_id));
    assert_eq!(fixture.lease_one().await.lease.run_id, id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_another_replica_makes_active_at_the_same_moment_is_found() {
    for (if_busy, is_refused) in [(IfBusy::Reject, true), (IfBusy::Queue, false)] {
        let Some(fixture) = postgres().await else { return };
        let held = Held::accepting(&fixture, "t", false).await;
        let run = thread_run(&fixture.tenant, "t", if_busy);
        let (answer, ()) = tokio::join!(fixture.store.run_accept(&run), async {
            until_waiting(&fixture, 1).await;
            held.end("commit").await;
        });
        let answer = answer.unwrap();
        if is_refused {
            assert_eq!(answer, Acceptance::ThreadBusy(RunId::from_uuid(RIVAL)));
        } else {
            assert!(matches!(answer, Acceptance::Accepted { .. }), "{answer:?}");
            assert_eq!(fixture.count("run_queue where is_held").await, 1);
        }
        assert_eq!(fixture.count("run_queue where not is_held").await, 1);
    }
}

/// The end of a run on another replica makes the next one active, and then moves the thread, which
/// a new run holds that waits for this one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_accepted_while_the_thread_moves_gives_way() {
    let Some(fixture) = postgres().await else { return };
    fixture.enqueue(&thread_run(&fixture.tenant, "t", IfBusy::Queue)).await;
    let first = fixture.lease_one().await;
    fixture
        .store
        .run_record(&fixture.tenant, &failed_end(&first))
        .await
        .unwrap();
    let mut ending = Held::accepting(&fixture, "t", false).await;
    // PostgreSQL ends the other transaction.
    ending.execute("set local deadlock_timeout = '1min'").await;
    let run = thread_run(&fixture.tenant, "t", IfBusy::Queue);
    let (answer, ()) = tokio::join!(fixture.store.run_accept(&run), async {
        until_waiting(&fixture, 1).await;
        ending.execute("update threads set version = version + 1").await;
        ending.end("commit").await;
    });
    let answer = answer.unwrap();
    assert!(matches!(answer, Acceptance::Accepted { .. }), "{answer:?}");
    assert_eq!(fixture.count("run_queue where is_held").await, 1);
    assert_eq!(fixture.count("run_queue where not is_held").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_run_sees_the_one_that_is_accepted_behind_it() {
    let Some(fixture) = postgres().await else { return };
    fixture.enqueue(&thread_run(&fixture.tenant, "t", IfBusy::Queue)).await;
    let active = fixture.lease_one().await;
    let held = Held::accepting(&fixture, "t", true).await;
    let end = failed_end(&active);
    let (recorded, ()) = tokio::join!(fixture.store.run_record(&fixture.tenant, &end), async {
        until_waiting(&fixture, 1).await;
        held.end("commit").await;
    });
    assert_eq!(recorded.unwrap(), Recorded::Now);
    assert_eq!(fixture.count("run_queue where not is_held").await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_accepted_behind_another_delays_neither_its_lease_nor_a_renewal() {
    let Some(fixture) = postgres().await else { return };
    fixture.enqueue(&thread_run(&fixture.tenant, "t", IfBusy::Queue)).await;
    let held = Held::accepting(&fixture, "t", true).await;
    let active = fixture.lease_one().await;
    let renewed = fixture.renew(&active.lease, at(100)).await;
    assert!(renewed[0].is_prolonged);
    held.end("rollback").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_run_skips_a_waiting_one_that_ends_as_well() {
    let Some(fixture) = postgres().await else { return };
    fixture.enqueue(&thread_run(&fixture.tenant, "t", IfBusy::Queue)).await;
    let active = fixture.lease_one().await;
    let [cancelled, next] = [(); 2].map(|()| thread_run(&fixture.tenant, "t", IfBusy::Queue));
    for run in [&cancelled, &next] {
        fixture.enqueue(run).await;
    }
    let delete = format!("delete from run_queue where run_id = '{}'", cancelled.summary.run_id);
    let ending = Held::begin(&fixture, &delete).await;
    let end = failed_end(&active);
    let (recorded, ()) = tokio::join!(fixture.store.run_record(&fixture.tenant, &end), async {
        until_waiting(&fixture, 1).await;
        ending.end("commit").await;
    });
    assert_eq!(recorded.unwrap(), Recorded::Now);
    assert_eq!(fixture.lease_one().await.lease.run_id, next.summary.run_id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn runs_that_are_accepted_one_by_one_leave_connections_to_others() {
    let Some(fixture) = postgres().await else { return };
    for thread in ["", "t"] {
        // Another replica accepts a run of the tenant, or on the thread.
        let held = if thread.is_empty() {
            let lock = format!("insert into limited_tenants (tenant) values ('{}')", fixture.tenant);
            Held::begin(&fixture, &lock).await
        } else {
            Held::accepting(&fixture, thread, false).await
        };
        let accepting = (0..MANY).map(|_| {
            let run = if thread.is_empty() {
                NewQueuedRun {
                    max_waiting: Some(1_000),
                    ..queued_run(&fixture.tenant)
                }
            } else {
                thread_run(&fixture.tenant, thread, IfBusy::Queue)
            };
            let store = Arc::clone(&fixture.store);
            tokio::spawn(async move { store.run_accept(&run).await.unwrap() })
        });
        let accepting: Vec<_> = accepting.collect();
        until_waiting(&fixture, 1).await;
        for _ in 0..MANY {
            let other = queued_run(&tenant("other"));
            let accepted = timeout(AT_ONCE, fixture.store.run_accept(&other)).await;
            accepted.expect("waits").unwrap();
        }
        until_waiting(&fixture, 1).await;
        held.end("rollback").await;
        for accepted in join_all(accepting).await {
            let accepted = accepted.unwrap();
            assert!(matches!(accepted, Acceptance::Accepted { .. }), "{accepted:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_that_waits_leaves_connections_to_others() {
    let Some(fixture) = postgres().await else { return };
    for number in 0..MANY {
        fixture.enqueue(&queued_run(&tenant(&format!("t{number}")))).await;
    }
    let mut leased = Vec::new();
    while leased.len() < MANY {
        leased.extend(fixture.lease(100).await);
    }
    let held = Held::begin(&fixture, "lock table run_queue in access exclusive mode").await;
    let persisting = leased.into_iter().enumerate().map(|(number, run)| {
        let store = Arc::clone(&fixture.store);
        tokio::spawn(async move {
            match number % 3 {
                0 => store.usage_update(&run.lease, &Usage::default()).await,
                1 => {
                    store
                        .progress_append(&run.lease, &[], &events(run.lease.run_id, 1, 1))
                        .await
                }
                _ => store.message_apply(&run.lease, &["m".to_owned()]).await,
            }
        })
    });
    let persisting: Vec<_> = persisting.collect();
    // Half of the four connections.
    until_waiting(&fixture, 2).await;
    for _ in 0..MANY {
        let looking = fixture.store.session_lookup(&fixture.tenant, session_id());
        assert_eq!(timeout(AT_ONCE, looking).await.expect("waits").unwrap(), None);
    }
    until_waiting(&fixture, 2).await;
    held.end("rollback").await;
    for persisted in join_all(persisting).await {
        assert!(persisted.unwrap().unwrap());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_waits_for_no_other_does_not_wait_for_the_end_of_the_active_one() {
    for if_busy in [IfBusy::Reject, IfBusy::Fork] {
        let Some(fixture) = postgres().await else { return };
        fixture.enqueue(&thread_run(&fixture.tenant, "t", IfBusy::Queue)).await;
        let active = fixture.lease_one().await.lease.run_id;
        let end = format!("delete from run_queue where run_id = '{active}'; update threads set version = 2");
        let ending = Held::begin(&fixture, &end).await;
        let run = thread_run(&fixture.tenant, "t", if_busy);
        let accepting = timeout(AT_ONCE, fixture.store.run_accept(&run)).await;
        let accepted = accepting.expect("waits").unwrap();
        if if_busy == IfBusy::Reject {
            assert_eq!(accepted, Acceptance::ThreadBusy(active));
        } else {
            assert!(matches!(accepted, Acceptance::Accepted { .. }), "{accepted:?}");
        }
        ending.end("rollback").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_the_active_run_does_not_wait_for_forks() {
    let Some(fixture) = postgres().await else { return };
    fixture.enqueue(&thread_run(&fixture.tenant, "t", IfBusy::Queue)).await;
    let active = fixture.lease_one().await;
    let lock = format!("insert into limited_tenants (tenant) values ('{}')", fixture.tenant);
    let held = Held::begin(&fixture, &lock).await;
    let fork = NewQueuedRun {
        max_waiting: Some(1_000),
        ..thread_run(&fixture.tenant, "t", IfBusy::Fork)
    };
    let store = Arc::clone(&fixture.store);
    let accepting = tokio::spawn(async move { store.run_accept(&fork).await.unwrap() });
    // It has read the thread, and waits for another replica.
    until_waiting(&fixture, 1).await;
    let commit = commit_of(&fixture, &active);
    let committing = timeout(AT_ONCE, fixture.store.session_commit(&commit)).await;
    committing.expect("waits").unwrap();
    held.end("rollback").await;
    assert!(matches!(accepting.await.unwrap(), Acceptance::Accepted { .. }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_loses_every_race_on_its_thread_is_unavailable() {
    let Some(fixture) = postgres().await else { return };
    let lose = "create function lose() returns trigger language plpgsql as $$
        begin
            raise unique_violation using constraint = 'run_queue_active';
        end $$;
        create trigger lose before insert on run_queue for each row execute function lose()";
    fixture.execute(lose).await;
    let run = thread_run(&fixture.tenant, "t", IfBusy::Reject);
    let lost = timeout(AT_ONCE, fixture.store.run_accept(&run)).await.expect("ends");
    let error = lost.unwrap_err();
    assert!(error.is_transient(), "{error:?}");
    assert_eq!(fixture.counts(["runs", "run_queue"]).await, [0, 0]);
}
