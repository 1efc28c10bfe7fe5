//! The time by which leases are judged: that of the database, kept between two looks by the clock of this machine.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use tokio::time::Instant;

use crate::clock::{Clock, Timestamp};
use crate::store::{Store, StoreError};

/// Tells the database's time. Replicas whose own clocks differ agree on it.
#[derive(Debug)]
pub(in crate::run) struct LeaseClock {
    clock: Arc<dyn Clock>,
    /// How far the database is ahead, in microseconds.
    ahead: AtomicI64,
    /// When that was found out.
    adjusted: Mutex<Option<Instant>>,
}

impl LeaseClock {
    /// Begins with the time of this machine.
    pub(in crate::run) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            ahead: AtomicI64::new(0),
            adjusted: Mutex::default(),
        }
    }

    /// Returns the time.
    pub(in crate::run) fn now(&self) -> Timestamp {
        self.clock.now() + TimeDelta::microseconds(self.ahead.load(Ordering::Relaxed))
    }

    /// Looks at the database's clock. What it shows is taken for the time of the question, so this clock is never ahead of it.
    pub(in crate::run) async fn adjust(&self, store: &dyn Store) -> Result<(), StoreError> {
        let time = store.lease_time().await?;
        let ahead = (time - self.clock.now()).num_microseconds().unwrap_or_default();
        self.ahead.store(ahead, Ordering::Relaxed);
        *self.adjusted() = Some(Instant::now());
        Ok(())
    }

    /// Tells whether the last look at the database's clock is that long ago.
    pub(in crate::run) fn is_older_than(&self, age: Duration) -> bool {
        self.adjusted().is_none_or(|adjusted| adjusted.elapsed() >= age)
    }

    fn adjusted(&self) -> MutexGuard<'_, Option<Instant>> {
        // The only change is an assignment.
        self.adjusted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
