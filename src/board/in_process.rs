//! The board of a single process: maps in memory. A shared board also uses it for its own process.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;

use super::changes::Changes;
use super::events::{EventLogs, LogReading};
use super::settings::BoardSettings;
use super::signals::Signals;
use super::{AddressedSignal, Board, BoardFuture, LiveRun, RunSignal};
use crate::ids::{RunId, SessionId};
use crate::limits::{RateStanding, RequestRate};
use crate::record::RunEvent;
use crate::tenant::TenantId;

/// Keeps live runs and events in memory. No operation fails.
#[derive(Debug)]
pub struct InProcessBoard {
    runs: Mutex<Runs>,
    pub(super) events: EventLogs,
    pub(super) changes: Arc<Changes>,
    pub(super) signals: Signals,
}

type Runs = BTreeMap<(TenantId, RunId), Arc<LiveRun>>;

impl Default for InProcessBoard {
    fn default() -> Self {
        Self::new(BoardSettings::default())
    }
}

impl InProcessBoard {
    /// Makes a board that shows nothing yet.
    pub fn new(settings: BoardSettings) -> Self {
        Self {
            runs: Mutex::default(),
            events: EventLogs::new(settings),
            changes: Arc::default(),
            signals: Signals::default(),
        }
    }

    pub(super) fn open(&self, tenant: &TenantId, run: Arc<LiveRun>, exclusive: bool) -> Result<(), RunId> {
        let (run_id, attempt) = (run.summary.run_id, run.fence);
        let mut runs = self.runs();
        if exclusive && let Some(rival) = find_rival(&runs, tenant, &run) {
            return Err(rival);
        }
        runs.insert((tenant.clone(), run_id), run);
        drop(runs);
        self.events.open(tenant, run_id, attempt);
        self.changes.tell(run_id);
        Ok(())
    }

    pub(super) fn rival(&self, tenant: &TenantId, run: &LiveRun) -> Option<RunId> {
        find_rival(&self.runs(), tenant, run)
    }

    pub(super) fn update(&self, tenant: &TenantId, run: Arc<LiveRun>) {
        let run_id = run.summary.run_id;
        self.runs().insert((tenant.clone(), run_id), run);
        self.changes.tell(run_id);
    }

    pub(super) fn close(&self, tenant: &TenantId, run_id: RunId) -> Option<Arc<LiveRun>> {
        let run = self.runs().remove(&(tenant.clone(), run_id));
        if run.is_some() {
            self.events.end(run_id);
        }
        self.changes.tell(run_id);
        run
    }

    pub(super) fn release(&self, tenant: &TenantId, run_id: RunId) {
        if self.runs().remove(&(tenant.clone(), run_id)).is_some() {
            self.events.release(run_id);
        }
        self.changes.tell(run_id);
    }

    pub(super) fn lookup(&self, tenant: &TenantId, run_id: RunId) -> Option<Arc<LiveRun>> {
        self.runs().get(&(tenant.clone(), run_id)).map(Arc::clone)
    }

    pub(super) fn lookup_by_session(&self, tenant: &TenantId, session_id: SessionId) -> Option<RunId> {
        let runs = self.runs();
        let of_session = of_tenant(&runs, tenant).find(|run| run.summary.session_id == session_id);
        of_session.map(|run| run.summary.run_id)
    }

    pub(super) fn list(&self, tenant: &TenantId) -> Vec<Arc<LiveRun>> {
        let mut runs: Vec<_> = of_tenant(&self.runs(), tenant).map(Arc::clone).collect();
        runs.reverse();
        runs
    }

    pub(super) fn all(&self) -> Vec<(TenantId, Arc<LiveRun>)> {
        let runs = self.runs();
        let owned = runs.iter().map(|((tenant, _), run)| (tenant.clone(), Arc::clone(run)));
        owned.collect()
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        // Each change is a single call of the map, so a panic elsewhere can't leave it half done.
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Board for InProcessBoard {
    fn is_shared(&self) -> bool {
        false
    }

    fn run_open<'a>(
        &'a self,
        tenant: &'a TenantId,
        run: Arc<LiveRun>,
        exclusive: bool,
    ) -> BoardFuture<'a, Result<(), RunId>> {
        Box::pin(ready(Ok(self.open(tenant, run, exclusive))))
    }

