//! The writer's work: the newest change of each run, and runs with events to share. Adding to it
//! never waits.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::keys::RunKeys;
use crate::board::LiveRun;
use crate::ids::RunId;
use crate::tenant::TenantId;

/// The most runs whose changes wait. What is beyond is dropped: the regular refresh shows a live
/// run, and one that has ended expires by itself.
const MAX_CHANGES: usize = 10_000;

/// Names a run.
pub(super) type RunName = (TenantId, RunId);

/// What the writer has to do.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<QueueState>,
    pub(super) wake: Arc<Notify>,
}

#[derive(Debug, Default)]
struct QueueState {
    changes: BTreeMap<RunName, Change>,
    /// Runs with events that the server lacks, as far as is known. Their logs have the events.
    unshared: BTreeSet<RunName>,
    /// Runs that have ended here and are still shown by the server.
    ended: BTreeSet<RunName>,
}

/// What the server has to be sent of a run.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// Where it stands when the change is written.
    Show,
    /// That it has ended.
    Remove(Box<RunKeys>),
}

/// The next things to do, changes first.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) changes: Vec<(RunName, Change)>,
    pub(super) unshared: Vec<RunName>,
}

impl Queue {
    /// Has the server show where a run stands.
    pub(super) fn show(&self, tenant: &TenantId, run_id: RunId) {
        self.state().add((tenant.clone(), run_id), Change::Show);
        self.wake.notify_one();
    }

    /// Has the server show many runs; doesn't wake the writer.
    pub(super) fn show_all(&self, runs: impl IntoIterator<Item = RunName>) {
        let mut state = self.state();
        for run in runs {
            state.add(run, Change::Show);
        }
    }

    /// Has the events of a run sent to the server.
    pub(super) fn share(&self, run: RunName) {
        self.state().unshared.insert(run);
        self.wake.notify_one();
    }

    /// Has the events of many runs sent to the server; doesn't wake the writer.
    pub(super) fn share_all(&self, runs: impl IntoIterator<Item = RunName>) {
        self.state().unshared.extend(runs);
    }

    /// Has the server forget a run.
    pub(super) fn remove(&self, tenant: &TenantId, run: &LiveRun) {
        let keys = Box::new(RunKeys::new(tenant, &run.summary));
        let name = (tenant.clone(), run.summary.run_id);
        let mut state = self.state();
        if state.add(name.clone(), Change::Remove(keys)) {
            state.ended.insert(name);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Lists the runs of a tenant that have ended here, whatever the server shows.
    pub(super) fn ended(&self, tenant: &TenantId) -> BTreeSet<RunId> {
        let state = self.state();
        let of_tenant = state.ended.iter().filter(|(owner, _)| owner == tenant);
        of_tenant.map(|(_, run_id)| *run_id).collect()
    }

    /// Takes the next things to do; nothing when all is done.
    pub(super) fn take(&self, limit: usize) -> Batch {
        let mut state = self.state();
        let mut batch = Batch::default();
        while batch.changes.len() < limit
            && let Some(change) = state.changes.pop_first()
        {
            batch.changes.push(change);
        }
        while batch.unshared.len() < limit
            && let Some(run) = state.unshared.pop_first()
        {
            batch.unshared.push(run);
        }
        batch
    }

    /// Takes note of what the server knows now.
    pub(super) fn done(&self, changes: &[(RunName, Change)]) {
        let mut state = self.state();
        for (run, change) in changes {
            if matches!(change, Change::Remove(_)) {
                state.ended.remove(run);
            }
        }
    }

    /// Puts changes back that could not be written, unless there are newer ones.
    pub(super) fn put_back(&self, changes: Vec<(RunName, Change)>) {
        let mut state = self.state();
        for (run, change) in changes {
            state.changes.entry(run).or_insert(change);
        }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        // Whatever a panic elsewhere left undone is repaired by the regular refresh.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl QueueState {
    fn add(&mut self, run: RunName, change: Change) -> bool {
        let full = self.changes.len() >= MAX_CHANGES;
        match self.changes.entry(run) {
            Entry::Vacant(_) if full => false,
            Entry::Vacant(entry) => {
                entry.insert(change);
                true
            }
            // A run ends once, and is not shown afterwards.
            Entry::Occupied(mut entry) => {
                if matches!(entry.get(), Change::Show) {
                    entry.insert(change);
                }
                true
            }
        }
    }
}

impl Batch {
    /// Returns whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.unshared.is_empty()
    }
}
