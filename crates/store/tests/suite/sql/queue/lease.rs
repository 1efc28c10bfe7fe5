//! Leases: taken, renewed, lost and released.

use std::collections::BTreeSet;
use std::time::Duration;

use agent::record::{RunControl, RunStatus};
use futures_util::future::join_all;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use store::audit::AuditChain;
use store::open;
use store::queue::{Lease, LeaseLimits, LeasedRun, RenewedLease};
use test_support::databases::TestDatabase;
use test_support::drafts::{requester_at, run_id, session_id, tenant};
use test_support::wait::until;
use tokio::time::timeout;

use super::fixtures::{all, at, failed_end, ids, queued_run, steering, terms, worker};
use crate::fixtures::{Fixture, postgres};

on_both_engines!(
    no_run_begins_before_it_was_accepted,
    a_leased_run_has_the_status_running,
    a_lease_is_taken_over_when_it_has_expired_and_no_sooner,
    renewed_leases_last_and_lost_ones_are_missing,
    any_number_of_leases_is_renewed,
    a_released_run_waits_again,
    expired_leases_go_before_what_waits,
    no_more_suspects_are_leased_than_wanted,
    nobody_leases_a_run_twice,
    workers_from_before_a_restore_have_lost_their_runs,
    the_time_comes_from_the_database,
);

async fn a_leased_run_has_the_status_running(fixture: Fixture) {
    let run = fixture.enqueue_new().await;
    let leased = fixture.lease_one().await;
    assert_eq!(leased.request.read().as_ref(), Ok(&run.request));
    assert_eq!(
        (leased.control, leased.moves_thread, leased.is_taken_over),
        (None, false, false)
    );
    assert_eq!(
        (leased.summary.status, leased.summary.attempts),
        (RunStatus::Running, 1)
    );
    assert_eq!(leased.summary.started_at, Some(at(0)));
    let stored = fixture.run(run.summary.run_id).await;
    assert_eq!(stored.unwrap().summary, leased.summary);
}

async fn no_run_begins_before_it_was_accepted(fixture: Fixture) {
    let mut late = queued_run(&fixture.tenant);
    late.summary.created_at = at(50);
    fixture.enqueue(&late).await;
    let leased = fixture.lease_one().await;
    assert_eq!(leased.summary.started_at, Some(at(50)));
    late.lease = Some(terms(worker(), 0, 30));
    (late.summary.run_id, late.summary.session_id) = (run_id(), session_id());
    fixture.enqueue(&late).await;
    let found = fixture.run(late.summary.run_id).await;
    assert_eq!(found.unwrap().summary.started_at, Some(at(50)));
}

async fn a_lease_is_taken_over_when_it_has_expired_and_no_sooner(fixture: Fixture) {
    fixture.enqueue_new().await;
    let first = fixture.lease_one().await;
    assert_eq!(fixture.lease_at(100, 10).await, [], "it lasts to its last instant");
    let taken = fixture.lease_at(101, 10).await.remove(0);
    assert!(taken.lease.fence > first.lease.fence && taken.is_taken_over);
    assert_eq!((taken.summary.attempts, taken.summary.started_at), (2, Some(at(0))));
    assert_eq!(fixture.renew(&first.lease, at(500)).await, []);
    assert!(!fixture.store.lease_release(&first.lease).await.unwrap());
}

async fn workers_from_before_a_restore_have_lost_their_runs(fixture: Fixture) {
    fixture.enqueue_new().await;
    let leased = fixture.lease_one().await;
    let waiting = fixture.enqueue_new().await;
    let by = requester_at(at(1));
    let figures = fixture.store.restore_finish(&by).await.unwrap();
    assert_eq!((figures.runs, figures.deliveries, figures.console_sessions), (2, 0, 0));
    // A worker may have leased them several times after the backup.
    for fence in [leased.lease.fence, leased.lease.fence + 1_000] {
        let old = Lease {
            fence,
            ..leased.lease.clone()
        };
        assert_eq!(fixture.renew(&old, at(500)).await, []);
        assert!(!fixture.store.lease_release(&old).await.unwrap());
    }
    let taken = fixture.lease_at(2, 10).await;
    let found: BTreeSet<_> = ids(&taken).into_iter().collect();
    let expected = [leased.lease.run_id, waiting.summary.run_id];
    assert_eq!(found, expected.into_iter().collect());
    assert!(taken.iter().all(|run| run.lease.fence > leased.lease.fence + 1_000));
    let entries = fixture.store.audit_read(&AuditChain::Service, 1, 10).await.unwrap();
    assert_eq!(entries.len(), 1);
}

