//! `[queue]`: runs that survive their connection, and how this process works on them.

use std::time::Duration;

use serde::Deserialize;

use super::values::{duration, integer};

/// Runs that outlive their connection, and this process's part in them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueConfig {
    pub role: Role,
    /// Runs of the queue at work at once in this process.
    #[serde(deserialize_with = "integer::<_, 1, 100_000, _>")]
    pub concurrency: usize,
    /// How long a run stays with a worker that gives no sign of life.
    #[serde(deserialize_with = "duration::<1_000, 3_600_000, _>")]
    pub lease: Duration,
    /// How often the queue is read when nothing wakes the worker.
    #[serde(deserialize_with = "duration::<10, 60_000, _>")]
    pub poll_interval: Duration,
    /// Runs that wait; more are turned away.
    #[serde(deserialize_with = "integer::<_, 1, 100_000_000, _>")]
    pub max_waiting: u32,
    pub priority: PriorityScope,
    /// How often a run is begun that its workers don't survive.
    #[serde(deserialize_with = "integer::<_, 1, 1_000, _>")]
    pub max_attempts: u32,
}

/// Among which runs a priority counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriorityScope {
    /// Among those of the same tenant.
    Tenant,
    /// Among all: a tenant can go before others for as long as it likes.
    Global,
}

/// What a process does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Serves requests, and leaves queued runs to workers.
    Api,
    /// Executes queued runs, and answers probes only.
    Worker,
    /// Both.
    All,
}
