//! Beside the work: persists what the runs of this process have emitted, used and applied.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt as _, stream};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tracing::Instrument as _;

use super::leases::Leases;
use crate::board::Board;
use crate::run::active::{ActiveRun, ActiveRuns, HeldLease};
use crate::run::tasks::RunTasks;
use crate::store::{Store, StoreError};
use crate::tenant::TenantId;

/// How often events, usage and applied messages are persisted.
const PERIOD: Duration = Duration::from_secs(1);
/// For how many runs of a tenant they are persisted at the same time.
const AT_ONCE: usize = 8;

/// Persists the progress of runs.
#[derive(Debug)]
pub struct ProgressWriter {
    /// Holds it.
    pub store: Arc<dyn Store>,
    /// Says how long a write may take.
    pub leases: Arc<Leases>,
    /// The runs at work here.
    pub active: Arc<ActiveRuns>,
    /// Hears which events are persisted: its readers get those.
    pub board: Arc<Board>,
    /// Says when the last run has ended.
    pub tasks: RunTasks,
}

impl ProgressWriter {
    /// Persists what runs have emitted, used and applied, until the last run has ended. It then
    /// drops what is in flight: the end of a run persists the rest. Each tenant is waited for by
    /// itself: large events wait for the processors of their tenant.
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

    /// Persists what the runs of a tenant have emitted, used and applied.
    async fn persist_all(&self, tenant: TenantId, runs: Vec<Arc<ActiveRun>>) -> TenantId {
        let persisting = stream::iter(&runs).for_each_concurrent(AT_ONCE, async |run| {
            self.persist(run).instrument(run.span.clone()).await;
        });
        persisting.await;
        tenant
    }

    /// Persists what a run has emitted, used and applied since the last time. What fails now is
    /// persisted later, at the latest with its end.
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
            // Before the events, so that no step is emitted whose cost a later attempt does not
            // know.
            self.persist_usage(run, held).await?;
            persist_events(&*self.store, held).await?;
            self.board.event_persisted(run.run_id, held.persisted());
            self.persist_applied(run).await;
        }
        Ok(())
    }

    /// Persists what a run has used since the last time. A later attempt counts it.
    async fn persist_usage(&self, run: &ActiveRun, held: &HeldLease) -> Result<(), StoreError> {
        let Some(spent) = run.spending.get().map(|control| control.spent()) else {
            return Ok(());
        };
        if spent != held.persisted_usage() && self.store.usage_update(&held.lease, &spent).await? {
            held.usage_persisted(spent);
        }
        Ok(())
    }

    /// Persists which messages a run has applied. A failure is made up for later, at the latest
    /// with the run's end.
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
pub(super) async fn persist_events(store: &dyn Store, held: &HeldLease) -> Result<(), StoreError> {
    let events = held.unpersisted();
    if let Some(last) = events.last().map(|event| event.sequence)
        && store.event_append(&held.lease, &events).await?
    {
        held.persisted_up_to(last);
    }
    Ok(())
}

/// Ticks at once, and then once a period. A late tick does not make others come sooner.
pub(super) fn ticks(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
