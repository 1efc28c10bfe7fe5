//! `[retention]`: how long sessions and run data are retained, and how the sweep removes the rest.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use super::values::{duration, integer, optional_integer};

/// The longest age that can be named: a hundred years.
const MAX_AGE_MS: u64 = 3_155_760_000_000;

/// The shortest time for which unreferenced contents are retained: an hour. Runs write their files
/// before the session that refers to them.
const MIN_GRACE_MS: u64 = 3_600_000;

/// How long sessions and the data of runs are retained.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetentionConfig {
    /// The age from which sessions are removed; absent, they are never removed.
    #[serde(default, deserialize_with = "optional_age")]
    pub max_age: Option<Duration>,
    /// The number of newest sessions of a thread that are retained; absent, only the age counts.
    #[serde(default, deserialize_with = "optional_integer::<_, 1, 1_000_000, _>")]
    pub keep_last: Option<u32>,
    /// No session younger than this is swept.
    #[serde(deserialize_with = "duration::<0, MAX_AGE_MS, _>")]
    pub min_age: Duration,
    /// How long the events of a run are retained after its end.
    #[serde(deserialize_with = "duration::<0, MAX_AGE_MS, _>")]
    pub events: Duration,
    /// How long finished deliveries of webhooks are retained.
    #[serde(deserialize_with = "duration::<0, MAX_AGE_MS, _>")]
    pub deliveries: Duration,
    /// How long contents of workspaces are retained that no session and no journal refers to.
    #[serde(deserialize_with = "duration::<MIN_GRACE_MS, MAX_AGE_MS, _>")]
    pub unreferenced_contents: Duration,
    /// The pause between two sweeps; 0 leaves sweeping to others.
    #[serde(deserialize_with = "duration::<0, MAX_AGE_MS, _>")]
    pub interval: Duration,
    /// The batch size of one step of a sweep.
    #[serde(deserialize_with = "integer::<_, 1, 10_000, _>")]
    pub batch: u32,
}

fn optional_age<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration::<1, MAX_AGE_MS, D>(deserializer).map(Some)
}
