//! Checks the store for readiness. All probes share one check per interval.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::store::{Store, StoreError};

/// How long the result of a check is used.
const INTERVAL: Duration = Duration::from_secs(1);

/// The last check of the store.
#[derive(Debug, Default)]
pub(super) struct Readiness(
    /// Locked during a check, so that concurrent callers share it.
    Mutex<Option<Check>>,
);

#[derive(Debug)]
struct Check {
    ended: Instant,
    found: Result<(), Arc<StoreError>>,
}

impl Readiness {
    /// Checks the store, or returns the result of a recent check.
    pub(super) async fn check(&self, store: &dyn Store) -> Result<(), StoreError> {
        let mut last = self.0.lock().await;
        let is_fresh = last.as_ref().is_some_and(|check| check.ended.elapsed() < INTERVAL);
        if !is_fresh {
            let found = check(store).await.map_err(Arc::new);
            let ended = Instant::now();
            *last = Some(Check { ended, found });
        }
        let found = last.as_ref().map_or(Ok(()), |check| check.found.clone());
        found.map_err(|error| StoreError::shared(&error))
    }
}

/// A full disk can be read. It shows only in a write, so an idle service writes too.
async fn check(store: &dyn Store) -> Result<(), StoreError> {
    store.health_check().await?;
    store.write_check().await
}
