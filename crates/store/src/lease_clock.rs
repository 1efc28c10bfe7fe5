//! The time by which leases expire: database time, extrapolated with the monotonic clock between
//! two reads.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use parking_lot::Mutex;
use tokio::time::{Instant, timeout};

use super::error::StoreError;
use super::traits::Store;
use values::clock::{Clock, Timestamp};

/// Returns the database's time. Replicas whose own clocks differ agree on it.
#[derive(Debug)]
pub struct LeaseClock {
    /// The clock of this machine, used until the first read of the database clock.
    clock: Arc<dyn Clock>,
    last: Mutex<Option<Reading>>,
}

/// One read of the database's clock.
#[derive(Debug, Clone, Copy)]
struct Reading {
    /// The database time, at some time between request and response.
    time: Timestamp,
    asked: Instant,
    answered: Instant,
}

impl LeaseClock {
    /// Starts with the time of this machine.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            last: Mutex::default(),
        }
    }

    /// Returns the time. It is never ahead of the database time, since a reading counts as the time
    /// of its response.
    pub fn now(&self) -> Timestamp {
        match self.last() {
            Some(reading) => reading.time + microseconds(reading.answered.elapsed()),
            None => self.clock.now(),
        }
    }

    /// Returns the earliest instant at which the database clock may show the given time. Here a
    /// reading counts as the time of its request.
    pub fn instant_of(&self, time: Timestamp) -> Instant {
        let (shown, at) = match self.last() {
            Some(reading) => (reading.time, reading.asked),
            None => (self.clock.now(), Instant::now()),
        };
        // A time that had already passed at the reading maps to the reading itself.
        at + (time - shown).to_std().unwrap_or_default()
    }

    /// Reads the database's clock.
    pub async fn adjust(&self, store: &dyn Store) -> Result<(), StoreError> {
        let asked = Instant::now();
        let time = store.lease_time().await?;
        self.record(time, asked);
        Ok(())
    }

    /// Reads the database's clock within the limit, unless the last reading is younger than `age`.
    /// If that fails, the time stays that of the last reading.
    pub async fn refresh(&self, store: &dyn Store, age: Duration, limit: Duration) {
        if !self.is_older_than(age) {
            return;
        }
        match timeout(limit, self.adjust(store)).await {
            Ok(Ok(())) => (),
            Ok(Err(error)) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "the database clock can't be read"
                );
            }
            Err(_) => tracing::debug!("reading the database clock timed out"),
        }
    }

    fn is_older_than(&self, age: Duration) -> bool {
        self.last().is_none_or(|reading| reading.answered.elapsed() >= age)
    }

    fn record(&self, time: Timestamp, asked: Instant) {
        let answered = Instant::now();
        *self.last.lock() = Some(Reading { time, asked, answered });
    }

    fn last(&self) -> Option<Reading> {
        *self.last.lock()
    }
}

fn microseconds(duration: Duration) -> TimeDelta {
    TimeDelta::microseconds(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use tokio::time::advance;

    use super::*;

    /// The clock of a machine in seconds, set by the test.
    #[derive(Debug, Default)]
    struct SetClock(AtomicI64);

    impl Clock for SetClock {
        fn now(&self) -> Timestamp {
            at(self.0.load(Ordering::Relaxed))
        }

        fn elapsed(&self) -> Duration {
            Duration::ZERO
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn setting_the_clock_of_a_machine_does_not_change_the_time_of_leases() {
        let machine = Arc::new(SetClock::default());
        let clock = LeaseClock::new(Arc::clone(&machine) as _);
        machine.0.store(100, Ordering::Relaxed);
        assert_eq!(clock.now(), at(100), "before the first read");
        assert_eq!(clock.instant_of(at(103)), Instant::now() + Duration::from_secs(3));

        let asked = Instant::now();
        advance(Duration::from_secs(2)).await;
        clock.record(at(5_000), asked);
        for set in [0, 9_000] {
            machine.0.store(set, Ordering::Relaxed);
            assert_eq!(clock.now(), at(5_000), "{set}");
        }
        advance(Duration::from_secs(7)).await;
        assert_eq!(clock.now(), at(5_007));
        assert!(clock.is_older_than(Duration::from_secs(7)) && !clock.is_older_than(Duration::from_secs(8)));
        // The database may have shown the time as early as at the request.
        assert_eq!(clock.instant_of(at(5_010)), asked + Duration::from_secs(10));
        assert_eq!(clock.instant_of(at(1)), asked);
    }
}
