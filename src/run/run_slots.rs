//! Slots for runs at work: only so many light runs at once, in all and of each tenant, and only so
//! many runs of the queue.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use super::error::Refusal;
use crate::fair_share::{FairShare, Share};
use crate::limits::{Limits, TenantShare, TenantShares};
use crate::tenant::TenantId;

/// When a refused caller may try again. Short, since slots become free all the time.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How many runs without a slot are planned at once.
const MAX_PLANS: usize = 8;

/// The slot of a run at work. It becomes free when this drops.
#[derive(Debug)]
pub(super) struct RunSlot {
    _permit: OwnedSemaphorePermit,
    /// The share of the tenant, for a light run.
    _share: Option<TenantShare>,
}

/// A turn to plan a run for which there is no slot. Tenants share the turns, so a tenant that
/// exceeds its limit loads few sessions at once.
#[derive(Debug)]
pub(super) struct PlanningTurn {
    /// Why the run may not begin, unless its agent queues it.
    pub(super) refusal: Refusal,
    _turn: Share,
}

/// Slots for runs that live in this process only.
#[derive(Debug)]
pub struct LightSlots {
    permits: Arc<Semaphore>,
    /// The light runs of each tenant.
    shares: Arc<TenantShares>,
    /// Turns to plan runs for which there is no slot.
    planning: Arc<FairShare>,
    limits: Arc<Limits>,
    max: usize,
}

/// Slots for runs of the queue.
#[derive(Debug)]
pub struct QueueSlots {
    permits: Arc<Semaphore>,
    max: usize,
}

impl LightSlots {
    /// Makes slots for at most so many runs, within the limits of tenants.
    pub fn new(max: usize, limits: &Arc<Limits>) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(max)),
            shares: Arc::default(),
            planning: FairShare::new(MAX_PLANS),
            limits: Arc::clone(limits),
            max,
        }
    }

    /// Takes a slot for a run of the tenant. If none is free, waits for a turn to plan the run
    /// without one, since its agent may queue it.
    pub(super) async fn reserve(&self, tenant: &TenantId) -> Result<RunSlot, PlanningTurn> {
        match self.take(tenant) {
            Ok(slot) => Ok(slot),
            Err(refusal) => Err(PlanningTurn {
                refusal,
                _turn: self.planning.take(tenant, 1).await,
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
        })
    }

    /// Returns the number of slots that are taken.
    pub(super) fn taken(&self) -> usize {
        self.max.saturating_sub(self.permits.available_permits())
    }

    /// Gives out no more slots.
    pub(super) fn close(&self) {
        self.permits.close();
    }
}

impl QueueSlots {
    /// Makes slots for at most so many runs. A process with none accepts runs and leaves them to
    /// others.
    pub fn new(max: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(max)),
            max,
        }
    }

    /// Tells whether this process has any slot, free or not.
    pub(super) fn exist(&self) -> bool {
        self.max > 0
    }

    /// Waits for a slot. Returns `None` once they are closed.
    pub(super) async fn take(&self) -> Option<RunSlot> {
        Arc::clone(&self.permits)
            .acquire_owned()
            .await
            .ok()
            .map(RunSlot::queued)
    }

    /// Takes a slot if one is free.
    pub(super) fn try_take(&self) -> Option<RunSlot> {
        Arc::clone(&self.permits).try_acquire_owned().ok().map(RunSlot::queued)
    }

    /// Returns the number of slots that are taken.
    pub(super) fn taken(&self) -> usize {
        self.max.saturating_sub(self.permits.available_permits())
    }

    /// Gives out no more slots.
    pub(super) fn close(&self) {
        self.permits.close();
    }
}

impl RunSlot {
    fn queued(permit: OwnedSemaphorePermit) -> Self {
        Self {
            _permit: permit,
            _share: None,
        }
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
        let mut turns = Vec::new();
        waiting.retain_mut(|reserving| {
            let reserved = reserving.now_or_never();
            let waits = reserved.is_none();
            turns.extend(reserved.map(Result::unwrap_err));
            waits
        });
        assert_eq!((turns.len(), waiting.len()), (MAX_PLANS, tenants.len() - MAX_PLANS));
        // A turn says what a run is refused with that only this process could execute.
        assert!(matches!(turns[0].refusal, Refusal::TooManyRuns { limit: 1, .. }));
        drop((turns, slot));
        assert!((&mut waiting[0]).now_or_never().is_some());
        // One that comes now finds the slot free.
        assert!(slots.reserve(&tenants[0]).now_or_never().unwrap().is_ok());
    }
}
