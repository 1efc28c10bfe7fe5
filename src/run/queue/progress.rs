//! Persists the events, usage and applied messages of active runs, concurrently with their work.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt as _, stream};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tracing::Instrument as _;

use super::leases::Leases;
use crate::run::active::{ActiveRun, ActiveRuns, HeldLease};
use crate::run::tasks::RunTasks;
use board::Board;
use store::{Store, StoreError};
use values::tenant::TenantId;

/// How often events, usage and applied messages are persisted.
const PERIOD: Duration = Duration::from_secs(1);
/// The number of a tenant's runs whose progress is persisted at the same time.
const AT_ONCE: usize = 8;

/// Persists the progress of runs.
#[derive(Debug)]
pub struct ProgressWriter {
    /// Stores the progress.
    pub store: Arc<dyn Store>,
    /// Bounds the time of a write.
    pub leases: Arc<Leases>,
    /// The active runs of this process.
    pub active: Arc<ActiveRuns>,
    /// Is notified of persisted events, since its readers get only these.
    pub board: Arc<Board>,
    /// Tells when the last run has ended.
    pub tasks: RunTasks,
}

impl ProgressWriter {
    /// Persists the progress of runs until the last run has ended. Then drops the writes in flight,
    /// since the end of a run persists the rest. Waits for each tenant separately, since large
    /// events wait for their tenant's share of the processors.
    pub(in crate::run) async fn persist_progress(self: Arc<Self>) {
        let mut ticks = ticks(PERIOD);
        let mut persisting = FuturesUnordered::new();
        let mut tenants = HashSet::new();
        loop {
            tokio::select! {
                () = self.tasks.ended.cancelled() => return,
                Some(tenant) = persisting.next() => {
                    tenants.remove(&tenant);
                }
                _ = ticks.tick() => {
                    let mut runs: HashMap<_, Vec<_>> = HashMap::new();
                    for run in self.active.leased() {
                        runs.entry(run.tenant.clone()).or_default().push(run);
                    }
                    for (tenant, runs) in runs {
                        if tenants.insert(tenant.clone()) {
                            persisting.push(self.persist_all(tenant, runs));
                        }
                    }
                }
            }
        }
    }

    /// Persists the progress of a tenant's runs.
    async fn persist_all(&self, tenant: TenantId, runs: Vec<Arc<ActiveRun>>) -> TenantId {
        let persisting = stream::iter(&runs).for_each_concurrent(AT_ONCE, async |run| {
            self.persist(run).instrument(run.span.clone()).await;
        });
        persisting.await;
        tenant
    }

    /// Persists the new progress of a run. If a write fails, it is repeated later, at the latest at
    /// the end of the run.
    pub(in crate::run) async fn persist(&self, run: &ActiveRun) {
        if let Err(error) = self.leases.in_time("persist progress", self.try_persist(run)).await {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "the progress of a run is persisted later"
            );
        }
    }

    async fn try_persist(&self, run: &ActiveRun) -> Result<(), StoreError> {
        if let Some(held) = &run.held_lease {
            // Persists the usage before the events. So a later attempt knows the cost of each
            // emitted step.
            self.persist_usage(run, held).await?;
            persist_events(&*self.store, held).await?;
            self.board.event_persisted(run.run_id, held.persisted());
            self.persist_applied(run).await;
        }
        Ok(())
    }

    /// Persists the new usage of a run, so that a later attempt counts it.
    async fn persist_usage(&self, run: &ActiveRun, held: &HeldLease) -> Result<(), StoreError> {
        let Some(spent) = run.spending.get().map(|control| control.spent()) else {
            return Ok(());
        };
        if spent != held.persisted_usage() && self.store.usage_update(&held.lease, &spent).await? {
            held.usage_persisted(spent);
        }
        Ok(())
    }

    /// Persists which messages a run has applied. A failed write is repeated later, at the latest
    /// at the end of the run.
    async fn persist_applied(&self, run: &ActiveRun) {
        let Some(lease) = run.lease() else { return };
        let applied = run.inbox.unacknowledged();
        if applied.is_empty() {
            return;
        }
        match self.store.message_apply(lease, &applied).await {
            Ok(_) => run.inbox.acknowledged(&applied),
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "applied messages are persisted later"
                );
            }
        }
    }
}

/// Persists the events that are not persisted yet.
async fn persist_events(store: &dyn Store, held: &HeldLease) -> Result<(), StoreError> {
    let events = held.unpersisted();
    if let Some(last) = events.last().map(|event| event.sequence)
        && store.progress_append(&held.lease, &[], &events).await?
    {
        held.persisted_up_to(last);
    }
    Ok(())
}

/// Ticks at once, and then once per period. After a late tick, the next one is a full period later.
pub(super) fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
