//! The runs that are active in this process, and their control handles.
//!
//! A control handle stops, cancels, pauses or hands over a run, and gives it messages. A queued run
//! also holds its lease here (`Tenure`).

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::inbox::SteeringInbox;
use crate::agent::{ExecutionControl, RunWebhook};
use crate::ids::RunId;
use crate::record::{RunControl, RunEvent};
use crate::store::Lease;
use crate::tenant::TenantId;
use crate::usage::Usage;

/// A run at work.
#[derive(Debug)]
pub(super) struct ActiveRun {
    pub(super) tenant: TenantId,
    pub(super) run_id: RunId,
    /// Cancelled when the run shall end without a session.
    pub(super) cancellation: CancellationToken,
    /// Cancelled when the run shall end with what it has.
    pub(super) stop: CancellationToken,
    /// Messages that its model has not seen yet.
    pub(super) inbox: Arc<SteeringInbox>,
    /// What it has spent, once its work begins.
    pub(super) spending: OnceLock<Arc<ExecutionControl>>,
    /// Who hears how it ends.
    pub(super) webhook: Option<RunWebhook>,
    /// What it holds of the queue; none for a run that lives in this process only.
    pub(super) tenure: Option<Tenure>,
}

/// A lease at work.
#[derive(Debug)]
pub(super) struct Tenure {
    pub(super) lease: Lease,
    /// Whether the run's end moves its thread.
    pub(super) moves_thread: bool,
    /// By what this process is told to let go of the run.
    handover: Handover,
    /// Whether another worker has the run.
    is_lost: AtomicBool,
    /// Whether the run's end is on its way to the store, and the lease with it.
    is_ending: AtomicBool,
    /// When the lease expires unless it is renewed.
    expires: Mutex<Instant>,
    /// Events that the store has not yet.
    unkept: Mutex<Vec<Arc<RunEvent>>>,
    /// What the store knows to be spent.
    kept_usage: Mutex<Usage>,
}

/// How runs of the queue leave this process when it ends, those as well that come while it does.
#[derive(Debug, Default)]
pub(super) struct Handover {
    /// Cancelled when they shall go on elsewhere after their present step.
    pub(super) pause: CancellationToken,
    /// Cancelled when this process lets go of them at once, whatever they are doing.
    pub(super) departure: CancellationToken,
}

/// All runs at work in this process.
#[derive(Debug, Default)]
pub(super) struct ActiveRuns(Mutex<HashMap<RunId, Arc<ActiveRun>>>);

/// Keeps a run among those at work, also when its task meets a fault of ours.
#[derive(Debug)]
pub(super) struct ActiveGuard {
    runs: Arc<ActiveRuns>,
    run: Arc<ActiveRun>,
}

impl Drop for ActiveGuard {
    fn drop(&mut self) {
        let mut runs = self.runs.runs();
        // Another attempt at the same run may have begun since.
        if runs
            .get(&self.run.run_id)
            .is_some_and(|known| Arc::ptr_eq(known, &self.run))
        {
            runs.remove(&self.run.run_id);
        }
    }
}

impl ActiveRun {
    /// Takes up a run; it is cancelled when `cancellation` is.
    pub(super) fn new(
        tenant: TenantId,
        run_id: RunId,
        cancellation: &CancellationToken,
        webhook: Option<RunWebhook>,
        tenure: Option<Tenure>,
    ) -> Arc<Self> {
        Arc::new(Self {
            tenant,
            run_id,
            cancellation: cancellation.child_token(),
            stop: CancellationToken::new(),
            inbox: Arc::default(),
            spending: OnceLock::new(),
            webhook,
            tenure,
        })
    }

    /// Returns the lease under which it works.
    pub(super) fn lease(&self) -> Option<&Lease> {
        self.tenure.as_ref().map(|tenure| &tenure.lease)
    }

    /// Does what a caller wants.
    pub(super) fn control(&self, control: RunControl) {
        match control {
            RunControl::Stop => self.stop.cancel(),
            RunControl::Cancel => self.cancellation.cancel(),
        }
    }

