//! The lease protocol under a clock of the test: every order of what two workers may do, compared
//! with a small model that says who may write.

use std::collections::BTreeSet;

use agent::record::RunStatus;
use store::CommitError;
use store::queue::LeasedRun;
use store::runs::Recorded;

use super::fixtures::{all, at, commit_of, events, failed_end, journal, other_commit_of, queued_run, terms, worker};
use crate::fixtures::Fixture;

on_both_engines!(every_order_of_two_workers_has_one_end);

/// How long a lease lasts, and how far the clock moves when it moves.
const LEASE: i64 = 10;
const STEP: i64 = 6;

/// An act of the protocol. The first worker has leased the run already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Act {
    /// The clock moves on: twice without a renewal, and a lease has expired.
    Pass,
    /// Some worker, 0 or 1, tries to lease the run.
    Take(usize),
    Renew(usize),
    Append(usize),
    Release(usize),
    Commit(usize),
    Record(usize),
}

/// Each course takes these in any order that keeps each worker's own.
const COURSES: [&[&[Act]]; 4] = [
    &[
        &[Act::Append(0), Act::Renew(0), Act::Commit(0)],
        &[Act::Pass, Act::Pass],
        &[Act::Take(1), Act::Commit(1)],
    ],
    &[
        &[Act::Renew(0), Act::Record(0)],
        &[Act::Pass, Act::Pass, Act::Pass],
        &[Act::Take(1), Act::Commit(1)],
    ],
    &[
        &[Act::Commit(0), Act::Commit(0)],
        &[Act::Pass, Act::Pass],
        &[Act::Take(1), Act::Append(1), Act::Record(1)],
    ],
    &[
        &[Act::Release(0), Act::Append(0)],
        &[Act::Pass, Act::Pass],
        &[Act::Take(1), Act::Commit(1), Act::Take(0)],
    ],
];

/// The run as the protocol describes it.
#[derive(Debug, Default)]
struct Model {
    now: i64,
    fence: u64,
    /// Who has the lease, until when.
    leased: Option<(usize, i64)>,
    /// The lease that each worker believes to have.
    beliefs: [Option<u64>; 2],
    /// Who has ended it, and how.
    end: Option<(usize, RunStatus)>,
    appended: u64,
}

impl Model {
    fn may_write(&self, worker: usize) -> bool {
        let holds = self.leased.is_some_and(|(holder, _)| holder == worker);
        self.end.is_none() && holds && self.beliefs[worker] == Some(self.fence)
    }

    fn may_take(&self) -> bool {
        self.end.is_none() && self.leased.is_none_or(|(_, until)| until < self.now)
    }
}

/// All orders of several sequences that keep each one's own.
fn interleavings(sequences: &[&[Act]]) -> Vec<Vec<Act>> {
    if sequences.iter().all(|sequence| sequence.is_empty()) {
        return vec![Vec::new()];
    }
    let mut orders = BTreeSet::new();
    for (index, sequence) in sequences.iter().enumerate() {
        let Some((first, rest)) = sequence.split_first() else {
            continue;
        };
        let mut others = sequences.to_vec();
        others[index] = rest;
        for mut order in interleavings(&others) {
            order.insert(0, *first);
            orders.insert(order);
        }
    }
    orders.into_iter().collect()
}

async fn every_order_of_two_workers_has_one_end(fixture: Fixture) {
    let mut count = 0;
    for course in COURSES {
        for order in interleavings(course) {
            Course::begin(&fixture).await.run(&order).await;
            count += 1;
        }
    }
    assert_eq!(count, 4 * 210);
}

/// One run and the two workers that want it.
struct Course<'f> {
    fixture: &'f Fixture,
    model: Model,
    leases: [Option<LeasedRun>; 2],
    workers: [values::ids::WorkerId; 2],
    done: Vec<Act>,
}

impl<'f> Course<'f> {
    async fn begin(fixture: &'f Fixture) -> Self {
        fixture.enqueue(&queued_run(&fixture.tenant)).await;
        let mut course = Self {
            fixture,
            model: Model::default(),
            leases: [None, None],
            workers: [worker(), worker()],
            done: Vec::new(),
        };
        course.act(Act::Take(0)).await;
        course
    }

    async fn run(mut self, order: &[Act]) {
        for act in order {
            self.act(*act).await;
        }
        self.end().await;
    }

