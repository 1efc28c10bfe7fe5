//! The terms on which this process leases runs, and the time by which leases expire.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};

use store::queue::LeaseTerms;
use store::{LeaseClock, Store, StoreError};
use values::clock::{Clock, Timestamp};
use values::ids::{IdSource, WorkerId};

/// The leases of this process.
#[derive(Debug)]
pub(in crate::run) struct Leases {
    clock: LeaseClock,
    /// The id of this process in the queue.
    worker: WorkerId,
    /// How long a lease lasts unless it is renewed.
    duration: Duration,
}

impl Leases {
    /// Begins with the time of this machine.
    pub(in crate::run) fn new(clock: Arc<dyn Clock>, ids: &dyn IdSource, duration: Duration) -> Self {
        Self {
            clock: LeaseClock::new(clock),
            worker: WorkerId::generate(ids),
            duration,
        }
    }

    /// Returns the database time.
    pub(in crate::run) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the earliest instant at which the database clock may show the given time.
    pub(in crate::run) fn instant_of(&self, time: Timestamp) -> Instant {
        self.clock.instant_of(time)
    }

    /// Returns how long a lease lasts unless it is renewed.
    pub(in crate::run) fn duration(&self) -> Duration {
        self.duration
    }

    /// Returns the terms on which this process leases runs now.
    pub(in crate::run) fn terms(&self) -> LeaseTerms {
        let now = self.now();
        LeaseTerms {
            worker: self.worker,
            now,
            until: now + self.duration,
        }
    }

    /// Returns how long an operation on leases may take before it is retried, since its connection
    /// may be dead.
    pub(in crate::run) fn patience(&self) -> Duration {
        self.duration / 3
    }

    /// Bounds an operation of the store by [`Self::patience`]. An operation that timed out may have
    /// taken effect.
    pub(in crate::run) async fn in_time<T>(
        &self,
        operation: &'static str,
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let done = timeout(self.patience(), work).await;
        done.unwrap_or_else(|elapsed| Err(StoreError::late(operation, elapsed)))
    }

    /// Names this process as an owner of leases.
    pub(in crate::run) fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Sets the clock to the database's time.
    pub(in crate::run) async fn set_clock(&self, store: &dyn Store) -> Result<(), StoreError> {
        self.clock.adjust(store).await
    }

    /// Reads the database's clock. If that fails, the next renewal of leases reads it again.
    pub(in crate::run) async fn read_time(&self, store: &dyn Store) {
        // Takes at most half of the time, so that the following operation has time for another
        // connection.
        let limit = self.patience() / 2;
        self.clock.refresh(store, Duration::ZERO, limit).await;
    }

    /// Reads the database clock unless it was read recently.
    pub(in crate::run) async fn read_time_again(&self, store: &dyn Store) {
        let age = self.patience();
        self.clock.refresh(store, age, age / 2).await;
    }
}
