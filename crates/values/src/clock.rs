//! Provides the time through a [`Clock`], so that tests can set it. Only this file may read the
//! system clock.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};

/// An instant in UTC with microsecond precision, which every store retains exactly.
pub type Timestamp = DateTime<Utc>;

/// A source of the current time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the current time, truncated to microseconds.
    fn now(&self) -> Timestamp;

    /// Returns the time since some instant. Setting the time of day does not change it.
    fn elapsed(&self) -> Duration;
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Utc::now().trunc_subsecs(6)
    }

    fn elapsed(&self) -> Duration {
        static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
        BEGAN.elapsed()
    }
}

/// A clock that begins with the time of another one, and does not follow when that one is set.
#[derive(Debug)]
pub struct SteadyClock {
    clock: Arc<dyn Clock>,
    began_at: Timestamp,
    began: Duration,
}

impl SteadyClock {
    /// Begins with the present time.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        let (began_at, began) = (clock.now(), clock.elapsed());
        Self { clock, began_at, began }
    }
}

impl Clock for SteadyClock {
    fn now(&self) -> Timestamp {
        let passed = TimeDelta::from_std(self.elapsed().saturating_sub(self.began)).unwrap_or_default();
        (self.began_at + passed).trunc_subsecs(6)
    }

    fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }
}

/// When something ends, by the clock that says so.
#[derive(Debug, Clone)]
pub struct Deadline {
    at: Timestamp,
    clock: Arc<dyn Clock>,
}

impl Deadline {
    /// Ends at a time of this clock.
    pub fn new(at: Timestamp, clock: Arc<dyn Clock>) -> Self {
        Self { at, clock }
    }

    /// Returns the time of its clock.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns the time that is left, at least 0.
    pub fn time_left(&self) -> Duration {
        (self.at - self.clock.now()).to_std().unwrap_or_default()
    }
}

/// Returns the nanoseconds since 1970. A time before then counts as 1.
pub fn nanoseconds(time: Timestamp) -> u64 {
    let nanoseconds = time
        .timestamp_nanos_opt()
        .and_then(|nanoseconds| u64::try_from(nanoseconds).ok());
    nanoseconds.unwrap_or_default().max(1)
}