    async fn act(&mut self, act: Act) {
        self.done.push(act);
        let done = &self.done;
        let (store, tenant) = (&self.fixture.store, &self.fixture.tenant);
        match act {
            Act::Pass => self.model.now += STEP,
            Act::Take(worker) => {
                let terms = terms(self.workers[worker], self.model.now, self.model.now + LEASE);
                let mut leased = store.run_lease(&terms, all(5)).await.unwrap();
                assert_eq!(leased.len(), usize::from(self.model.may_take()), "{done:?}");
                if let Some(leased) = leased.pop() {
                    assert!(leased.lease.fence > self.model.fence, "{done:?}");
                    self.model.fence = leased.lease.fence;
                    self.model.leased = Some((worker, self.model.now + LEASE));
                    self.model.beliefs[worker] = Some(leased.lease.fence);
                    self.leases[worker] = Some(leased);
                }
            }
            Act::Renew(worker)
            | Act::Append(worker)
            | Act::Release(worker)
            | Act::Commit(worker)
            | Act::Record(worker) => {
                let Some(leased) = self.leases[worker].clone() else {
                    return;
                };
                let may = self.model.may_write(worker);
                let written = match act {
                    Act::Renew(_) => self.renew(&leased, may).await,
                    Act::Append(_) => self.append(&leased, may).await,
                    Act::Release(_) => store.lease_release(&leased.lease).await.unwrap(),
                    Act::Commit(_) => return self.commit(worker, &leased, may).await,
                    _ => return self.record(worker, &leased, may).await,
                };
                assert_eq!(written, may, "{:?}", self.done);
                if may && act == Act::Release(worker) {
                    self.model.leased = None;
                }
                assert!(store.run_lookup(tenant, leased.lease.run_id).await.unwrap().is_some());
            }
        }
    }

    async fn renew(&mut self, leased: &LeasedRun, may: bool) -> bool {
        let until = self.model.now + LEASE;
        let renewed = self.fixture.renew(&leased.lease, at(until)).await;
        if may && let Some((_, lasts)) = &mut self.model.leased {
            *lasts = until;
        }
        // Nobody else holds the row, so a lease in force lasts longer.
        renewed.iter().any(|renewed| renewed.is_prolonged)
    }

    /// Appends to the journal and to the events, which agree.
    async fn append(&mut self, leased: &LeasedRun, may: bool) -> bool {
        let next = self.model.appended + 1;
        let store = &self.fixture.store;
        let retained = store
            .progress_append(&leased.lease, &journal(next, next), &[])
            .await
            .unwrap();
        let reported = events(leased.lease.run_id, next, next);
        assert_eq!(
            store.progress_append(&leased.lease, &[], &reported).await.unwrap(),
            retained,
            "{:?}",
            self.done
        );
        self.model.appended += u64::from(may);
        retained
    }

    async fn commit(&mut self, worker: usize, leased: &LeasedRun, may: bool) {
        let commit = match worker {
            0 => commit_of(self.fixture, leased),
            _ => other_commit_of(self.fixture, leased),
        };
        let result = self.fixture.store.session_commit(&commit).await;
        match result {
            Ok(committed) => {
                assert!(may, "{:?}", self.done);
                assert_eq!(committed.session.head.session_id, leased.summary.session_id);
                self.model.end = Some((worker, RunStatus::Completed));
            }
            Err(CommitError::LeaseLost) => assert!(!may, "{:?}", self.done),
            Err(error) => panic!("{error:?} {:?}", self.done),
        }
    }

    async fn record(&mut self, worker: usize, leased: &LeasedRun, may: bool) {
        let end = failed_end(leased);
        let recorded = self.fixture.store.run_record(&self.fixture.tenant, &end).await.unwrap();
        let expected = match (may, self.model.end) {
            (true, _) => Recorded::Now,
            (false, Some(_)) => Recorded::Before,
            (false, None) => Recorded::LeaseLost,
        };
        assert_eq!(recorded, expected, "{:?}", self.done);
        if may {
            self.model.end = Some((worker, RunStatus::Failed));
        }
    }

    /// In every case the run has one end, which is that of the model, and a run without an end can
    /// still be leased.
    async fn end(&mut self) {
        if self.model.end.is_none() {
            self.model.now += 10 * LEASE;
            self.act(Act::Take(1)).await;
            let leased = self.leases[1].clone().unwrap();
            let entries = self
                .fixture
                .store
                .journal_read(&self.fixture.tenant, leased.lease.run_id);
            assert_eq!(
                entries.await.unwrap(),
                journal(1, self.model.appended),
                "{:?}",
                self.done
            );
            self.act(Act::Record(1)).await;
        }
        let (_, status) = self.model.end.unwrap();
        let (store, tenant) = (&self.fixture.store, &self.fixture.tenant);
        let leased = self.leases.iter().flatten().next().unwrap();
        let run_id = leased.lease.run_id;
        let record = store.run_lookup(tenant, run_id).await.unwrap().unwrap();
        assert_eq!(record.summary.status, status, "{:?}", self.done);
        let session = store.bundle_load(tenant, leased.summary.session_id).await.unwrap();
        assert_eq!(session.is_some(), status.has_session(), "{:?}", self.done);
        assert_eq!(
            store.event_last(tenant, run_id).await.unwrap(),
            self.model.appended,
            "{:?}",
            self.done
        );
        assert_eq!(store.journal_read(tenant, run_id).await.unwrap(), [], "{:?}", self.done);
        let terms = terms(self.workers[0], self.model.now + 1000, self.model.now + 1001);
        assert_eq!(store.run_lease(&terms, all(5)).await.unwrap(), [], "{:?}", self.done);
    }
}
