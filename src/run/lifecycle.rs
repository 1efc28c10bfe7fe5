//! Starts the work on runs in this process, and shuts it down in order.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::control::RunController;
use super::queue::{LeaseRenewal, ProgressWriter, QueueWorker};
use super::run_slots::{LightSlots, QueueSlots};
use super::tasks::RunTasks;
use store::StoreError;
use tasks::supervision::Supervisor;

/// How long runs cancelled at shutdown may take to store their records.
const LAST_RECORDS: Duration = Duration::from_secs(5);

/// The loops that serve runs, and the shutdown.
#[derive(Debug)]
pub struct RunLifecycle {
    /// The tasks that the shutdown ends.
    pub tasks: RunTasks,
    /// Supervises the loops of this process.
    pub supervisor: Supervisor,
    /// Slots for light runs, which exist in this process only.
    pub light_slots: Arc<LightSlots>,
    /// Slots for queued runs.
    pub queue_slots: Arc<QueueSlots>,
    /// Receives control messages.
    pub controller: Arc<RunController>,
    /// Renews leases.
    pub renewal: Arc<LeaseRenewal>,
    /// Persists progress.
    pub progress: Arc<ProgressWriter>,
    /// Leases runs.
    pub worker: Arc<QueueWorker>,
}

impl RunLifecycle {
    /// Starts the loops: they receive control messages, renew leases and persist progress. If the
    /// process has slots for queued runs, it also leases runs.
    pub fn begin(&self) {
        self.supervise(
            "receive control messages",
            &self.controller,
            RunController::receive_messages,
        );
        self.supervise("renew leases", &self.renewal, LeaseRenewal::renew_leases);
        self.supervise("watch leases", &self.renewal, LeaseRenewal::watch_leases);
        self.supervise("persist progress", &self.progress, ProgressWriter::persist_progress);
        if self.takes_runs() {
            self.supervise("lease runs", &self.worker, QueueWorker::take_runs);
        }
    }

    /// Sets the clock for leases and idempotency keys to the database time. A process that leases
    /// no runs does so only once.
    pub async fn set_clock(&self) -> Result<(), StoreError> {
        self.renewal.leases.set_clock().await
    }

    fn supervise<P, L>(&self, name: &'static str, part: &Arc<P>, work: fn(Arc<P>) -> L)
    where
        P: Send + Sync + 'static,
        L: Future<Output = ()> + Send + 'static,
    {
        let part = Arc::clone(part);
        let keeping = self.supervisor.clone().keep(name, move || work(Arc::clone(&part)));
        self.tasks.background.spawn(keeping);
    }

    /// Returns whether this process leases queued runs.
    pub fn takes_runs(&self) -> bool {
        self.queue_slots.exist()
    }

    /// Returns the number of active runs.
    pub fn active_runs(&self) -> usize {
        self.light_slots.taken() + self.queue_slots.taken()
    }

    /// Shuts down in order. Accepts no more runs, and releases leased runs that have not begun.
    /// Active runs may finish within the grace period. After half of it, queued runs that persist
    /// their steps are handed over after their current step. At its end, all other queued runs are
    /// handed over, and light runs are cancelled.
    pub async fn shut_down(&self, grace: Duration) {
        let tasks = &self.tasks;
        self.light_slots.close();
        self.queue_slots.close();
        tasks.closing.cancel();
        tasks.runs.close();
        if timeout(grace / 2, tasks.runs.wait()).await.is_err() {
            tasks.handover.pause.cancel();
            if timeout(grace / 2, tasks.runs.wait()).await.is_err() {
                self.cut_runs().await;
            }
        }
        tasks.ended.cancel();
        tasks.background.close();
        if timeout(LAST_RECORDS, tasks.background.wait()).await.is_err() {
            tracing::error!("what serves runs did not end");
        }
    }

    async fn cut_runs(&self) {
        let runs = self.active_runs();
        tracing::warn!(runs, "handing back and cancelling runs that outlast the shutdown grace");
        self.tasks.cancellation.cancel();
        self.tasks.handover.departure.cancel();
        if timeout(LAST_RECORDS, self.tasks.runs.wait()).await.is_err() {
            tracing::error!(runs = self.active_runs(), "runs did not end when they were cancelled");
        }
    }
}
