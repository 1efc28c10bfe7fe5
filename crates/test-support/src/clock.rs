//! Clocks that tests move.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use chrono::{SubsecRound as _, TimeDelta};
use tokio::time::Instant;
use values::clock::{Clock, SystemClock, Timestamp};
use values::json::Value;

use crate::internals::INTERNALS;

/// Reads a time of a response. Its text has as many digits as it needs, so that texts
/// don't sort as times do.
pub fn time(value: &Value) -> Timestamp {
    value.as_str().unwrap().parse().unwrap()
}

/// A fixed start plus what has passed of tokio's time: paused tests move it, and it never drifts
/// from their timers.
#[derive(Debug, Clone, Copy)]
pub struct TestClock {
    base: Timestamp,
    started: Instant,
    /// How far somebody has set the time of day, in seconds.
    set: &'static AtomicI64,
}

impl TestClock {
    /// Makes a clock that starts at 2026-01-02T03:04:05Z.
    pub fn new() -> Self {
        Self {
            base: "2026-01-02T03:04:05Z".parse().unwrap(),
            started: Instant::now(),
            set: Box::leak(Box::default()),
        }
    }

    /// Sets the time of day for all copies, while no time passes.
    pub fn set(&self, by: TimeDelta) {
        self.set.fetch_add(by.num_seconds(), Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let passed = TimeDelta::from_std(self.started.elapsed()).unwrap();
        (self.base + passed + TimeDelta::seconds(self.set.load(Ordering::SeqCst))).trunc_subsecs(6)
    }

    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub struct ManualClock(Mutex<Timestamp>);

impl ManualClock {
    /// Makes a clock that stands at 2026-01-02T03:04:05Z.
    pub fn new() -> Self {
        Self(Mutex::new("2026-01-02T03:04:05Z".parse().unwrap()))
    }

    /// Puts it forward.
    pub fn advance(&self, by: TimeDelta) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }

    fn elapsed(&self) -> Duration {
        (*self.0.lock().unwrap() - Self::new().now()).to_std().unwrap()
    }
}

/// The system's clock, for tests over real sockets: it can be put forward, and can panic.
#[derive(Debug, Default)]
pub struct MovableClock {
    ahead: Mutex<TimeDelta>,
    panics: AtomicBool,
}

impl MovableClock {
    /// Puts it forward.
    pub fn advance(&self, by: TimeDelta) {
        *self.ahead.lock().unwrap() += by;
    }

    /// Chooses whether reading the time panics.
    pub fn set_panics(&self, panics: bool) {
        self.panics.store(panics, Ordering::SeqCst);
    }
}

impl Clock for MovableClock {
    fn now(&self) -> Timestamp {
        assert!(!self.panics.load(Ordering::SeqCst), "{INTERNALS}");
        SystemClock.now() + *self.ahead.lock().unwrap()
    }

    fn elapsed(&self) -> Duration {
        assert!(!self.panics.load(Ordering::SeqCst), "{INTERNALS}");
        SystemClock.elapsed() + self.ahead.lock().unwrap().to_std().unwrap_or_default()
    }
}
