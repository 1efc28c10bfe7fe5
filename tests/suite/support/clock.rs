//! Clocks that tests move.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_runtime::clock::{Clock, SystemClock, Timestamp};
use agent_runtime::json::Value;
use chrono::{SubsecRound as _, TimeDelta};
use tokio::time::Instant;

use super::outages::INTERNALS;

/// Reads a time of a response. Its text has as many digits as it needs, so that texts
/// don't sort as times do.
pub(crate) fn time(value: &Value) -> Timestamp {
    value.as_str().unwrap().parse().unwrap()
}

/// A fixed start plus what has passed of tokio's time: paused tests move it, and it never drifts
/// from their timers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TestClock {
    base: Timestamp,
    started: Instant,
}

impl TestClock {
    /// Makes a clock that starts at 2026-01-02T03:04:05Z.
    pub(crate) fn new() -> Self {
        Self {
            base: "2026-01-02T03:04:05Z".parse().unwrap(),
            started: Instant::now(),
        }
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        (self.base + TimeDelta::from_std(self.started.elapsed()).unwrap()).trunc_subsecs(6)
    }
}

/// A clock that stands still until it is moved.
#[derive(Debug)]
pub(crate) struct ManualClock(Mutex<Timestamp>);

impl ManualClock {
    /// Makes a clock that stands at 2026-01-02T03:04:05Z.
    pub(crate) fn new() -> Self {
        Self(Mutex::new("2026-01-02T03:04:05Z".parse().unwrap()))
    }

    /// Puts it forward.
    pub(crate) fn advance(&self, by: TimeDelta) {
        *self.0.lock().unwrap() += by;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

/// The system's clock, for tests over real sockets: it can be put forward, and can panic.
#[derive(Debug, Default)]
pub(crate) struct MovableClock {
    ahead: Mutex<TimeDelta>,
    panics: AtomicBool,
}

impl MovableClock {
    /// Puts it forward.
    pub(crate) fn advance(&self, by: TimeDelta) {
        *self.ahead.lock().unwrap() += by;
    }

    /// Chooses whether reading the time panics.
    pub(crate) fn set_panics(&self, panics: bool) {
        self.panics.store(panics, Ordering::SeqCst);
    }
}

impl Clock for MovableClock {
    fn now(&self) -> Timestamp {
        assert!(!self.panics.load(Ordering::SeqCst), "{INTERNALS}");
        SystemClock.now() + *self.ahead.lock().unwrap()
    }
}
