//! How much the board retains of the events of runs.

use std::time::Duration;

/// How much a board keeps of what runs tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoardSettings {
    /// How long the events of an ended run are kept, as far as there is room.
    pub event_retention: Duration,
    /// The most bytes, as estimated, that the events of one run may take in this process; the oldest go first.
    pub max_run_event_bytes: usize,
    /// The most bytes, as estimated, that the events of all runs at work may take in this process. Beyond it, the runs that have most
    /// lose their oldest ones; each keeps its last.
    pub max_live_event_bytes: usize,
    /// The most bytes, as estimated, that the events of all ended runs may take in this process; those of the run that ended first go
    /// first.
    pub max_ended_event_bytes: usize,
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
