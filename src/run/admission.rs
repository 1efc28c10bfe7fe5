//! Admission: only so many runs at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, TryAcquireError};

use super::error::Refusal;
use super::service::RunService;

/// When a refused caller may try again: short, since places become free all the time.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl RunService {
    /// Takes a place for a run; it is free again when the permit drops.
    pub(super) fn admit(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        Arc::clone(&self.permits)
            .try_acquire_owned()
            .map_err(|error| match error {
                TryAcquireError::NoPermits => Refusal::TooManyRuns {
                    limit: self.settings.max_concurrent,
                    retry_after: RETRY_AFTER,
                },
                TryAcquireError::Closed => Refusal::ShuttingDown,
            })
    }
}
