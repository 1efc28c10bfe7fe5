//! Removals on PostgreSQL beside open transactions of runs on threads and of other removals.

use std::cell::Cell;

use store::queue::{Acceptance, IfBusy, NewQueuedRun};
use store::retention::{SessionRemoval, SweepCursor};
use store::threads::ThreadPut;
use test_support::drafts::{now, tenant};
use test_support::wait::until;
use values::session::Bundle;

use super::beside_commits::remove;
use super::older_than;
use crate::fixtures::{Fixture, postgres};
use crate::postgres::held::{Held, is_waiting, until_waiting};
use crate::sql::queue::fixtures::{terms, thread_name, thread_run, worker};

async fn point(fixture: &Fixture, to: &Bundle) -> ThreadPut {
    let (name, id) = (thread_name("t"), to.head.session_id);
    fixture.move_thread(&name, id).await
}

/// Moves the thread, unless the run is active there already, and removes its old session. Meanwhile
/// the lock holds up `work`, until the removal is done or waits as well.
async fn move_and_remove<T>(
    fixture: &Fixture,
    [from, to]: [&Bundle; 2],
    held: Held,
    work: impl Future<Output = T>,
) -> (T, SessionRemoval) {
    let is_removed = Cell::new(false);
    let (done, removal, ()) = tokio::join!(
        work,
        async {
            until_waiting(fixture, 1).await;
            point(fixture, to).await;
            let removal = remove(fixture, from).await;
            is_removed.set(true);
            removal
        },
        async {
            until("the thread neither moves nor waits", async || {
                is_removed.get() || is_waiting(fixture, 2).await
            })
            .await;
            held.end("rollback").await;
        }
    );
    (done, removal)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leased_run_retains_the_session_of_its_thread() {
    let Some(fixture) = postgres().await else { return };
    let [from, to] = [fixture.root(&["from"]).await, fixture.root(&["to"]).await];
    assert!(matches!(point(&fixture, &from).await, ThreadPut::Moved(_)));
    let run = thread_run(&fixture.tenant, "t", IfBusy::Reject);
    fixture.enqueue(&run).await;
    let id = run.summary.run_id;
    let lock = format!("select 1 from runs where run_id = '{id}' for update");
    let held = Held::begin(&fixture, &lock).await;
    let (leased, removal) = move_and_remove(&fixture, [&from, &to], held, fixture.lease_one()).await;
    assert_eq!(leased.summary.base_session_id, Some(from.head.session_id));
    assert_eq!(removal, SessionRemoval::InUse);
    fixture.assert_whole(&from, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_accepted_with_a_lease_retains_the_session_of_its_thread() {
    for if_busy in [IfBusy::Reject, IfBusy::Fork] {
        let Some(fixture) = postgres().await else { return };
        if if_busy == IfBusy::Fork {
            // Behind this run, the fork locks neither its row nor that of the thread.
            fixture.enqueue(&thread_run(&fixture.tenant, "t", if_busy)).await;
        }
        let [from, to] = [fixture.root(&["from"]).await, fixture.root(&["to"]).await];
        assert!(matches!(point(&fixture, &from).await, ThreadPut::Moved(_)));
        let mut run = NewQueuedRun {
            lease: Some(terms(worker(), 0, 10)),
            ..thread_run(&fixture.tenant, "t", if_busy)
        };
        run.summary.base_session_id = Some(from.head.session_id);
        let held = Held::begin(&fixture, "lock table run_queue in share mode").await;
        let accepting = fixture.store.run_accept(&run);
        let (accepted, removal) = move_and_remove(&fixture, [&from, &to], held, accepting).await;
        let accepted = accepted.unwrap();
        assert!(
            matches!(accepted, Acceptance::Accepted { lease: Some(_), .. }),
            "{if_busy:?}: {accepted:?}"
        );
        assert_eq!(removal, SessionRemoval::InUse, "{if_busy:?}");
        fixture.assert_whole(&from, 1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn removals_take_turns() {
    let Some(fixture) = postgres().await else { return };
    let root = fixture.root(&["root"]).await;
    let held = Held::begin(&fixture, "lock table unused_states in share mode").await;
    let position = SweepCursor::Remains(1);
    let (removal, step, removed, ()) = tokio::join!(
        remove(&fixture, &root),
        async {
            until_waiting(&fixture, 1).await;
            fixture.store.retention_step(older_than(3), now(), &position, 10).await
        },
        async {
            until_waiting(&fixture, 2).await;
            fixture.store.tenant_remove(&tenant("other"), 10, None).await
        },
        async {
            until_waiting(&fixture, 3).await;
            held.end("rollback").await;
        }
    );
    assert!(matches!(removal, SessionRemoval::Removed(_)), "{removal:?}");
    assert_eq!(step.unwrap().1, Some(SweepCursor::Remains(2)));
    assert_eq!(removed.unwrap(), 0);
}
