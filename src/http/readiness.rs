//! Checks the store for readiness. All probes share one check per interval.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::store::{Store, StoreError};

/// How long a look counts.
const INTERVAL: Duration = Duration::from_secs(1);

/// The last look at the store.
#[derive(Debug, Default)]
pub(super) struct Readiness(
    /// Locked during a look, so that whoever asks meanwhile waits for it.
    Mutex<Option<Look>>,
);

#[derive(Debug)]
struct Look {
    ended: Instant,
    found: Result<(), Arc<StoreError>>,
}

impl Readiness {
    /// Looks at the store unless somebody has a moment ago.
    pub(super) async fn check(&self, store: &dyn Store) -> Result<(), StoreError> {
        let mut last = self.0.lock().await;
        let is_fresh = last.as_ref().is_some_and(|look| look.ended.elapsed() < INTERVAL);
        if !is_fresh {
            let found = store.health_check().await.map_err(Arc::new);
            let ended = Instant::now();
            *last = Some(Look { ended, found });
        }
        let found = last.as_ref().map_or(Ok(()), |look| look.found.clone());
        found.map_err(|error| StoreError::shared(&error))
    }
}
