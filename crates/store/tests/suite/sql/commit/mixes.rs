//! Any mix of writes at once has the results of the same writes one after another.

use std::sync::Arc;

use futures_util::future::join_all;
use proptest::prelude::*;
use serde_json::json;
use store::CommitError;
use store::queue::{Acceptance, NewQueuedRun};
use store::sessions::{Commit, Committed, ConflictPolicy};
use test_support::databases::Engine;
use test_support::drafts::{run_of, session_id, tenant};
use uuid::Uuid;
use values::ids::RunId;
use values::session::{Bundle, EnvironmentState};
use values::tenant::TenantId;

use crate::batched_write::{BatchedWrite, LeasedTestRun, Written, keyed_run, leased_run};
use crate::fixtures::Fixture;
use crate::model_check::check;
use crate::sql::queue::fixtures::queued_run;

/// How many sessions there are to continue.
const PARENTS: usize = 3;
/// How many runs are at work. The lease of the last one is lost.
const RUNS: usize = 4;
/// How many idempotency keys there are. The last one is taken.
const KEYS: usize = 3;

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A session without a parent.
    Root,
    /// A session that continues one of the parents.
    Child(usize, ConflictPolicy),
    /// The same write as an earlier one of the list, if there is one.
    Repeated(usize),
    /// Another session with the id of a parent.
    TakenId(usize),
    /// An imported session, without a run.
    Imported,
    /// A session of some size.
    Large,
    /// A run to accept.
    Accept(AcceptKind),
    /// Progress of a run at work.
    Append(usize),
    /// The end of a run at work, whose session may continue a parent.
    End(usize, Option<usize>),
}

#[derive(Debug, Clone, Copy)]
enum AcceptKind {
    /// A run without a base.
    Waiting,
    /// A run that is leased at once.
    Leased,
    /// A run that continues one of the parents.
    Based(usize),
    /// A run that continues no session of the tenant.
    Baseless,
    /// A run with one of the keys.
    Keyed(usize),
    /// A run that reserves the session of a run at work, which does not end.
    TakenSession,
}

fn kind() -> impl Strategy<Value = Kind> {
    let policy = prop_oneof![Just(ConflictPolicy::Fork), Just(ConflictPolicy::Reject)];
    prop_oneof![
        3 => Just(Kind::Root),
        6 => (0..PARENTS, policy).prop_map(|(parent, policy)| Kind::Child(parent, policy)),
        2 => (0..40_usize).prop_map(Kind::Repeated),
        1 => (0..PARENTS).prop_map(Kind::TakenId),
        1 => Just(Kind::Imported),
        1 => Just(Kind::Large),
        6 => acceptance().prop_map(Kind::Accept),
        5 => (0..RUNS).prop_map(Kind::Append),
        3 => (0..RUNS, prop::option::of(0..PARENTS)).prop_map(|(run, parent)| Kind::End(run, parent)),
    ]
}

fn acceptance() -> impl Strategy<Value = AcceptKind> {
    prop_oneof![
        2 => Just(AcceptKind::Waiting),
        1 => Just(AcceptKind::Leased),
        1 => (0..PARENTS).prop_map(AcceptKind::Based),
        1 => Just(AcceptKind::Baseless),
        3 => (0..KEYS).prop_map(AcceptKind::Keyed),
        1 => Just(AcceptKind::TakenSession),
    ]
}

#[test]
fn on_postgres_a_mix_at_once_equals_the_mix_one_by_one() {
    check(Engine::Postgres, 40, kind(), 1..40, &play);
}

#[test]
fn on_sqlite_a_mix_at_once_equals_the_mix_one_by_one() {
    check(Engine::Sqlite, 40, kind(), 1..40, &play);
}

async fn play(fixture: &Fixture, kinds: &[Kind]) {
    let id = Uuid::now_v7().simple().to_string();
    let [at_once, one_by_one] = ["at-once", "one-by-one"].map(|name| tenant(&format!("{name}-{id}")));
    let world = World::new(fixture, [&at_once, &one_by_one]).await;
    let mut writes: Vec<BatchedWrite> = Vec::new();
    for (number, kind) in kinds.iter().enumerate() {
        writes.push(world.make(&writes, number, *kind));
    }

    let together: Vec<_> = writes.iter().map(|write| write.of(&at_once)).collect();
    let together = join_all(together.iter().map(|write| write.execute(&*fixture.store))).await;
    // Of those that exclude each other, any may come first, but one does.
    let mut order: Vec<usize> = (0..writes.len()).collect();
    order.sort_by_key(|index| turn(&together[*index]));
    let mut apart: Vec<Option<Result<Written, CommitError>>> = writes.iter().map(|_| None).collect();
    for index in order {
        apart[index] = Some(writes[index].of(&one_by_one).execute(&*fixture.store).await);
    }
    for (number, (one, other)) in together.iter().zip(&apart).enumerate() {
        let (one, other) = (
            described(one, &at_once),
            described(other.as_ref().unwrap(), &one_by_one),
        );
        assert_eq!(one, other, "{number}: {:?}", kinds[number]);
    }
    for table in [
        "sessions",
        "runs",
        "history_segments",
        "history_branches",
        "states",
        "run_queue",
        "run_journal",
        "run_events",
        "idempotency_keys",
    ] {
        let count = async |tenant| fixture.count(&format!("{table} where tenant = '{tenant}'")).await;
        assert_eq!(count(&at_once).await, count(&one_by_one).await, "{table}");
    }
    for session in together.iter().flatten().filter_map(Written::session) {
        let stored = fixture.store.bundle_load(&at_once, session.head.session_id).await;
        assert_eq!(stored.unwrap().as_ref(), Some(session));
    }
    for run_id in world.runs.iter().map(|run| run.lease.run_id) {
        let [one, other] = [&at_once, &one_by_one].map(async |tenant| progress_of(fixture, tenant, run_id).await);
        assert_eq!(one.await, other.await);
    }
}

