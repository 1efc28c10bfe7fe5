//! The worker: leases runs while it has free slots for them.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use tokio::time::sleep;

use super::attempt::Attempts;
use super::leases::Leases;
use super::quarantine::Quarantine;
use crate::run::run_slots::{QueueSlots, RunSlot};
use crate::run::tasks::RunTasks;
use store::queue::{LeaseLimits, LeasedRun, SUSPECT_ATTEMPTS};
use store::{Outage, Store, StoreError};

/// The most runs of one lease request.
const BATCH: usize = 16;

/// Leases runs from the queue.
#[derive(Debug)]
pub struct QueueWorker {
    /// Stores the queue.
    pub store: Arc<dyn Store>,
    /// Provides the terms on which runs are leased.
    pub leases: Arc<Leases>,
    /// Slots for queued runs.
    pub slots: Arc<QueueSlots>,
    /// Isolates suspected poison runs.
    pub quarantine: Quarantine,
    /// Executes the runs.
    pub attempts: Arc<Attempts>,
    /// Runs the tasks of the attempts.
    pub tasks: RunTasks,
    /// How often the worker polls the queue without a wake-up.
    pub poll_interval: Duration,
}

impl QueueWorker {
    /// Leases runs until the shutdown begins.
    pub(in crate::run) async fn take_runs(self: Arc<Self>) {
        let mut wake_ups = self.store.queue_wake_ups();
        let taking = async {
            let mut outage = Outage::default();
            self.leases.read_time().await;
            while let Some(slot) = self.slots.take().await {
                let taken = self.take_some(slot).await;
                outage.note("no runs are taken from the queue", &taken);
                if !taken.unwrap_or_default() {
                    self.wait_for_work(&mut wake_ups).await;
                    self.leases.read_time_again().await;
                }
            }
        };
        tokio::select! {
            () = self.tasks.closing.cancelled() => (),
            () = taking => (),
        }
    }

    /// Leases up to as many runs as there are free slots. Returns whether there may be more.
    async fn take_some(self: &Arc<Self>, first: RunSlot) -> Result<bool, StoreError> {
        let more = std::iter::repeat_with(|| self.slots.try_take());
        let more = more.take(BATCH - 1).map_while(|slot| slot);
        let slots: Vec<_> = std::iter::once(first).chain(more).collect();
        self.lease_runs(slots).await
    }

    /// Leases runs in a separate task. If the caller were cancelled after the lease, the runs would
    /// stay idle until their leases expire.
    async fn lease_runs(self: &Arc<Self>, slots: Vec<RunSlot>) -> Result<bool, StoreError> {
        let worker = Arc::clone(self);
        let leasing = self.tasks.runs.spawn(async move {
            let terms = worker.leases.terms();
            let limits = LeaseLimits {
                runs: u32::try_from(slots.len()).unwrap_or(u32::MAX),
                suspects: u32::from(worker.quarantine.is_free()),
            };
            let leasing = worker.store.run_lease(&terms, limits);
            // A request that timed out may have leased runs anyway. No worker executes them, so
            // they are leased again when their leases expire.
            let leased = worker.leases.in_time("lease runs", leasing).await?;
            let is_full = leased.len() == slots.len();
            for (leased, slot) in leased.into_iter().zip(slots) {
                let isolated = is_suspect(&leased).then(|| worker.quarantine.enter());
                let attempt = Arc::clone(&worker.attempts).make(leased, terms.until, None, Some(slot));
                let attempt = Box::pin(attempt);
                worker.tasks.runs.spawn(async move {
                    attempt.await;
                    drop(isolated);
                });
            }
            Ok(is_full)
        });
        // Otherwise the task panicked.
        leasing.await.unwrap_or(Ok(false))
    }

    async fn wait_for_work(&self, wake_ups: &mut BoxStream<'static, ()>) {
        tokio::select! {
            Some(()) = wake_ups.next() => (),
            () = sleep(self.poll_interval) => (),
        }
    }
}

fn is_suspect(leased: &LeasedRun) -> bool {
    leased.summary.attempts > SUSPECT_ATTEMPTS
}
