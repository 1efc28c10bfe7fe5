//! Provides the time through a [`Clock`], so that tests can set it. Only this file may read the
//! system clock.

use std::fmt;

use chrono::{DateTime, SubsecRound as _, Utc};

/// An instant in UTC with microsecond precision, which every store retains exactly.
pub type Timestamp = DateTime<Utc>;

/// A source of the current time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the current time, truncated to microseconds.
    fn now(&self) -> Timestamp;
}

/// The clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Utc::now().trunc_subsecs(6)
    }
}

/// Returns the nanoseconds since 1970. A time before then counts as 1.
pub fn nanoseconds(time: Timestamp) -> u64 {
    let nanoseconds = time
        .timestamp_nanos_opt()
        .and_then(|nanoseconds| u64::try_from(nanoseconds).ok());
    nanoseconds.unwrap_or_default().max(1)
}
