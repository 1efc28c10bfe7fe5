//! The time: an injected [`Clock`], so that tests can move it. No other file may read the system's
//! clock.

use std::fmt;

use chrono::{DateTime, SubsecRound as _, Utc};

/// An instant in UTC, with microseconds: what every store retains exactly.
pub type Timestamp = DateTime<Utc>;

/// Reads the time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the current time, truncated to microseconds.
    fn now(&self) -> Timestamp;
}

/// Reads the time of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Utc::now().trunc_subsecs(6)
    }
}
