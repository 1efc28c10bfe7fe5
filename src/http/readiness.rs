//! Checks the store for readiness. All probes share one check per interval.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use store::{Store, StoreError};

/// How long the result of a check is used.
const INTERVAL: Duration = Duration::from_secs(1);
/// How long after a write the store counts as writable.
const WRITE_INTERVAL: Duration = Duration::from_secs(10);

/// The last checks of the store.
#[derive(Debug, Default)]
pub(super) struct Readiness(
    /// Locked during a check, so that concurrent callers share it.
    Mutex<Checks>,
);

#[derive(Debug, Default)]
struct Checks {
    last: Option<Check>,
    /// When a write has succeeded, if none has failed since.
    written: Option<Instant>,
}

#[derive(Debug)]
struct Check {
    ended: Instant,
    found: Result<(), Arc<StoreError>>,
}

impl Readiness {
    /// Checks the store, or returns the result of a recent check.
    pub(super) async fn check(&self, store: &dyn Store) -> Result<(), StoreError> {
        let mut checks = self.0.lock().await;
        let is_fresh = checks
            .last
            .as_ref()
            .is_some_and(|check| check.ended.elapsed() < INTERVAL);
        if !is_fresh {
            let found = checks.again(store).await.map_err(Arc::new);
            let ended = Instant::now();
            checks.last = Some(Check { ended, found });
        }
        let found = checks.last.as_ref().map_or(Ok(()), |check| check.found.clone());
        found.map_err(|error| StoreError::shared(&error))
    }
}

impl Checks {
    /// A full disk can be read. It shows only in a write, so an idle service writes too.
    async fn again(&mut self, store: &dyn Store) -> Result<(), StoreError> {
        store.health_check().await?;
        let is_writable = self.written.is_some_and(|written| written.elapsed() < WRITE_INTERVAL);
        if !is_writable {
            self.written = None;
            store.write_check().await?;
            self.written = Some(Instant::now());
        }
        Ok(())
    }
}
