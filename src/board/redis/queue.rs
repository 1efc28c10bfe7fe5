//! The writer's work: the newest change of each run, runs with new events, and runs that ask to
//! begin. Adding to it never waits.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, oneshot};

use super::keys::RunKeys;
use crate::board::LiveRun;
use crate::ids::RunId;
use crate::tenant::TenantId;

/// The most runs whose changes wait. What is beyond is dropped: the regular refresh shows a live run, and one that has ended
/// is forgotten by itself.
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
    /// Runs whose events the server doesn't have, as far as is known. Those are held elsewhere.
    told: BTreeSet<RunName>,
    openings: Vec<Opening>,
    /// Runs that have ended here and are still shown by the server.
    ended: BTreeSet<RunName>,
}

/// What the server has to learn of a run.
#[derive(Debug, Clone)]
pub(super) enum Change {
    /// Where it stands when the change is written.
    Show,
    /// That it has ended.
    Remove(Box<RunKeys>),
}

/// A run that asks to begin.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) tenant: TenantId,
    pub(super) run: Arc<LiveRun>,
    pub(super) exclusive: bool,
    pub(super) answer: oneshot::Sender<Result<(), RunId>>,
}

/// The next things to do, changes first.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) changes: Vec<(RunName, Change)>,
    pub(super) told: Vec<RunName>,
    pub(super) openings: Vec<Opening>,
}

impl Queue {
    /// Asks that the server shows where a run stands.
    pub(super) fn show(&self, tenant: &TenantId, run_id: RunId) {
        self.state().add((tenant.clone(), run_id), Change::Show);
        self.wake.notify_one();
    }

    /// Asks that the server shows many runs; doesn't wake the writer.
    pub(super) fn show_all(&self, runs: impl IntoIterator<Item = RunName>) {
        let mut state = self.state();
        for run in runs {
            state.add(run, Change::Show);
        }
    }

    /// Asks that the server is sent the events of a run.
    pub(super) fn tell(&self, run: RunName) {
        self.state().told.insert(run);
        self.wake.notify_one();
    }

    /// Asks that the server is sent the events of many runs; doesn't wake the writer.
    pub(super) fn tell_all(&self, runs: impl IntoIterator<Item = RunName>) {
        self.state().told.extend(runs);
    }

    /// Asks that the server forgets a run.
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

    /// Asks whether a run may begin. The answer fails when the server can't be asked.
    pub(super) fn open(&self, opening: Opening) {
        self.state().openings.push(opening);
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
        while batch.told.len() < limit
            && let Some(run) = state.told.pop_first()
        {
            batch.told.push(run);
        }
        // A run begins after all earlier changes, so that it doesn't lose to one that has ended.
        if state.changes.is_empty() {
            batch.openings = std::mem::take(&mut state.openings);
            // Nobody waits for these any more.
            batch.openings.retain(|opening| !opening.answer.is_closed());
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

    /// Gives up all runs that ask to begin.
    pub(super) fn refuse_openings(&self) {
        self.state().openings.clear();
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
            Entry::Vacant(place) => {
                place.insert(change);
                true
            }
            // A run ends once: whoever still asks to show it asks too late.
            Entry::Occupied(mut place) => {
                if matches!(place.get(), Change::Show) {
                    place.insert(change);
                }
                true
            }
        }
    }
}

impl Batch {
    /// Tells whether there is nothing to do.
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.told.is_empty() && self.openings.is_empty()
    }
}