async fn renewed_leases_last_and_lost_ones_are_missing(fixture: Fixture) {
    let store = &fixture.store;
    for name in ["acme", "other", "acme", "acme", "other"] {
        fixture.enqueue(&queued_run(&tenant(name))).await;
    }
    let leased = fixture.lease(5).await;
    let leases: Vec<Lease> = leased.iter().map(|run| run.lease.clone()).collect();
    let lost = Lease {
        fence: leases[1].fence + 1,
        ..leases[1].clone()
    };
    let message = steering("a");
    store
        .message_insert(&leases[3].tenant, leases[3].run_id, &message)
        .await
        .unwrap();
    let asked = [leases[0].clone(), lost, leases[3].clone()];
    let mut renewed = store.lease_renew(&asked, at(200)).await.unwrap();
    renewed.sort_by_key(|renewed| renewed.has_messages);
    let expected = |lease: &Lease, has_messages| RenewedLease {
        lease: lease.clone(),
        control: None,
        has_messages,
        is_prolonged: true,
    };
    assert_eq!(renewed, [expected(&leases[0], false), expected(&leases[3], true)]);
    assert_eq!(store.lease_renew(&[], at(200)).await.unwrap(), []);
    let expired: BTreeSet<_> = ids(&fixture.lease_at(101, 10).await).into_iter().collect();
    assert_eq!(expired, [1, 2, 4].map(|index| leases[index].run_id).into());
    // One that nobody has taken over can be renewed after its time.
    assert_eq!(store.lease_renew(&leases[..1], at(400)).await.unwrap().len(), 1);
    assert_eq!(fixture.lease_at(202, 10).await.len(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_locked_run_does_not_stop_the_renewal_of_others() {
    let Some(fixture) = postgres().await else { return };
    for _ in 0..3 {
        fixture.enqueue_new().await;
    }
    let leased = fixture.lease(3).await;
    let [held, free, ended] = [&leased[0], &leased[1], &leased[2]];
    let store = &fixture.store;
    store
        .run_control(&fixture.tenant, held.lease.run_id, RunControl::Stop)
        .await
        .unwrap();
    store
        .message_insert(&fixture.tenant, held.lease.run_id, &steering("a"))
        .await
        .unwrap();
    store.run_record(&fixture.tenant, &failed_end(ended)).await.unwrap();
    let mut holder = PgConnection::connect(fixture.database.url()).await.unwrap();
    let hold = format!(
        "begin; update run_queue set control = null where run_id = '{}'",
        held.lease.run_id
    );
    sqlx::raw_sql(AssertSqlSafe(hold)).execute(&mut holder).await.unwrap();

    let asked: Vec<Lease> = leased.iter().map(|run| run.lease.clone()).collect();
    let renewing = timeout(Duration::from_mins(1), store.lease_renew(&asked, at(200)));
    let mut renewed = renewing.await.unwrap().unwrap();
    renewed.sort_by_key(|renewed| renewed.is_prolonged);
    let expected = [
        RenewedLease {
            lease: held.lease.clone(),
            control: Some(RunControl::Stop),
            has_messages: true,
            is_prolonged: false,
        },
        RenewedLease {
            lease: free.lease.clone(),
            control: None,
            has_messages: false,
            is_prolonged: true,
        },
    ];
    assert_eq!(renewed, expected);
    holder.close().await.unwrap();
    let lasts = async |run: &LeasedRun| {
        let count = format!(
            "run_queue where run_id = '{}' and leased_until = '{}'",
            run.lease.run_id,
            at(200)
        );
        fixture.count(&count).await == 1
    };
    assert_eq!((lasts(held).await, lasts(free).await), (false, true));
    // It is renewed as soon as nobody holds it.
    until("the other has let go", async || {
        store
            .lease_renew(&asked, at(200))
            .await
            .unwrap()
            .iter()
            .all(|renewed| renewed.is_prolonged)
    })
    .await;
    assert_eq!((lasts(held).await, lasts(free).await), (true, true));
}

async fn any_number_of_leases_is_renewed(fixture: Fixture) {
    fixture.enqueue_new().await;
    fixture.enqueue_new().await;
    let held: Vec<Lease> = fixture.lease(2).await.into_iter().map(|run| run.lease).collect();
    // More than a statement of either engine takes.
    let gone = std::iter::repeat_with(|| Lease {
        run_id: run_id(),
        ..held[0].clone()
    });
    let asked: Vec<Lease> = std::iter::once(held[0].clone())
        .chain(gone.take(17_000))
        .chain(std::iter::once(held[1].clone()))
        .collect();
    let renewed = fixture.store.lease_renew(&asked, at(200)).await.unwrap();
    assert_eq!(
        renewed.into_iter().map(|renewed| renewed.lease).collect::<Vec<_>>(),
        held
    );
    assert_eq!(fixture.lease_at(200, 10).await, []);
}

async fn a_released_run_waits_again(fixture: Fixture) {
    let run = fixture.enqueue_new().await;
    let leased = fixture.lease_one().await;
    assert!(fixture.store.lease_release(&leased.lease).await.unwrap());
    assert!(
        !fixture.store.lease_release(&leased.lease).await.unwrap(),
        "it is given back once"
    );
    let summary = fixture.run(run.summary.run_id).await.unwrap().summary;
    assert_eq!(
        (summary.status, summary.attempts, summary.started_at),
        (RunStatus::Queued, 0, Some(at(0)))
    );
    assert_eq!(fixture.renew(&leased.lease, at(200)).await, []);
    let again = fixture.lease_at(1, 10).await.remove(0);
    assert!(again.lease.fence > leased.lease.fence);
    assert_eq!((again.summary.attempts, again.is_taken_over), (1, false));
}

async fn expired_leases_go_before_what_waits(fixture: Fixture) {
    let first = fixture.enqueue_new().await.summary.run_id;
    fixture.lease_one().await;
    let mut urgent = queued_run(&fixture.tenant);
    urgent.level = 100;
    fixture.enqueue(&urgent).await;
    let second = urgent.summary.run_id;
    assert_eq!(ids(&fixture.lease_at(101, 1).await), [first]);
    assert_eq!(ids(&fixture.lease_at(102, 10).await), [second]);
    let mut urgent = queued_run(&fixture.tenant);
    urgent.level = 100;
    fixture.enqueue(&urgent).await;
    let third = urgent.summary.run_id;
    assert_eq!(ids(&fixture.lease_at(300, 10).await), [second, first, third]);
}

async fn no_more_suspects_are_leased_than_wanted(fixture: Fixture) {
    // Three runs with which two workers have died, and two with which one has.
    let mut runs = Vec::new();
    for _ in 0..3 {
        runs.push(fixture.enqueue_new().await.summary.run_id);
    }
    assert_eq!(fixture.lease_at(0, 10).await.len(), 3);
    assert_eq!(fixture.lease_at(101, 10).await.len(), 3);
    for _ in 0..2 {
        runs.push(fixture.enqueue_new().await.summary.run_id);
    }
    assert_eq!(fixture.lease_at(102, 10).await.len(), 2);
    runs.push(fixture.enqueue_new().await.summary.run_id);

    let lease = async |limits| {
        let leased = fixture.store.run_lease(&terms(worker(), 300, 400), limits).await;
        ids(&leased.unwrap())
    };
    assert_eq!(lease(LeaseLimits { runs: 0, suspects: 1 }).await, []);
    let unsuspected: BTreeSet<_> = lease(LeaseLimits { runs: 2, suspects: 0 }).await.into_iter().collect();
    assert_eq!(unsuspected, BTreeSet::from([runs[3], runs[4]]));
    let taken = lease(LeaseLimits { runs: 10, suspects: 1 }).await;
    assert_eq!(taken.len(), 2);
    assert!(
        runs[..3].contains(&taken[0]) && taken[1] == runs[5],
        "{taken:?} of {runs:?}"
    );
    assert_eq!(lease(LeaseLimits { runs: 10, suspects: 9 }).await.len(), 2);
}

async fn nobody_leases_a_run_twice(fixture: Fixture) {
    let mut waiting = BTreeSet::new();
    for _ in 0..60 {
        waiting.insert(fixture.enqueue_new().await.summary.run_id);
    }
    let another = open(fixture.database.url(), TestDatabase::settings()).await.unwrap();
    let terms: Vec<_> = (0..12).map(|_| terms(worker(), 0, 100)).collect();
    let stores = [&fixture.store, &another];
    let leasing = terms.iter().enumerate().map(|(index, terms)| async move {
        let mut mine = Vec::new();
        loop {
            let leased = stores[index % 2].run_lease(terms, all(3)).await.unwrap();
            if leased.is_empty() {
                return mine;
            }
            assert!(leased.len() <= 3);
            mine.extend(ids(&leased));
        }
    });
    let leased: Vec<_> = join_all(leasing).await.into_iter().flatten().collect();
    assert_eq!(leased.len(), 60);
    assert_eq!(leased.into_iter().collect::<BTreeSet<_>>(), waiting);
    another.close().await;
}

async fn the_time_comes_from_the_database(fixture: Fixture) {
    let before = test_support::drafts::now();
    let reported = fixture.store.lease_time().await.unwrap();
    // Server and test share a machine; SQLite tells milliseconds.
    assert!(
        (reported - before).abs() < chrono::TimeDelta::minutes(1),
        "{reported} {before}"
    );
}
