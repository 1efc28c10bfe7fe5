//! Restores the events and the usage of earlier attempts at a run.

use std::error::Error;

use crate::run::context::RunContext;
use crate::run::work::Spent;
use store::StoreError;
use store::queue::LeasedRun;

/// The most events of one read.
const BATCH: u32 = 1_000;

/// Persists the events of earlier attempts that only the board has. Readers may have seen them,
/// and this attempt only shares its own events. Returns the number of the last event.
pub(super) async fn persist_earlier_events(ctx: &RunContext, leased: &LeasedRun) -> Result<u64, StoreError> {
    if leased.lease.is_first() {
        return Ok(0);
    }
    let (tenant, run_id) = (&leased.lease.tenant, leased.lease.run_id);
    let mut last = ctx.store.event_last(tenant, run_id).await?;
    loop {
        let events = ctx.board.event_read(tenant, run_id, last, BATCH as usize).await;
        let events = events.unwrap_or_default();
        let Some(newest) = events.last() else {
            return Ok(last);
        };
        last = newest.sequence;
        ctx.store.progress_append(&leased.lease, &[], &events).await?;
    }
}

/// Counts the steps of earlier workers from their events. No attempt continues from these
/// steps, but their cost counts.
pub(super) async fn spent_before(ctx: &RunContext, leased: &LeasedRun) -> Spent {
    let (tenant, run_id) = (&leased.lease.tenant, leased.lease.run_id);
    let mut spent = Spent::default();
    if leased.lease.is_first() {
        return spent;
    }
    let mut after = 0;
    loop {
        let events = ctx.store.event_read(tenant, run_id, after, BATCH).await;
        let events = events.unwrap_or_else(|error| {
            tracing::warn!(
                error = &error as &dyn Error,
                "what earlier workers have spent can't be read"
            );
            Vec::new()
        });
        let Some(last) = events.last() else { return spent };
        after = last.sequence;
        for event in &events {
            spent.count(&event.payload);
        }
    }
}
