//! Persists the events, usage and applied messages of active runs, concurrently with their work.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt as _, stream};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tracing::Instrument as _;

use crate::run::context::{ActiveRun, HeldLease, RunContext};
use store::{Store, StoreError};
use values::tenant::TenantId;

/// How often events, usage and applied messages are persisted.
const PERIOD: Duration = Duration::from_secs(1);
/// The number of a tenant's runs whose progress is persisted at the same time.
const AT_ONCE: usize = 8;

/// Persists the progress of runs until the last run has ended. Then drops the writes in flight,
/// since the end of a run persists the rest. Waits for each tenant separately, since large
/// events wait for their tenant's share of the processors.
pub(in crate::run) async fn persist_progress(ctx: Arc<RunContext>) {
    let mut ticks = ticks(PERIOD);
    let mut persisting = FuturesUnordered::new();
    let mut tenants = HashSet::new();
    loop {
        tokio::select! {
            () = ctx.process.tasks.ended.cancelled() => return,
            Some(tenant) = persisting.next() => {
                tenants.remove(&tenant);
            }
            _ = ticks.tick() => {
                let mut runs: HashMap<_, Vec<_>> = HashMap::new();
                for run in ctx.process.active.leased() {
                    runs.entry(run.tenant.clone()).or_default().push(run);
                }
                for (tenant, runs) in runs {
                    if tenants.insert(tenant.clone()) {
                        persisting.push(persist_all(&ctx, tenant, runs));
                    }
                }
            }
        }
    }
}

/// Persists the progress of a tenant's runs.
async fn persist_all(ctx: &RunContext, tenant: TenantId, runs: Vec<Arc<ActiveRun>>) -> TenantId {
    let persisting = stream::iter(&runs).for_each_concurrent(AT_ONCE, async |run| {
        persist(ctx, run).instrument(run.span.clone()).await;
    });
    persisting.await;
    tenant
}

/// Persists the new progress of a run. If a write fails, it is repeated later, at the latest at
/// the end of the run.
pub(in crate::run) async fn persist(ctx: &RunContext, run: &ActiveRun) {
    if let Err(error) = ctx
        .process
        .leases
        .in_time("persist progress", try_persist(ctx, run))
        .await
    {
        tracing::debug!(
            error = &error as &dyn std::error::Error,
            "the progress of a run is persisted later"
        );
    }
}

async fn try_persist(ctx: &RunContext, run: &ActiveRun) -> Result<(), StoreError> {
    if let Some(held) = &run.held_lease {
        // Persists the usage before the events. So a later attempt knows the cost of each
        // emitted step.
        persist_usage(ctx, run, held).await?;
        persist_events(&*ctx.store, held).await?;
        ctx.board.event_persisted(run.run_id, held.persisted());
        persist_applied(ctx, run).await;
    }
    Ok(())
}

/// Persists the new usage of a run, so that a later attempt counts it.
async fn persist_usage(ctx: &RunContext, run: &ActiveRun, held: &HeldLease) -> Result<(), StoreError> {
    let Some(spent) = run.spending.get().map(|control| control.spent()) else {
        return Ok(());
    };
    if spent != held.persisted_usage() && ctx.store.usage_update(&held.lease, &spent).await? {
        held.usage_persisted(spent);
    }
    Ok(())
}

/// Persists which messages a run has applied. A failed write is repeated later, at the latest
/// at the end of the run.
async fn persist_applied(ctx: &RunContext, run: &ActiveRun) {
    let Some(lease) = run.lease() else { return };
    let applied = run.inbox.unacknowledged();
    if applied.is_empty() {
        return;
    }
    match ctx.store.message_apply(lease, &applied).await {
        Ok(_) => run.inbox.acknowledged(&applied),
        Err(error) => {
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "applied messages are persisted later"
            );
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
