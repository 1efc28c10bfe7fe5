//! Begins the work on runs in this process, and shuts it down in order.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::context::RunContext;
use super::control::receive_messages;
use super::queue::{persist_progress, renew_leases, take_runs, watch_leases};
use super::spend::keep_reservations;
use store::StoreError;

/// How long runs cancelled at shutdown may take to store their records.
const LAST_RECORDS: Duration = Duration::from_secs(5);

/// Starts the loops: they receive control messages, renew leases and persist progress. If the
/// process has slots for queued runs, it also leases runs.
pub fn begin(ctx: &Arc<RunContext>) {
    supervise(ctx, "receive control messages", receive_messages);
    supervise(ctx, "renew leases", renew_leases);
    supervise(ctx, "watch leases", watch_leases);
    supervise(ctx, "persist progress", persist_progress);
    supervise(ctx, "keep reservations", keep_reservations);
    if takes_runs(ctx) {
        supervise(ctx, "lease runs", take_runs);
    }
}

/// Sets the clock for leases and idempotency keys to the database time. A process that leases no
/// runs does so only once.
pub async fn set_clock(ctx: &RunContext) -> Result<(), StoreError> {
    ctx.process.leases.set_clock(&*ctx.store).await
}

fn supervise<L>(ctx: &Arc<RunContext>, name: &'static str, work: fn(Arc<RunContext>) -> L)
where
    L: Future<Output = ()> + Send + 'static,
{
    let owned = Arc::clone(ctx);
    let keeping = ctx.supervisor.clone().keep(name, move || work(Arc::clone(&owned)));
    ctx.process.tasks.background.spawn(keeping);
}

/// Returns whether this process leases queued runs.
pub fn takes_runs(ctx: &RunContext) -> bool {
    ctx.process.queue_slots.exist()
}

/// Returns the number of light and of queued runs in progress.
pub fn runs_in_progress(ctx: &RunContext) -> (usize, usize) {
    (ctx.process.light_slots.runs(), ctx.process.queue_slots.runs())
}

/// Returns the number of active runs.
pub fn active_runs(ctx: &RunContext) -> usize {
    let (light, queued) = runs_in_progress(ctx);
    light + queued
}

/// Shuts down in order. Accepts no more runs, and releases leased runs that have not begun. Active
/// runs may finish within the grace period. After half of it, queued runs that persist their steps
/// are handed over after their current step. At its end, all other queued runs are handed over, and
/// light runs are cancelled.
pub async fn shut_down(ctx: &RunContext, grace: Duration) {
    let tasks = &ctx.process.tasks;
    ctx.process.light_slots.close();
    ctx.process.queue_slots.close();
    tasks.closing.cancel();
    tasks.runs.close();
    if timeout(grace / 2, tasks.runs.wait()).await.is_err() {
        tasks.handover.pause.cancel();
        if timeout(grace / 2, tasks.runs.wait()).await.is_err() {
            cut_runs(ctx).await;
        }
    }
    tasks.ended.cancel();
    tasks.background.close();
    if timeout(LAST_RECORDS, tasks.background.wait()).await.is_err() {
        tracing::error!("what serves runs did not end");
    }
}

async fn cut_runs(ctx: &RunContext) {
    let (tasks, runs) = (&ctx.process.tasks, active_runs(ctx));
    tracing::warn!(runs, "handing back and cancelling runs that outlast the shutdown grace");
    tasks.cancellation.cancel();
    tasks.handover.departure.cancel();
    if timeout(LAST_RECORDS, tasks.runs.wait()).await.is_err() {
        tracing::error!(runs = active_runs(ctx), "runs did not end when they were cancelled");
    }
}
