//! The active runs of this process. Each has a control handle to stop, cancel or steer it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::inbox::SteeringInbox;
use crate::metrics::{Metrics, RunKind};
use crate::spans::RunTrace;
use agent::ports::RunWebhook;
use agent::record::{RunControl, RunEvent};
use agent::{ExecutionControl, Reservation};
use store::queue::Lease;
use values::ids::RunId;
use values::tenant::TenantId;
use values::usage::Usage;

/// The control handle of an active run.
#[derive(Debug)]
pub(in crate::run) struct ActiveRun {
    pub(in crate::run) tenant: TenantId,
    pub(in crate::run) run_id: RunId,
    /// Cancelled to end the run without a session.
    pub(in crate::run) cancellation: CancellationToken,
    /// Cancelled to end the run early and publish its session so far.
    pub(in crate::run) stop: CancellationToken,
    /// Messages that the model has not received yet.
    pub(in crate::run) inbox: Arc<SteeringInbox>,
    /// The limits and the usage of the execution; set when the execution begins.
    pub(in crate::run) spending: OnceLock<Arc<ExecutionControl>>,
    /// What the run has reserved, if limits of spending count it; set before the execution begins.
    pub(in crate::run) reservation: OnceLock<Arc<Reservation>>,
    /// The webhook that receives the end of the run.
    pub(in crate::run) webhook: Option<RunWebhook>,
    /// The lease of the run; `None` for a light run, which exists in this process only.
    pub(in crate::run) held_lease: Option<HeldLease>,
    /// The span of all log lines of the run.
    pub(in crate::run) span: Span,
    /// The spans that are sent to a collector; `None` if the run is not recorded.
    pub(in crate::run) trace: Option<Arc<RunTrace>>,
    /// When a reader of its events was last known.
    read_at: Mutex<Instant>,
}

/// Where an attempt at a run is recorded.
#[derive(Debug)]
pub(in crate::run) struct Recording {
    /// The span of all log lines of the run.
    pub(in crate::run) span: Span,
    /// The spans that are sent to a collector; `None` if the run is not recorded.
    pub(in crate::run) trace: Option<Arc<RunTrace>>,
}

/// The lease of an active run.
#[derive(Debug)]
pub(in crate::run) struct HeldLease {
    pub(in crate::run) lease: Lease,
    /// Whether the run moves its thread when it ends.
    pub(in crate::run) moves_thread: bool,
    /// Tokens that hand the run over to another process.
    handover: Handover,
    /// Whether another worker has the lease.
    is_lost: AtomicBool,
    /// Whether the end of the run is being stored. This also ends the lease.
    is_ending: AtomicBool,
    /// When the lease expires unless it is renewed.
    expires: Mutex<Instant>,
    /// Events that are not persisted yet.
    unpersisted: Mutex<Vec<Arc<RunEvent>>>,
    /// The number of the last event that is persisted.
    persisted: AtomicU64,
    /// The usage that was persisted last.
    persisted_usage: Mutex<Usage>,
    metrics: Option<Arc<Metrics>>,
}

/// Hands queued runs over to other processes at shutdown, including runs that are leased during the
/// shutdown.
#[derive(Debug, Clone, Default)]
pub(in crate::run) struct Handover {
    /// Cancelled to hand runs over after their current step.
    pub(in crate::run) pause: CancellationToken,
    /// Cancelled to hand runs over at once.
    pub(in crate::run) departure: CancellationToken,
}

/// All active runs of this process.
#[derive(Debug, Default)]
pub(in crate::run) struct ActiveRuns(Mutex<HashMap<RunId, Arc<ActiveRun>>>);

/// Registers a run as active until it is dropped, also if the task of the run panics.
#[derive(Debug)]
pub(in crate::run) struct ActiveGuard {
    runs: Arc<ActiveRuns>,
    run: Arc<ActiveRun>,
}

impl Drop for ActiveGuard {
    fn drop(&mut self) {
        let mut runs = self.runs.0.lock();
        // Another attempt at the same run may have replaced this one.
        if runs
            .get(&self.run.run_id)
            .is_some_and(|known| Arc::ptr_eq(known, &self.run))
        {
            runs.remove(&self.run.run_id);
        }
    }
}

impl ActiveRun {
    /// Creates the control handle of a run. A cancellation of `cancellation` cancels the run.
    pub(in crate::run) fn new(
        tenant: TenantId,
        run_id: RunId,
        cancellation: &CancellationToken,
        webhook: Option<RunWebhook>,
        held_lease: Option<HeldLease>,
        Recording { span, trace }: Recording,
    ) -> Arc<Self> {
        Arc::new(Self {
            tenant,
            run_id,
            cancellation: cancellation.child_token(),
            stop: CancellationToken::new(),
            inbox: Arc::default(),
            spending: OnceLock::new(),
            reservation: OnceLock::new(),
            webhook,
            held_lease,
            span,
            trace,
            read_at: Mutex::new(Instant::now()),
        })
    }

    /// Returns the lease of the run.
    pub(in crate::run) fn lease(&self) -> Option<&Lease> {
        self.held_lease.as_ref().map(|held| &held.lease)
    }

    /// Returns how the run is executed.
    pub(in crate::run) fn kind(&self) -> RunKind {
        match &self.held_lease {
            Some(_) => RunKind::Queued,
            None => RunKind::Light,
        }
    }

    /// Stops or cancels the run.
    pub(in crate::run) fn control(&self, control: RunControl) {
        match control {
            RunControl::Stop => self.stop.cancel(),
            RunControl::Cancel => self.cancellation.cancel(),
        }
    }

