//! The worker: leases runs while it has free slots for them.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use tokio::time::sleep;

use super::attempt::attempt;
use crate::run::context::{OpenSlot, RunContext};
use store::queue::{LeaseLimits, LeasedRun, SUSPECT_ATTEMPTS};
use store::{Outage, StoreError};

/// The most runs of one lease request.
const BATCH: usize = 16;

/// Leases runs until the shutdown begins.
pub(in crate::run) async fn take_runs(ctx: Arc<RunContext>) {
    let mut wake_ups = ctx.store.queue_wake_ups();
    let taking = async {
        let mut outage = Outage::default();
        ctx.process.leases.read_time(&*ctx.store).await;
        while let Some(slot) = ctx.process.queue_slots.take().await {
            let taken = take_some(&ctx, slot).await;
            outage.note("no runs are taken from the queue", &taken);
            if !taken.unwrap_or_default() {
                wait_for_work(&ctx, &mut wake_ups).await;
                ctx.process.leases.read_time_again(&*ctx.store).await;
            }
        }
    };
    tokio::select! {
        () = ctx.process.tasks.closing.cancelled() => (),
        () = taking => (),
    }
}

/// Leases up to as many runs as there are free slots. Returns whether there may be more.
async fn take_some(ctx: &Arc<RunContext>, first: OpenSlot) -> Result<bool, StoreError> {
    let more = std::iter::repeat_with(|| ctx.process.queue_slots.try_take());
    let more = more.take(BATCH - 1).map_while(|slot| slot);
    let slots: Vec<_> = std::iter::once(first).chain(more).collect();
    lease_runs(ctx, slots).await
}

/// Leases runs in a separate task. If the caller were cancelled after the lease, the runs would
/// stay idle until their leases expire.
async fn lease_runs(ctx: &Arc<RunContext>, slots: Vec<OpenSlot>) -> Result<bool, StoreError> {
    let owned = Arc::clone(ctx);
    let leasing = ctx.process.tasks.runs.spawn(async move {
        let (ctx, process) = (&owned, &owned.process);
        let terms = process.leases.terms();
        let limits = LeaseLimits {
            runs: u32::try_from(slots.len()).unwrap_or(u32::MAX),
            suspects: u32::from(process.quarantine.is_free()),
        };
        let leasing = ctx.store.run_lease(&terms, limits);
        // A request that timed out may have leased runs anyway. No worker executes them, so
        // they are leased again when their leases expire.
        let leased = process.leases.in_time("lease runs", leasing).await?;
        let is_full = leased.len() == slots.len();
        for (leased, slot) in leased.into_iter().zip(slots) {
            let isolated = is_suspect(&leased).then(|| process.quarantine.enter());
            let attempting = Box::pin(attempt(Arc::clone(ctx), leased, terms.until, None, Some(slot.begin())));
            process.tasks.runs.spawn(async move {
                attempting.await;
                drop(isolated);
            });
        }
        Ok(is_full)
    });
    // Otherwise the task panicked.
    leasing.await.unwrap_or(Ok(false))
}

async fn wait_for_work(ctx: &RunContext, wake_ups: &mut BoxStream<'static, ()>) {
    tokio::select! {
        Some(()) = wake_ups.next() => (),
        () = sleep(ctx.queue.poll_interval) => (),
    }
}

fn is_suspect(leased: &LeasedRun) -> bool {
    leased.summary.attempts > SUSPECT_ATTEMPTS
}
