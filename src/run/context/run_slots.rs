//! Slots for active runs. They limit the light runs, in total and for each tenant, and the queued
//! runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use crate::run::refusal::Refusal;
use tasks::fair_share::{FairShare, Share};
use values::limits::{Limits, TenantShare, TenantShares};
use values::tenant::TenantId;

/// When a refused caller may retry. Short, since slots often become free.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// The most runs without a slot that are planned at the same time.
const MAX_PLANS: usize = 8;

/// The slot of an active run. Dropping it frees the slot.
#[derive(Debug)]
pub(in crate::run) struct RunSlot {
    _permit: OwnedSemaphorePermit,
    /// The share of the tenant, for a light run.
    _share: Option<TenantShare>,
    /// Counts a queued run.
    _counted: Option<CountedRun>,
}

/// A slot that was taken for a queued run before it is known whether there is one.
#[derive(Debug)]
pub(in crate::run) struct OpenSlot {
    permit: OwnedSemaphorePermit,
    runs: Arc<AtomicUsize>,
}

/// Counts a run until it is dropped.
#[derive(Debug)]
struct CountedRun(Arc<AtomicUsize>);

/// A permit to plan a run without a slot. Tenants share the permits, so a tenant above its limit
/// loads few sessions at the same time.
#[derive(Debug)]
pub(in crate::run) struct PlanPermit {
    /// The refusal of the run, unless its agent requires a queued run.
    pub(in crate::run) refusal: Refusal,
    _share: Share,
}

/// Slots for light runs, which exist in this process only.
#[derive(Debug)]
pub(in crate::run) struct LightSlots {
    permits: Arc<Semaphore>,
    /// The light runs of each tenant.
    shares: Arc<TenantShares>,
    /// Permits to plan runs without a slot.
    planning: Arc<FairShare>,
    limits: Arc<Limits>,
    max: usize,
}

/// Slots for queued runs.
#[derive(Debug)]
pub(in crate::run) struct QueueSlots {
    permits: Arc<Semaphore>,
    max: usize,
    /// The number of runs in the slots.
    runs: Arc<AtomicUsize>,
}

impl LightSlots {
    /// Creates slots for up to `max` runs, within the limits of tenants.
    pub(in crate::run) fn new(max: usize, limits: &Arc<Limits>) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(max)),
            shares: Arc::default(),
            planning: FairShare::new(MAX_PLANS),
            limits: Arc::clone(limits),
            max,
        }
    }

    /// Takes a slot for a run of the tenant. If none is free, waits for a permit to plan the run
    /// without a slot, since its agent may require a queued run.
    pub(in crate::run) async fn reserve(&self, tenant: &TenantId) -> Result<RunSlot, PlanPermit> {
        match self.take(tenant) {
            Ok(slot) => Ok(slot),
            Err(refusal) => Err(PlanPermit {
                refusal,
                _share: self.planning.take(tenant, 1).await,
            }),
        }
    }

    fn take(&self, tenant: &TenantId) -> Result<RunSlot, Refusal> {
        let limit = self.limits.of(tenant).light_runs;
        let share = self.shares.take(tenant, limit);
        let share = share.ok_or_else(|| Refusal::TooManyTenantRuns {
            limit: limit.unwrap_or_default(),
            retry_after: RETRY_AFTER,
        })?;
        let permit = Arc::clone(&self.permits)
            .try_acquire_owned()
            .map_err(|error| match error {
                TryAcquireError::NoPermits => Refusal::TooManyRuns {
                    limit: self.max,
                    retry_after: RETRY_AFTER,
                },
                TryAcquireError::Closed => Refusal::ShuttingDown,
            })?;
        Ok(RunSlot {
            _permit: permit,
            _share: Some(share),
            _counted: None,
        })
    }

    /// Returns the number of runs in the slots.
    pub(in crate::run) fn runs(&self) -> usize {
        self.max.saturating_sub(self.permits.available_permits())
    }

    /// Closes the slots: no more are taken.
    pub(in crate::run) fn close(&self) {
        self.permits.close();
    }
}

impl QueueSlots {
    /// Creates slots for up to `max` runs. A process without slots accepts runs and leaves them to
    /// other processes.
    pub(in crate::run) fn new(max: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(max)),
            max,
            runs: Arc::default(),
        }
    }

    /// Returns whether this process has any slot, free or not.
    pub(in crate::run) fn exist(&self) -> bool {
        self.max > 0
    }

    /// Waits for a slot. Returns `None` once the slots are closed.
    pub(in crate::run) async fn take(&self) -> Option<OpenSlot> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        permit.ok().map(|permit| self.open(permit))
    }

    /// Takes a slot if one is free.
    pub(in crate::run) fn try_take(&self) -> Option<OpenSlot> {
        let permit = Arc::clone(&self.permits).try_acquire_owned();
        permit.ok().map(|permit| self.open(permit))
    }

    fn open(&self, permit: OwnedSemaphorePermit) -> OpenSlot {
        let runs = Arc::clone(&self.runs);
        OpenSlot { permit, runs }
    }

    /// Returns the number of runs in the slots.
    pub(in crate::run) fn runs(&self) -> usize {
        self.runs.load(Ordering::Relaxed)
    }

    /// Closes the slots: no more are taken.
    pub(in crate::run) fn close(&self) {
        self.permits.close();
    }
}

impl OpenSlot {
    /// Puts a run into the slot.
    pub(in crate::run) fn begin(self) -> RunSlot {
        self.runs.fetch_add(1, Ordering::Relaxed);
        RunSlot {
            _permit: self.permit,
            _share: None,
            _counted: Some(CountedRun(self.runs)),
        }
    }
}

impl Drop for CountedRun {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn few_runs_without_a_slot_are_planned_at_once() {
        let slots = LightSlots::new(1, &Arc::default());
        let tenants: Vec<TenantId> = (0..20).map(|number| format!("t{number}").parse().unwrap()).collect();
        let slot = slots.reserve(&tenants[0]).now_or_never().unwrap().unwrap();
        let mut waiting: Vec<_> = tenants.iter().map(|tenant| Box::pin(slots.reserve(tenant))).collect();
        let mut permits = Vec::new();
        waiting.retain_mut(|reserving| {
            let reserved = reserving.now_or_never();
            let waits = reserved.is_none();
            permits.extend(reserved.map(Result::unwrap_err));
            waits
        });
        assert_eq!((permits.len(), waiting.len()), (MAX_PLANS, tenants.len() - MAX_PLANS));
        // A permit has the refusal of a light run, which only this process could execute.
        assert!(matches!(permits[0].refusal, Refusal::TooManyRuns { limit: 1, .. }));
        drop((permits, slot));
        // Callers of equal shares have no order.
        assert!(waiting.iter_mut().any(|reserving| reserving.now_or_never().is_some()));
        // A caller that arrives now finds the slot free.
        assert!(slots.reserve(&tenants[0]).now_or_never().unwrap().is_ok());
    }

    #[test]
    fn a_slot_counts_once_a_run_is_in_it() {
        let slots = QueueSlots::new(2);
        let (first, second) = (slots.try_take().unwrap(), slots.try_take().unwrap());
        // A worker that leases runs holds all free slots meanwhile.
        assert_eq!((slots.runs(), slots.try_take().is_none()), (0, true));
        let run = first.begin();
        drop(second);
        assert_eq!(slots.runs(), 1);
        drop(run);
        assert_eq!(slots.runs(), 0);
        assert!(slots.try_take().is_some());
    }
}
