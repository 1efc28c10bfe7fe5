//! Database time, extrapolated with the monotonic clock between two reads. Leases expire by it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::TimeDelta;
use tokio::time::Instant;

use crate::clock::{Clock, Timestamp};
use crate::store::{Store, StoreError};

/// Tells the database's time. Replicas whose own clocks differ agree on it.
#[derive(Debug)]
pub(in crate::run) struct LeaseClock {
    /// Asked as long as the database's clock was never seen.
    clock: Arc<dyn Clock>,
    last: Mutex<Option<Look>>,
}

/// A look at the database's clock.
#[derive(Debug, Clone, Copy)]
struct Look {
    /// What it showed, at some time between question and answer.
    time: Timestamp,
    asked: Instant,
    answered: Instant,
}

impl LeaseClock {
    /// Begins with the time of this machine.
    pub(in crate::run) fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            last: Mutex::default(),
        }
    }

    /// Returns the time. It is never ahead of the database's: what a look has shown is taken for the time of the answer.
    pub(in crate::run) fn now(&self) -> Timestamp {
        match self.last() {
            Some(look) => look.time + microseconds(look.answered.elapsed()),
            None => self.clock.now(),
        }
    }

    /// Returns when the database's clock may show that time at the earliest, as if a look had shown the time of the question.
    pub(in crate::run) fn instant_of(&self, time: Timestamp) -> Instant {
        let (shown, at) = match self.last() {
            Some(look) => (look.time, look.asked),
            None => (self.clock.now(), Instant::now()),
        };
        // What is past by the look is past.
        at + (time - shown).to_std().unwrap_or_default()
    }

    /// Looks at the database's clock.
    pub(in crate::run) async fn adjust(&self, store: &dyn Store) -> Result<(), StoreError> {
        let asked = Instant::now();
        let time = store.lease_time().await?;
        self.seen(time, asked);
        Ok(())
    }

    /// Tells whether the last look at the database's clock is that long ago.
    pub(in crate::run) fn is_older_than(&self, age: Duration) -> bool {
        self.last().is_none_or(|look| look.answered.elapsed() >= age)
    }

    fn seen(&self, time: Timestamp, asked: Instant) {
        let answered = Instant::now();
        *self.guard() = Some(Look { time, asked, answered });
    }

    fn last(&self) -> Option<Look> {
        *self.guard()
    }

    fn guard(&self) -> MutexGuard<'_, Option<Look>> {
        // The only change is an assignment.
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
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

    /// The clock of a machine, in seconds, that somebody sets.
    #[derive(Debug, Default)]
    struct SetClock(AtomicI64);

    impl Clock for SetClock {
        fn now(&self) -> Timestamp {
            at(self.0.load(Ordering::Relaxed))
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + TimeDelta::seconds(seconds)
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_whose_clock_is_set_keeps_the_databases_time() {
        let machine = Arc::new(SetClock::default());
        let clock = LeaseClock::new(Arc::clone(&machine) as _);
        machine.0.store(100, Ordering::Relaxed);
        assert_eq!(clock.now(), at(100), "before the first look");
        assert_eq!(clock.instant_of(at(103)), Instant::now() + Duration::from_secs(3));

        let asked = Instant::now();
        advance(Duration::from_secs(2)).await;
        clock.seen(at(5_000), asked);
        for set in [0, 9_000] {
            machine.0.store(set, Ordering::Relaxed);
            assert_eq!(clock.now(), at(5_000), "{set}");
        }
        advance(Duration::from_secs(7)).await;
        assert_eq!(clock.now(), at(5_007));
        assert!(clock.is_older_than(Duration::from_secs(7)) && !clock.is_older_than(Duration::from_secs(8)));
        // The database may have shown it as early as the question came.
        assert_eq!(clock.instant_of(at(5_010)), asked + Duration::from_secs(10));
        assert_eq!(clock.instant_of(at(1)), asked);
    }
}