    fn run_update(&self, tenant: &TenantId, run: Arc<LiveRun>) {
        self.update(tenant, run);
    }

    fn run_close(&self, tenant: &TenantId, run_id: RunId) {
        self.close(tenant, run_id);
    }

    fn run_release(&self, tenant: &TenantId, run_id: RunId) {
        self.release(tenant, run_id);
    }

    fn run_lookup<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> BoardFuture<'a, Option<Arc<LiveRun>>> {
        Box::pin(ready(Ok(self.lookup(tenant, run_id))))
    }

    fn run_lookup_by_session<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: SessionId,
    ) -> BoardFuture<'a, Option<RunId>> {
        Box::pin(ready(Ok(self.lookup_by_session(tenant, session_id))))
    }

    fn run_list<'a>(&'a self, tenant: &'a TenantId) -> BoardFuture<'a, Vec<Arc<LiveRun>>> {
        Box::pin(ready(Ok(self.list(tenant))))
    }

    fn event_append(&self, tenant: &TenantId, event: Arc<RunEvent>) {
        let run_id = event.run_id;
        if self.events.append(tenant, event) {
            self.changes.tell(run_id);
        }
    }

    fn event_read<'a>(
        &'a self,
        tenant: &'a TenantId,
        run_id: RunId,
        after: u64,
        limit: usize,
    ) -> BoardFuture<'a, Vec<Arc<RunEvent>>> {
        let events = match self.events.read(tenant, run_id, after, limit) {
            LogReading::Known(events) | LogReading::Released(events) => events,
            LogReading::Missing => Vec::new(),
        };
        Box::pin(ready(Ok(events)))
    }

    fn event_last<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> BoardFuture<'a, u64> {
        let held = self.events.held(tenant, run_id);
        Box::pin(ready(Ok(held.map_or(0, |held| held.last))))
    }

    fn event_shared(&self, _: &TenantId, _: RunId) -> u64 {
        // There is nobody else to share them with.
        u64::MAX
    }

    fn run_change(&self, _: &TenantId, run_id: RunId) -> BoxFuture<'static, ()> {
        self.changes.wait(run_id)
    }

    fn signal_send<'a>(&'a self, tenant: &'a TenantId, run_id: RunId, signal: RunSignal) -> BoardFuture<'a, bool> {
        let is_here = self.lookup(tenant, run_id).is_some();
        let heard = self.signals.send((tenant.clone(), run_id, signal));
        Box::pin(ready(Ok(is_here && heard)))
    }

    fn signals(&self) -> BoxStream<'static, AddressedSignal> {
        self.signals.hear()
    }

    fn rate_take<'a>(&'a self, _: &'a TenantId, _: RequestRate) -> BoxFuture<'a, Option<RateStanding>> {
        Box::pin(ready(None))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}

/// Finds another run that works on the same base. One that has ended is no rival: its session, if any, is committed.
fn find_rival(runs: &Runs, tenant: &TenantId, run: &LiveRun) -> Option<RunId> {
    let base = run.summary.base_session_id?;
    let mut rivals = of_tenant(runs, tenant).map(|live| &live.summary).filter(|live| {
        live.base_session_id == Some(base) && live.run_id != run.summary.run_id && !live.status.is_terminal()
    });
    rivals.next().map(|rival| rival.run_id)
}

fn of_tenant<'a>(runs: &'a Runs, tenant: &'a TenantId) -> impl Iterator<Item = &'a Arc<LiveRun>> {
    let from = (tenant.clone(), RunId::from_uuid(uuid::Uuid::nil()));
    runs.range(from..)
        .take_while(move |((owner, _), _)| owner == tenant)
        .map(|(_, run)| run)
}
