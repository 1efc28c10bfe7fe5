//! `[queue]`: queued runs, and how this process executes them.

use std::time::Duration;

use serde::Deserialize;

use super::values::{duration, integer};

/// Queued runs, and how this process executes them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    pub role: Role,
    /// Queued runs in progress in this process.
    #[serde(deserialize_with = "integer::<_, 1, 100_000, _>")]
    pub concurrency: usize,
    /// How long a worker that does not renew its lease holds a run.
    #[serde(deserialize_with = "duration::<1_000, 3_600_000, _>")]
    pub lease: Duration,
    /// How often a worker polls the queue without a wake-up.
    #[serde(deserialize_with = "duration::<10, 60_000, _>")]
    pub poll_interval: Duration,
    /// Waiting runs; further ones are refused.
    #[serde(deserialize_with = "integer::<_, 1, 100_000_000, _>")]
    pub max_waiting: u32,
    pub priority: PriorityScope,
    /// How many workers a run may lose before it fails.
    #[serde(deserialize_with = "integer::<_, 1, 1_000, _>")]
    pub max_attempts: u32,
}

/// The runs among which a priority counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriorityScope {
    /// Those of the same tenant.
    Tenant,
    /// All runs: a tenant can delay others for as long as it likes.
    Global,
}

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Serves requests, and leaves queued runs to workers.
    Api,
    /// Executes queued runs, and serves only probes.
    Worker,
    /// Both.
    All,
}
