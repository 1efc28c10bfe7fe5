//! The writes that a committer executes in batches.

use std::sync::Arc;

use agent::record::RunEvent;
use store::queue::{Acceptance, JournalRecord, KnownRequest, Lease, NewQueuedRun};
use store::runs::RunEnd;
use store::sessions::{Commit, Committed};
use store::{CommitError, Store};
use test_support::drafts::run_of;
use values::session::Bundle;
use values::tenant::TenantId;

use super::fixtures::Fixture;
use super::sql::queue::fixtures::{at, events, journal, key, queued_run, terms, worker};

#[derive(Debug, Clone)]
pub(crate) enum BatchedWrite {
    Accept(Box<NewQueuedRun>),
    Append(Lease, Vec<JournalRecord>, Vec<Arc<RunEvent>>),
    Commit(Box<Commit>),
}

/// The outcome of a write.
#[derive(Debug, PartialEq)]
pub(crate) enum Written {
    Accepted(Acceptance),
    /// Whether the lease is in force.
    Appended(bool),
    Committed(Box<Committed>),
}

impl BatchedWrite {
    pub(crate) fn accept(run: NewQueuedRun) -> Self {
        Self::Accept(Box::new(run))
    }

    /// Appends an entry and two events, which have these numbers among those of the run.
    pub(crate) fn append(lease: &Lease, number: u64) -> Self {
        let events = events(lease.run_id, 2 * number - 1, 2 * number);
        Self::Append(lease.clone(), journal(number, number), events)
    }

    pub(crate) fn commit(commit: Commit) -> Self {
        Self::Commit(Box::new(commit))
    }

    /// Publishes the session of a leased run, with its last two events.
    pub(crate) fn end(fixture: &Fixture, run: &LeasedTestRun, parent: Option<&Arc<Bundle>>, text: &str) -> Self {
        let mut commit = fixture.commit(parent, &[text]);
        commit.tenant = run.lease.tenant.clone();
        commit.draft.run_id = Some(run.lease.run_id);
        commit.draft.session_id = run.accepted.summary.session_id;
        commit.run = Some(RunEnd {
            lease: Some(run.lease.clone()),
            events: events(run.lease.run_id, 1_001, 1_002),
            ..run_of(&commit.draft)
        });
        Self::commit(commit)
    }

    /// Returns the same write of another tenant.
    pub(crate) fn of(&self, tenant: &TenantId) -> Self {
        let tenant = tenant.clone();
        let mut write = self.clone();
        match &mut write {
            Self::Accept(run) => run.tenant = tenant,
            Self::Append(lease, ..) => lease.tenant = tenant,
            Self::Commit(commit) => {
                if let Some(lease) = commit.run.as_mut().and_then(|end| end.lease.as_mut()) {
                    lease.tenant = tenant.clone();
                }
                commit.tenant = tenant;
            }
        }
        write
    }

    pub(crate) async fn execute(&self, store: &dyn Store) -> Result<Written, CommitError> {
        Ok(match self {
            Self::Accept(run) => Written::Accepted(store.run_accept(run).await?),
            Self::Append(lease, entries, events) => {
                Written::Appended(store.progress_append(lease, entries, events).await?)
            }
            Self::Commit(commit) => Written::Committed(Box::new(store.session_commit(commit).await?)),
        })
    }

    /// Checks that what the write has returned is what is stored of it.
    pub(crate) async fn assert_stored(&self, fixture: &Fixture, written: &Result<Written, CommitError>) {
        let store = &fixture.store;
        let queued = async |run_id| fixture.count(&format!("run_queue where run_id = '{run_id}'")).await;
        match self {
            Self::Accept(run) => {
                let is_accepted = matches!(written, Ok(Written::Accepted(Acceptance::Accepted { .. })));
                assert_eq!(queued(run.summary.run_id).await, i64::from(is_accepted), "{written:?}");
            }
            Self::Append(lease, entries, events) => {
                let is_appended = matches!(written, Ok(Written::Appended(true)));
                let (tenant, run_id) = (&lease.tenant, lease.run_id);
                let entries = if is_appended { &entries[..] } else { &[] };
                let events = if is_appended { &events[..] } else { &[] };
                assert_eq!(store.journal_read(tenant, run_id).await.unwrap(), entries);
                assert_eq!(store.event_read(tenant, run_id, 0, 100).await.unwrap(), events);
            }
            Self::Commit(commit) => {
                let session = written.as_ref().ok().and_then(Written::session);
                let stored = store.bundle_load(&commit.tenant, commit.draft.session_id).await;
                assert_eq!(stored.unwrap().as_ref(), session, "{written:?}");
                let Some(end) = commit.run.as_ref().filter(|end| end.lease.is_some()) else {
                    return;
                };
                let run_id = end.record.summary.run_id;
                assert_eq!(queued(run_id).await, i64::from(written.is_err()));
                let events = if written.is_ok() { &end.events[..] } else { &[] };
                assert_eq!(store.event_read(&commit.tenant, run_id, 0, 100).await.unwrap(), events);
            }
        }
    }
}

impl Written {
    /// The result of a run that waits for a worker.
    pub(crate) fn waiting() -> Self {
        Self::Accepted(Acceptance::Accepted {
            lease: None,
            interrupted: None,
        })
    }

    /// The result of a run whose key an earlier one has.
    pub(crate) fn known(earlier: &NewQueuedRun) -> Self {
        Self::Accepted(Acceptance::Known(KnownRequest {
            resource_id: earlier.summary.run_id.as_uuid(),
            digest: earlier.idempotency.as_ref().unwrap().digest,
        }))
    }

    /// Returns the session that a commit has published.
    pub(crate) fn session(&self) -> Option<&Bundle> {
        match self {
            Self::Committed(committed) => Some(&committed.session),
            Self::Accepted(_) | Self::Appended(_) => None,
        }
    }
}

/// A run that was accepted with a lease.
#[derive(Debug, Clone)]
pub(crate) struct LeasedTestRun {
    pub(crate) accepted: NewQueuedRun,
    pub(crate) lease: Lease,
}

impl LeasedTestRun {
    pub(crate) async fn new(fixture: &Fixture) -> Self {
        let accepted = leased_run(&fixture.tenant);
        let lease = fixture.enqueue(&accepted).await.unwrap();
        Self { accepted, lease }
    }

    /// Returns the run as its worker knows it that does not know that another has leased it since.
    pub(crate) fn lost(mut self) -> Self {
        self.lease.fence -= 1;
        self
    }
}

/// A run that is leased as it is accepted.
pub(crate) fn leased_run(tenant: &TenantId) -> NewQueuedRun {
    NewQueuedRun {
        lease: Some(terms(worker(), 0, 100)),
        ..queued_run(tenant)
    }
}

/// A run with an idempotency key.
pub(crate) fn keyed_run(tenant: &TenantId, name: &str) -> NewQueuedRun {
    NewQueuedRun {
        idempotency: Some(key(name, "body", at(1_000_000_000))),
        ..queued_run(tenant)
    }
}
