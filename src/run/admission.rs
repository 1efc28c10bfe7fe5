//! Admission: limits how many runs are active at once, in this process and per tenant. Further ones
//! get 429.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};

use super::error::Refusal;
use super::service::RunService;
use crate::limits::TenantShare;
use crate::tenant::TenantId;

/// When a refused caller may try again: short, since places become free all the time.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A place for a run at work; it is free again when this drops.
#[derive(Debug)]
pub(super) struct RunPlace {
    _permit: OwnedSemaphorePermit,
    /// Of a light run.
    _share: Option<TenantShare>,
}

impl From<OwnedSemaphorePermit> for RunPlace {
    fn from(permit: OwnedSemaphorePermit) -> Self {
        Self {
            _permit: permit,
            _share: None,
        }
    }
}

impl RunService {
    /// Takes a place for a light run.
    pub(super) fn admit(&self, tenant: &TenantId) -> Result<RunPlace, Refusal> {
        let limit = self.ports.limits.of(tenant).light_runs;
        let share = self.light_runs.take(tenant, limit);
        let share = share.ok_or_else(|| Refusal::TooManyTenantRuns {
            limit: limit.unwrap_or_default(),
            retry_after: RETRY_AFTER,
        })?;
        let permit = Arc::clone(&self.permits)
            .try_acquire_owned()
            .map_err(|error| match error {
                TryAcquireError::NoPermits => Refusal::TooManyRuns {
                    limit: self.settings.max_concurrent,
                    retry_after: RETRY_AFTER,
                },
                TryAcquireError::Closed => Refusal::ShuttingDown,
            })?;
        Ok(RunPlace {
            _permit: permit,
            _share: Some(share),
        })
    }
}
