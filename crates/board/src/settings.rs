//! The settings of a board: how much it retains, and how it uses its server.

use std::time::Duration;

use serde::Deserialize;

use values::settings::{duration, integer};

/// How many events a board retains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct BoardSettings {
    /// How long the events of an ended run are retained, if there is room.
    #[serde(deserialize_with = "duration::<1_000, 604_800_000, _>")]
    pub event_retention: Duration,
    /// The most estimated bytes of one run's events in this process. The oldest events are dropped
    /// first.
    #[serde(deserialize_with = "integer::<_, 65_536, { i64::MAX }, _>")]
    pub max_run_event_bytes: usize,
    /// The most estimated bytes of the events of all live runs in this process. Beyond it, the runs
    /// with the most bytes lose their oldest events. Each run retains its last event.
    #[serde(deserialize_with = "integer::<_, 65_536, { i64::MAX }, _>")]
    pub max_live_event_bytes: usize,
    /// The most estimated bytes of the events of all ended runs in this process. The events of the
    /// run that ended first are dropped first.
    #[serde(deserialize_with = "integer::<_, 0, { i64::MAX }, _>")]
    pub max_ended_event_bytes: usize,
}

/// How a shared board uses its server.
#[derive(Debug, Clone)]
pub struct RedisSettings {
    /// How long other processes see a run after its last refresh. It is refreshed when a third of
    /// this time has passed.
    pub expiry: Duration,
    /// How long a request may wait for the server.
    pub timeout: Duration,
    /// The certificate authorities (PEM) to trust instead of the public ones.
    pub ca: Option<Vec<u8>>,
    /// How many events the board retains.
    pub board: BoardSettings,
}

impl Default for BoardSettings {
    fn default() -> Self {
        Self {
            event_retention: Duration::from_mins(10),
            max_run_event_bytes: 16 << 20,
            max_live_event_bytes: 256 << 20,
            max_ended_event_bytes: 64 << 20,
        }
    }
}

impl Default for RedisSettings {
    fn default() -> Self {
        Self {
            expiry: Duration::from_secs(30),
            timeout: Duration::from_millis(500),
            ca: None,
            board: BoardSettings::default(),
        }
    }
}
