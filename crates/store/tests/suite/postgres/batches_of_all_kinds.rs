//! Writes of all kinds that are executed at once. What happens to one of them happens to no other.

use futures_util::future::join_all;
use store::queue::Acceptance;
use store::{CommitError, StoreError};
use test_support::drafts::session_id;
use test_support::logs::listen;
use test_support::statements::Statements;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;

use crate::batched_write::{BatchedWrite, LeasedTestRun, Written, keyed_run};
use crate::fixtures::{Fixture, postgres};
use crate::sql::queue::fixtures::queued_run;

/// Executes writes all at once, and checks what is stored of them. On one thread, the first is a
/// batch of its own, and the others arrive while it is in flight.
async fn execute_at_once(fixture: &Fixture, writes: &[BatchedWrite]) -> Vec<Result<Written, CommitError>> {
    let results = join_all(writes.iter().map(|write| write.execute(&*fixture.store))).await;
    for (write, result) in writes.iter().zip(&results) {
        write.assert_stored(fixture, result).await;
    }
    results
}

async fn leased_runs<const N: usize>(fixture: &Fixture) -> [LeasedTestRun; N] {
    let runs = join_all((0..N).map(|_| LeasedTestRun::new(fixture))).await;
    runs.try_into().unwrap()
}

#[tokio::test(flavor = "current_thread")]
async fn writes_of_each_kind_share_a_statement() {
    let Some(fixture) = postgres().await else { return };
    let runs: [LeasedTestRun; 4] = leased_runs(&fixture).await;
    let light = || BatchedWrite::commit(fixture.commit(None, &["light"]));
    let accept = || BatchedWrite::accept(queued_run(&fixture.tenant));
    let end = |run| BatchedWrite::end(&fixture, run, None, "end");
    let writes = [
        light(),
        accept(),
        BatchedWrite::append(&runs[0].lease, 1),
        end(&runs[2]),
        light(),
        BatchedWrite::append(&runs[1].lease, 1),
        end(&runs[3]),
        accept(),
    ];
    let statements = Statements::default();
    let listening = listen(Registry::default().with(statements.clone()));
    let executing = writes.iter().map(|write| write.execute(&*fixture.store));
    let results = join_all(executing).await;
    drop(listening);
    assert_eq!(statements.taken(), 4, "the first, and one of each kind");
    for (write, result) in writes.iter().zip(&results) {
        assert!(result.is_ok(), "{result:?}");
        write.assert_stored(&fixture, result).await;
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_write_that_is_refused_refuses_none_of_any_kind() {
    let Some(fixture) = postgres().await else { return };
    let earlier = keyed_run(&fixture.tenant, "taken");
    fixture.enqueue(&earlier).await;
    let mut baseless = queued_run(&fixture.tenant);
    let base = session_id();
    baseless.summary.base_session_id = Some(base);
    let [at_work, at_end, lost] = leased_runs(&fixture).await;
    let lost = lost.lost();
    let writes = [
        BatchedWrite::commit(fixture.commit(None, &["first"])),
        BatchedWrite::accept(keyed_run(&fixture.tenant, "taken")),
        BatchedWrite::append(&lost.lease, 1),
        BatchedWrite::end(&fixture, &lost, None, "lost"),
        BatchedWrite::accept(baseless),
        BatchedWrite::accept(keyed_run(&fixture.tenant, "free")),
        BatchedWrite::append(&at_work.lease, 1),
        BatchedWrite::end(&fixture, &at_end, None, "end"),
        BatchedWrite::commit(fixture.commit(None, &["last"])),
    ];
    let results = execute_at_once(&fixture, &writes).await;
    let [
        first,
        taken,
        not_appended,
        not_ended,
        baseless,
        free,
        appended,
        end,
        last,
    ] = results.try_into().unwrap();
    assert!(matches!(not_ended, Err(CommitError::LeaseLost)), "{not_ended:?}");
    for (result, expected) in [
        (taken, Written::known(&earlier)),
        (not_appended, Written::Appended(false)),
        (baseless, Written::Accepted(Acceptance::MissingBase(base))),
        (free, Written::waiting()),
        (appended, Written::Appended(true)),
    ] {
        assert_eq!(result.unwrap(), expected);
    }
    for committed in [first, end, last] {
        assert!(committed.is_ok(), "{committed:?}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_write_that_fails_fails_none_of_any_kind() {
    let Some(fixture) = postgres().await else { return };
    let [at_work, at_end, other] = leased_runs(&fixture).await;
    let mut taken_session = queued_run(&fixture.tenant);
    // A run that stays at work in any order of the writes.
    taken_session.summary.session_id = at_work.accepted.summary.session_id;
    // Stored already, by attempts whose responses were lost.
    let repeated = [
        BatchedWrite::accept(queued_run(&fixture.tenant)),
        BatchedWrite::append(&at_work.lease, 1),
        BatchedWrite::end(&fixture, &at_end, None, "end"),
    ];
    for write in &repeated {
        write.execute(&*fixture.store).await.unwrap();
    }
    let [accepted, appended, ended] = repeated;
    let writes = [
        BatchedWrite::commit(fixture.commit(None, &["first"])),
        BatchedWrite::accept(taken_session),
        accepted,
        BatchedWrite::accept(queued_run(&fixture.tenant)),
        appended,
        ended,
        BatchedWrite::end(&fixture, &other, None, "other"),
    ];
    let mut results = execute_at_once(&fixture, &writes).await;
    let failed = results.remove(1);
    assert!(
        matches!(failed, Err(CommitError::Store(StoreError::Failed { .. }))),
        "{failed:?}"
    );
    for result in results {
        result.unwrap();
    }
}
