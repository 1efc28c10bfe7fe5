//! The number of waiting runs. Counted in the store from time to time, plus the runs that this
//! process accepts in between.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use store::{Store, StoreError};

/// How long a count of the waiting runs is used.
const COUNT_AGE: Duration = Duration::from_millis(250);

/// The last count of the waiting runs.
#[derive(Debug, Default)]
pub(in crate::run) struct QueueLength(Mutex<Option<(Instant, u64)>>);

impl QueueLength {
    /// Returns whether `max` runs wait, or more.
    pub(in crate::run) async fn has_reached(&self, max: u32, store: &dyn Store) -> Result<bool, StoreError> {
        let waiting = match self.known() {
            Some(waiting) => waiting,
            None => self.count(max, store).await?,
        };
        Ok(waiting >= u64::from(max))
    }

    async fn count(&self, max: u32, store: &dyn Store) -> Result<u64, StoreError> {
        let waiting = store.queue_length(max).await?;
        *self.0.lock() = Some((Instant::now(), waiting));
        Ok(waiting)
    }

    fn known(&self) -> Option<u64> {
        let counted = self.0.lock().filter(|(at, _)| at.elapsed() < COUNT_AGE);
        counted.map(|(_, waiting)| waiting)
    }

    /// Counts a run that this process has accepted.
    pub(in crate::run) fn add(&self) {
        if let Some((_, waiting)) = &mut *self.0.lock() {
            *waiting += 1;
        }
    }
}