    /// Returns whether somebody has stopped or cancelled the run.
    pub(in crate::run) fn is_ending(&self) -> bool {
        self.stop.is_cancelled() || self.cancellation.is_cancelled()
    }

    /// Records that a reader of the events is there, or was until now.
    pub(in crate::run) fn note_reader(&self) {
        *self.read_at.lock() = Instant::now();
    }

    /// Returns when a reader of the events was last known; at first, when the attempt began.
    pub(in crate::run) fn last_read(&self) -> Instant {
        *self.read_at.lock()
    }

    /// Waits until this process must hand the run over at once. Never resolves for a light run.
    pub(in crate::run) async fn departed(&self) {
        match &self.held_lease {
            Some(held) => held.handover.departure.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Returns the token that hands the run over after its current step. The token of a light run
    /// is never cancelled.
    pub(in crate::run) fn pause(&self) -> CancellationToken {
        let held = self.held_lease.as_ref();
        held.map_or_else(CancellationToken::new, |held| held.handover.pause.clone())
    }

    /// Returns whether another worker has the run, or may have it by now.
    pub(in crate::run) fn is_lost(&self) -> bool {
        self.held_lease.as_ref().is_some_and(HeldLease::is_lost)
    }
}

impl HeldLease {
    /// Creates a held lease that expires at the given time. `handover` is shared by all leases of
    /// this process.
    pub(in crate::run) fn new(
        lease: Lease,
        moves_thread: bool,
        expires: Instant,
        persisted_usage: Usage,
        all: &Handover,
        metrics: Option<Arc<Metrics>>,
    ) -> Self {
        Self {
            metrics,
            unpersisted: Mutex::default(),
            persisted: AtomicU64::default(),
            persisted_usage: Mutex::new(persisted_usage),
            lease,
            moves_thread,
            handover: Handover {
                pause: all.pause.child_token(),
                departure: all.departure.child_token(),
            },
            is_lost: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
            expires: Mutex::new(expires),
        }
    }

    /// Records that the lease was renewed.
    pub(in crate::run) fn renewed(&self, expires: Instant) {
        *self.expires.lock() = expires;
    }

    /// Returns whether the lease may have expired.
    pub(in crate::run) fn has_expired(&self, now: Instant) -> bool {
        *self.expires.lock() <= now
    }

    /// Records that the run's end is being stored.
    pub(in crate::run) fn ending(&self) {
        self.is_ending.store(true, Ordering::Release);
    }

    /// Returns whether the run's end may have ended the lease.
    pub(in crate::run) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }

    /// Records that another worker has taken the run over. Ends all work on the run here at once.
    pub(in crate::run) fn lose(&self) {
        let is_first = !self.is_lost.swap(true, Ordering::AcqRel);
        if let Some(metrics) = self.metrics.as_ref().filter(|_| is_first) {
            metrics.runs.lease_lost();
        }
        self.handover.departure.cancel();
    }

    /// Adds an emitted event, which is not persisted yet.
    pub(in crate::run) fn emitted(&self, event: Arc<RunEvent>) {
        self.unpersisted.lock().push(event);
    }

    /// Returns the events that are not persisted yet.
    pub(in crate::run) fn unpersisted(&self) -> Vec<Arc<RunEvent>> {
        self.unpersisted.lock().clone()
    }

    /// Records that the events up to this number are persisted.
    pub(in crate::run) fn persisted_up_to(&self, last: u64) {
        self.unpersisted.lock().retain(|event| event.sequence > last);
        self.persisted.store(last, Ordering::Release);
    }

    /// Returns the number of the last event of this attempt that is persisted; 0 when none is.
    pub(in crate::run) fn persisted(&self) -> u64 {
        self.persisted.load(Ordering::Acquire)
    }

    /// Returns the usage that was persisted last.
    pub(in crate::run) fn persisted_usage(&self) -> Usage {
        *self.persisted_usage.lock()
    }

    /// Records that this usage is persisted.
    pub(in crate::run) fn usage_persisted(&self, usage: Usage) {
        *self.persisted_usage.lock() = usage;
    }

    fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }
}

impl ActiveRuns {
    /// Returns the runs that have reserved spending.
    pub(in crate::run) fn reserved(&self) -> Vec<(TenantId, RunId)> {
        let runs = self.0.lock();
        let reserved = runs.values().filter(|run| run.reservation.get().is_some());
        reserved.map(|run| (run.tenant.clone(), run.run_id)).collect()
    }

    /// Adds a run until the guard is dropped. An earlier attempt of this process at the same run
    /// loses the run.
    pub(in crate::run) fn add(self: &Arc<Self>, run: &Arc<ActiveRun>) -> ActiveGuard {
        let displaced = self.0.lock().insert(run.run_id, Arc::clone(run));
        if let Some(held) = displaced.as_ref().and_then(|displaced| displaced.held_lease.as_ref()) {
            held.lose();
        }
        ActiveGuard {
            runs: Arc::clone(self),
            run: Arc::clone(run),
        }
    }

    /// Finds a run of the tenant.
    pub(in crate::run) fn find(&self, tenant: &TenantId, run_id: RunId) -> Option<Arc<ActiveRun>> {
        let runs = self.0.lock();
        runs.get(&run_id).filter(|run| run.tenant == *tenant).map(Arc::clone)
    }

    /// Lists the runs that hold a lease.
    pub(in crate::run) fn leased(&self) -> Vec<Arc<ActiveRun>> {
        let runs = self.0.lock();
        runs.values()
            .filter(|run| run.held_lease.is_some())
            .map(Arc::clone)
            .collect()
    }
}
