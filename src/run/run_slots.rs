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

    /// Takes a slot for a run of the tenant.
    pub(super) fn take(&self, tenant: &TenantId) -> Result<RunSlot, Refusal> {
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

    /// Waits for a turn to plan a run for which there is no slot: its agent may queue it. Tenants
    /// share the turns, so a tenant that exceeds its limit loads few sessions at once.
    pub(super) async fn planning_turn(&self, tenant: &TenantId) -> Share {
        self.planning.take(tenant, 1).await
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
