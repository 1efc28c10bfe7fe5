//! The live runs of this process and their events, in memory. No operation fails or waits.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use parking_lot::Mutex;

use super::changes::Changes;
use super::control::ControlMessages;
use super::events::EventLogs;
use super::feed::Feeds;
use super::live_run::LiveRun;
use super::settings::BoardSettings;
use agent::record::RunEvent;
use values::ids::{RunId, SessionId};
use values::tenant::TenantId;

/// The part of a board in the memory of this process.
#[derive(Debug)]
pub(super) struct LocalBoard {
    runs: Mutex<Runs>,
    pub(super) events: EventLogs,
    pub(super) changes: Arc<Changes>,
    pub(super) feeds: Arc<Feeds>,
    pub(super) control: ControlMessages,
}

type Runs = BTreeMap<(TenantId, RunId), Arc<LiveRun>>;

impl LocalBoard {
    pub(super) fn new(settings: BoardSettings) -> Self {
        Self {
            runs: Mutex::default(),
            events: EventLogs::new(settings),
            changes: Arc::default(),
            feeds: Arc::default(),
            control: ControlMessages::default(),
        }
    }

    /// Adds a run that begins. If it is exclusive and another run has the same base, returns that
    /// run instead. Its events are durable at once, or once they are shared or persisted.
    pub(super) fn open(
        &self,
        tenant: &TenantId,
        run: Arc<LiveRun>,
        exclusive: bool,
        is_durable_at_once: bool,
    ) -> Result<(), RunId> {
        let (run_id, fence) = (run.summary.run_id, run.fence);
        let mut runs = self.runs.lock();
        if exclusive && let Some(rival) = find_rival(&runs, tenant, &run) {
            return Err(rival);
        }
        runs.insert((tenant.clone(), run_id), run);
        drop(runs);
        self.events.open(tenant, run_id, fence, is_durable_at_once);
        self.changes.notify(run_id);
        Ok(())
    }

    /// Finds another live run with the same base.
    pub(super) fn rival(&self, tenant: &TenantId, run: &LiveRun) -> Option<RunId> {
        find_rival(&self.runs.lock(), tenant, run)
    }

    /// Shows where a run stands, unless a newer attempt at it is shown. Returns whether the shown
    /// run has another status than before.
    pub(super) fn update(&self, tenant: &TenantId, run: Arc<LiveRun>) -> bool {
        let run_id = run.summary.run_id;
        let mut runs = self.runs.lock();
        let shown = runs.entry((tenant.clone(), run_id)).or_insert_with(|| Arc::clone(&run));
        let is_newest = shown.fence <= run.fence;
        let has_new_status = is_newest && shown.summary.status != run.summary.status;
        if is_newest {
            *shown = run;
        }
        drop(runs);
        self.changes.notify(run_id);
        has_new_status
    }

    /// Removes a run, unless the board has a newer attempt. Its events are retained for a while.
    pub(super) fn close(&self, tenant: &TenantId, run_id: RunId, fence: u64) -> Option<Arc<LiveRun>> {
        let run = match self.runs.lock().entry((tenant.clone(), run_id)) {
            Entry::Occupied(shown) if shown.get().fence <= fence => Some(shown.remove()),
            _ => None,
        };
        if let Some(run) = &run {
            self.events.end(run_id, run.fence);
        }
        self.changes.notify(run_id);
        run
    }

    /// Retains an event. Returns whether it is new.
    pub(super) fn append(&self, tenant: &TenantId, event: Arc<RunEvent>) -> bool {
        let run_id = event.run_id;
        let is_new = self.events.append(tenant, event);
        if is_new {
            self.changes.notify(run_id);
        }
        is_new
    }

    pub(super) fn lookup(&self, tenant: &TenantId, run_id: RunId) -> Option<Arc<LiveRun>> {
        self.runs.lock().get(&(tenant.clone(), run_id)).map(Arc::clone)
    }

    pub(super) fn lookup_by_session(&self, tenant: &TenantId, session_id: SessionId) -> Option<RunId> {
        let runs = self.runs.lock();
        let found = tenant_runs(&runs, tenant).find(|run| run.summary.session_id == session_id);
        found.map(|run| run.summary.run_id)
    }

    /// Lists the live runs of a tenant, the newest first.
    pub(super) fn list(&self, tenant: &TenantId) -> Vec<Arc<LiveRun>> {
        let mut runs: Vec<_> = tenant_runs(&self.runs.lock(), tenant).map(Arc::clone).collect();
        runs.reverse();
        runs
    }

    /// Lists the live runs of all tenants.
    pub(super) fn all(&self) -> Vec<(TenantId, Arc<LiveRun>)> {
        let runs = self.runs.lock();
        let owned = runs.iter().map(|((tenant, _), run)| (tenant.clone(), Arc::clone(run)));
        owned.collect()
    }
}

/// Finds another live run with the same base. Ignores ended runs, whose sessions are already
/// committed.
fn find_rival(runs: &Runs, tenant: &TenantId, run: &LiveRun) -> Option<RunId> {
    let base = run.summary.base_session_id?;
    let mut rivals = tenant_runs(runs, tenant).map(|live| &live.summary).filter(|live| {
        live.base_session_id == Some(base) && live.run_id != run.summary.run_id && !live.status.is_terminal()
    });
    rivals.next().map(|rival| rival.run_id)
}

fn tenant_runs<'a>(runs: &'a Runs, tenant: &'a TenantId) -> impl Iterator<Item = &'a Arc<LiveRun>> {
    let from = (tenant.clone(), RunId::from_uuid(uuid::Uuid::nil()));
    runs.range(from..)
        .take_while(move |((owner, _), _)| owner == tenant)
        .map(|(_, run)| run)
}