    /// Waits until this process shall let go of the run; for ever for a run that lives here only.
    pub(super) async fn departed(&self) {
        match &self.tenure {
            Some(tenure) => tenure.handover.departure.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Returns what is cancelled when the run shall go on elsewhere after its present step; never for one that lives here only.
    pub(super) fn pause(&self) -> CancellationToken {
        let tenure = self.tenure.as_ref();
        tenure.map_or_else(CancellationToken::new, |tenure| tenure.handover.pause.clone())
    }

    /// Tells whether another worker has the run, or may have it by now.
    pub(super) fn is_lost(&self) -> bool {
        self.tenure.as_ref().is_some_and(Tenure::is_lost)
    }
}

impl Tenure {
    /// Takes up a lease that expires then. It is handed over when all of this process are.
    pub(super) fn new(
        lease: Lease,
        moves_thread: bool,
        expires: Instant,
        unkept: Vec<Arc<RunEvent>>,
        kept_usage: Usage,
        all: &Handover,
    ) -> Self {
        Self {
            unkept: Mutex::new(unkept),
            kept_usage: Mutex::new(kept_usage),
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

    /// Notes that the lease was renewed.
    pub(super) fn renewed(&self, expires: Instant) {
        *self.expires() = expires;
    }

    /// Tells whether the lease may have expired.
    pub(super) fn has_expired(&self, now: Instant) -> bool {
        *self.expires() <= now
    }

    /// Notes that the run's end is on its way to the store.
    pub(super) fn ending(&self) {
        self.is_ending.store(true, Ordering::Release);
    }

    /// Tells whether the lease may be gone with the run's end.
    pub(super) fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::Acquire)
    }

    /// Notes that another worker has the run: everything here ends at once.
    pub(super) fn lose(&self) {
        self.is_lost.store(true, Ordering::Release);
        self.handover.departure.cancel();
    }

    /// Adds an event that was told.
    pub(super) fn told(&self, event: Arc<RunEvent>) {
        self.events().push(event);
    }

    /// Returns the events that the store has not yet.
    pub(super) fn unkept(&self) -> Vec<Arc<RunEvent>> {
        self.events().clone()
    }

    /// Notes that the store has the events up to this number.
    pub(super) fn kept(&self, last: u64) {
        self.events().retain(|event| event.sequence > last);
    }

    /// Tells whether the store has the event of this number.
    pub(super) fn is_kept(&self, sequence: u64) -> bool {
        self.events().first().is_none_or(|first| sequence < first.sequence)
    }

    /// Returns what the store knows to be spent.
    pub(super) fn kept_usage(&self) -> Usage {
        *self.usage()
    }

    /// Notes what the store knows to be spent.
    pub(super) fn usage_kept(&self, usage: Usage) {
        *self.usage() = usage;
    }

    fn usage(&self) -> MutexGuard<'_, Usage> {
        // The only change is an assignment.
        self.kept_usage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn events(&self) -> MutexGuard<'_, Vec<Arc<RunEvent>>> {
        // Each change is a single call of the list.
        self.unkept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    fn expires(&self) -> MutexGuard<'_, Instant> {
        // The only change is an assignment.
        self.expires.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ActiveRuns {
    /// Adds a run until the guard is dropped. An earlier attempt of this process at the same run has lost it.
    pub(super) fn add(self: &Arc<Self>, run: &Arc<ActiveRun>) -> ActiveGuard {
        let displaced = self.runs().insert(run.run_id, Arc::clone(run));
        if let Some(tenure) = displaced.as_ref().and_then(|displaced| displaced.tenure.as_ref()) {
            tenure.lose();
        }
        ActiveGuard {
            runs: Arc::clone(self),
            run: Arc::clone(run),
        }
    }

    /// Finds a run of the tenant.
    pub(super) fn find(&self, tenant: &TenantId, run_id: RunId) -> Option<Arc<ActiveRun>> {
        let runs = self.runs();
        runs.get(&run_id).filter(|run| run.tenant == *tenant).map(Arc::clone)
    }

    /// Lists the runs that hold a lease.
    pub(super) fn leased(&self) -> Vec<Arc<ActiveRun>> {
        let runs = self.runs();
        runs.values()
            .filter(|run| run.tenure.is_some())
            .map(Arc::clone)
            .collect()
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<RunId, Arc<ActiveRun>>> {
        // Each change is a single call of the map.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