/// The rows to which the writes of a mix refer. Both tenants have them.
struct World<'a> {
    fixture: &'a Fixture,
    parents: Vec<Arc<Bundle>>,
    runs: Vec<LeasedTestRun>,
}

impl<'a> World<'a> {
    async fn new(fixture: &'a Fixture, tenants: [&TenantId; 2]) -> Self {
        let for_both = async |write: BatchedWrite| {
            let [one, other] = tenants.map(|tenant| write.of(tenant));
            other.execute(&*fixture.store).await.unwrap();
            one.execute(&*fixture.store).await.unwrap()
        };
        let mut parents = Vec::new();
        for number in 0..PARENTS {
            let root = fixture.commit(None, &[&format!("parent {number}")]);
            let written = for_both(BatchedWrite::commit(root)).await;
            parents.push(Arc::new(written.session().unwrap().clone()));
        }
        let mut runs = Vec::new();
        for number in 0..RUNS {
            let accepted = leased_run(tenants[0]);
            let written = for_both(BatchedWrite::accept(accepted.clone())).await;
            let Written::Accepted(Acceptance::Accepted { lease: Some(lease), .. }) = written else {
                panic!("{written:?}")
            };
            let run = LeasedTestRun { accepted, lease };
            runs.push(if number + 1 == RUNS { run.lost() } else { run });
        }
        for_both(BatchedWrite::accept(keyed_run(tenants[0], &(KEYS - 1).to_string()))).await;
        Self { fixture, parents, runs }
    }

    fn make(&self, earlier: &[BatchedWrite], number: usize, kind: Kind) -> BatchedWrite {
        let text = format!("message {number}");
        let root = || self.fixture.commit(None, &[&text]);
        let commit = match kind {
            Kind::Repeated(index) if index < earlier.len() => return earlier[index].clone(),
            Kind::Accept(acceptance) => return BatchedWrite::accept(self.acceptance(acceptance)),
            Kind::Append(run) => return BatchedWrite::append(&self.runs[run].lease, 1 + number as u64),
            Kind::End(run, parent) => {
                let parent = parent.map(|parent| &self.parents[parent]);
                return BatchedWrite::end(self.fixture, &self.runs[run], parent, &text);
            }
            Kind::Child(parent, conflict) => {
                let mut commit = self.fixture.commit(Some(&self.parents[parent]), &[&text]);
                // Several sessions of a mix have the same new environment.
                let environment = EnvironmentState {
                    variables: [("number".to_owned(), json!(number % 3))].into(),
                    ..(*commit.draft.environment).clone()
                };
                commit.draft.environment = Arc::new(environment);
                Commit { conflict, ..commit }
            }
            Kind::Root | Kind::Repeated(_) => root(),
            Kind::TakenId(parent) => {
                let mut commit = root();
                commit.draft.session_id = self.parents[parent].head.session_id;
                commit.run = Some(run_of(&commit.draft));
                commit
            }
            Kind::Imported => {
                let mut commit = root();
                commit.draft.run_id = None;
                Commit { run: None, ..commit }
            }
            Kind::Large => self
                .fixture
                .commit(None, &[&format!("{text} {}", Uuid::now_v7()).repeat(20_000)]),
        };
        BatchedWrite::commit(commit)
    }

    fn acceptance(&self, acceptance: AcceptKind) -> NewQueuedRun {
        let tenant = &self.fixture.tenant;
        let mut run = queued_run(tenant);
        match acceptance {
            AcceptKind::Waiting => (),
            AcceptKind::Leased => return leased_run(tenant),
            AcceptKind::Based(parent) => run.summary.base_session_id = Some(self.parents[parent].head.session_id),
            AcceptKind::Baseless => run.summary.base_session_id = Some(session_id()),
            AcceptKind::Keyed(number) => return keyed_run(tenant, &number.to_string()),
            AcceptKind::TakenSession => run.summary.session_id = self.runs[RUNS - 1].accepted.summary.session_id,
        }
        run
    }
}

/// Returns the turn in which a write has the same result if it is executed one by one: progress
/// comes before the end of its run, the session that continues a parent before those that open
/// branches, and those that have taken something before those that found it taken.
fn turn(result: &Result<Written, CommitError>) -> u8 {
    match result {
        Ok(Written::Appended(true)) => 0,
        Ok(Written::Committed(committed)) if committed.session.head.position.position > 0 => 1,
        Ok(Written::Committed(_) | Written::Accepted(Acceptance::Accepted { .. })) => 2,
        Ok(Written::Accepted(_) | Written::Appended(false)) | Err(_) => 3,
    }
}

/// Returns a session, or the description of another result without the tenant.
fn described<'r>(result: &'r Result<Written, CommitError>, tenant: &TenantId) -> Result<&'r Committed, String> {
    match result {
        Ok(Written::Committed(committed)) => Ok(committed),
        other => Err(format!("{other:?}").replace(tenant.as_str(), "the tenant")),
    }
}

/// Returns what is stored of a run that was at work.
async fn progress_of(fixture: &Fixture, tenant: &TenantId, run_id: RunId) -> String {
    let record = fixture.store.run_lookup(tenant, run_id).await.unwrap();
    let journal = fixture.store.journal_read(tenant, run_id).await.unwrap();
    let events = fixture.store.event_read(tenant, run_id, 0, 10_000).await.unwrap();
    format!("{record:?} {journal:?} {events:?}")
}
