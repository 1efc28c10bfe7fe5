//! The board of a service that runs alone: a map in memory.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;

use super::{Board, BoardFuture, LiveRun};
use crate::ids::{RunId, SessionId};
use crate::tenant::TenantId;

/// Keeps live runs in memory. No operation fails.
#[derive(Debug, Default)]
pub struct InProcessBoard {
    runs: Mutex<Runs>,
}

type Runs = BTreeMap<(TenantId, RunId), Arc<LiveRun>>;

impl InProcessBoard {
    pub(super) fn open(&self, tenant: &TenantId, run: Arc<LiveRun>, exclusive: bool) -> Result<(), RunId> {
        let mut runs = self.runs();
        if exclusive && let Some(rival) = find_rival(&runs, tenant, &run) {
            return Err(rival);
        }
        runs.insert((tenant.clone(), run.summary.run_id), run);
        Ok(())
    }

    pub(super) fn rival(&self, tenant: &TenantId, run: &LiveRun) -> Option<RunId> {
        find_rival(&self.runs(), tenant, run)
    }

    pub(super) fn update(&self, tenant: &TenantId, run: Arc<LiveRun>) {
        self.runs().insert((tenant.clone(), run.summary.run_id), run);
    }

    pub(super) fn close(&self, tenant: &TenantId, run_id: RunId) -> Option<Arc<LiveRun>> {
        self.runs().remove(&(tenant.clone(), run_id))
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
