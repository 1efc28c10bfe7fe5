//! Renews the leases of this process, and delivers the requests of callers to its runs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::time::{Instant, Interval, timeout};
use tracing::Instrument as _;

use super::progress::ticks;
use crate::run::context::{ActiveRun, RunContext};
use agent::record::SteeringStatus;
use store::queue::RenewedLease;
use store::{Outage, StoreError};

/// The longest time between two checks of the leases.
const PERIOD: Duration = Duration::from_secs(1);
/// The number of runs whose messages are read at the same time.
const AT_ONCE: usize = 8;

/// Renews each lease when a third of it has passed, until the last run has ended. Retries soon
/// after an error. Waits for no other work, since a lease that is renewed too late is lost.
pub(in crate::run) async fn renew_leases(ctx: Arc<RunContext>) {
    let period = ctx.process.leases.duration() / 3;
    let mut ticks = ticks(PERIOD.min(period / 4));
    let mut outage = Outage::default();
    while next_tick(&ctx, &mut ticks).await {
        let due = Instant::now() + 2 * period;
        let mut runs = ctx.process.active.leased();
        // Other workers take over runs whose leases this process has lost.
        runs.retain(|run| !run.is_lost() && run.held_lease.as_ref().is_some_and(|held| held.has_expired(due)));
        if !runs.is_empty() {
            let with_messages = renew(&ctx, &runs).await;
            outage.note("leases are not renewed", &with_messages);
            let with_messages = with_messages.unwrap_or_default();
            if !with_messages.is_empty() {
                let owned = Arc::clone(&ctx);
                let delivering = async move { deliver_messages(&owned, &with_messages).await };
                ctx.process.tasks.background.spawn(delivering);
            }
        }
    }
}

/// Aborts runs whose leases are about to expire, until the last run has ended. Waits only for
/// the clock, so that this worker stops before another one can take a run over.
pub(in crate::run) async fn watch_leases(ctx: Arc<RunContext>) {
    let period = PERIOD.min(ctx.process.leases.duration() / 10);
    let mut ticks = ticks(period);
    while next_tick(&ctx, &mut ticks).await {
        let next = Instant::now() + period;
        for run in ctx.process.active.leased().iter().filter(|run| !run.is_lost()) {
            if let Some(held) = &run.held_lease
                && held.has_expired(next)
            {
                run.span
                    .in_scope(|| tracing::warn!("a run is left: its lease could not be renewed"));
                held.lose();
            }
        }
    }
}

async fn next_tick(ctx: &RunContext, ticks: &mut Interval) -> bool {
    tokio::select! {
        () = ctx.process.tasks.ended.cancelled() => false,
        _ = ticks.tick() => true,
    }
}

/// Renews the leases of active runs. Stops or cancels runs as their callers requested. Aborts
/// runs whose leases are lost. Returns the runs that have new messages.
pub(in crate::run) async fn renew(
    ctx: &RunContext,
    runs: &[Arc<ActiveRun>],
) -> Result<Vec<Arc<ActiveRun>>, StoreError> {
    let leases: Vec<_> = runs.iter().filter_map(|run| run.lease().cloned()).collect();
    let renewing = async {
        ctx.process.leases.read_time(&*ctx.store).await;
        let until = ctx.process.leases.terms().until;
        let renewed = ctx.store.lease_renew(&leases, until).await?;
        Ok::<_, StoreError>((renewed, ctx.process.leases.instant_of(until)))
    };
    let (renewed, expires) = ctx.process.leases.in_time("renew leases", renewing).await?;
    let renewed: HashMap<_, _> = renewed.iter().map(|renewed| (renewed.lease.run_id, renewed)).collect();
    let mut with_messages = Vec::new();
    for run in runs {
        let renewed = renewed.get(&run.run_id).copied();
        let renewed = renewed.filter(|renewed| Some(&renewed.lease) == run.lease());
        note_renewal(run, renewed, expires);
        with_messages.extend(renewed.filter(|renewed| renewed.has_messages).map(|_| Arc::clone(run)));
    }
    Ok(with_messages)
}

/// Delivers stored messages to runs. If a read fails, it is repeated at the next renewal of the
/// lease.
pub(in crate::run) async fn deliver_messages(ctx: &RunContext, runs: &[Arc<ActiveRun>]) {
    let delivering = stream::iter(runs).for_each_concurrent(AT_ONCE, async |run| {
        if let Err(error) = fetch_messages(ctx, run).instrument(run.span.clone()).await {
            let _in_run = run.span.enter();
            tracing::debug!(
                error = &error as &dyn std::error::Error,
                "messages to a run are read later"
            );
        }
    });
    if timeout(ctx.process.leases.patience(), delivering).await.is_err() {
        tracing::debug!("reading messages to runs timed out");
    }
}

/// Delivers stored messages to a run: all of them at first, and later only messages that are not
/// applied yet.
async fn fetch_messages(ctx: &RunContext, active: &ActiveRun) -> Result<(), StoreError> {
    let (store, inbox) = (&ctx.store, &active.inbox);
    let waiting = if inbox.is_filled() {
        store.waiting_message_list(&active.tenant, active.run_id).await?
    } else {
        let messages = store.run_message_list(&active.tenant, active.run_id).await?;
        // Includes applied messages, since a run that restarts must apply them again.
        let waiting = messages
            .into_iter()
            .filter(|message| message.status != SteeringStatus::TooLate);
        waiting.map(|message| message.message).collect()
    };
    for message in waiting {
        // Never fails: the store has the same limits as the inbox.
        inbox.add(message);
    }
    inbox.filled();
    Ok(())
}

/// Applies the result of a renewal to a run.
fn note_renewal(run: &ActiveRun, renewed: Option<&RenewedLease>, expires: Instant) {
    let Some(held) = &run.held_lease else { return };
    let _in_run = run.span.enter();
    let Some(renewed) = renewed else {
        // A run that is ending may already have given up its lease.
        if !held.is_ending() {
            tracing::warn!("another worker has taken a run over");
            held.lose();
        }
        return;
    };
    if renewed.is_prolonged {
        held.renewed(expires);
    } else {
        tracing::debug!("a lease is renewed later: its run is being changed");
    }
    if let Some(control) = renewed.control {
        run.control(control);
    }
}
