//! How much a board retains, and how it uses its server.

use std::time::Duration;

/// How much a board retains of what runs emit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoardSettings {
    /// How long the events of an ended run are retained, as far as there is room.
    pub event_retention: Duration,
    /// The most bytes, as estimated, that the events of one run may take in this process; the
    /// oldest go first.
    pub max_run_event_bytes: usize,
    /// The most bytes, as estimated, that the events of all runs at work may take in this process.
    /// Beyond it, the runs that have most lose their oldest ones; each retains its last.
    pub max_live_event_bytes: usize,
    /// The most bytes, as estimated, that the events of all ended runs may take in this process;
    /// those of the run that ended first go first.
    pub max_ended_event_bytes: usize,
}

/// How a shared board uses its server.
#[derive(Debug, Clone)]
pub struct RedisSettings {
    /// How long a run is shown after its process has refreshed it last, which it does three times
    /// in this time.
    pub expiry: Duration,
    /// How long a request may wait for the server.
    pub timeout: Duration,
    /// The certificate authorities (PEM) that are trusted instead of the public ones.
    pub ca: Option<Vec<u8>>,
    /// How much is retained of what runs emit.
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
