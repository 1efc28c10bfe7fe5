//! The first phase of a shutdown: the process says that it is not ready, and goes on serving until
//! nobody sends it new requests.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde::Deserialize;

use values::settings::duration;

/// How a shutdown begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct DrainSettings {
    /// How long `/readyz` reports a shutdown before the listener closes.
    #[serde(deserialize_with = "duration::<0, 600_000, _>")]
    pub drain_delay: Duration,
}

/// Whether the shutdown has begun.
#[derive(Debug, Default)]
pub(super) struct Drain(AtomicBool);

impl Drain {
    pub(super) fn begin(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(super) fn has_begun(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
