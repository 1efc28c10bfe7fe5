//! The settings of runs, as an operator configures them.

use std::time::Duration;

use serde::Deserialize;

use agent::state::ExecutionBudget;
use values::settings::{duration, filled, integer};

/// The settings of runs.
#[derive(Debug, Clone, Deserialize)]
pub struct RunSettings {
    /// The agent of a request that names none and continues nothing.
    #[serde(deserialize_with = "filled")]
    pub default_agent: String,
    /// The most light runs in progress in this process. Further ones are refused.
    #[serde(deserialize_with = "integer::<_, 1, 1_000_000, _>")]
    pub max_concurrent: usize,
    /// The limits that apply if neither the request nor the agent sets one.
    #[serde(skip)]
    pub budget: ExecutionBudget,
    /// How long a commit is retried while the store is unavailable.
    #[serde(deserialize_with = "duration::<0, 3_600_000, _>")]
    pub commit_patience: Duration,
    /// How long a shutdown lets runs finish before it cancels them.
    #[serde(deserialize_with = "duration::<0, 86_400_000, _>")]
    pub shutdown_grace: Duration,
    /// The most bytes of the record of one run, including the steps of its subagents.
    #[serde(deserialize_with = "integer::<_, 65_536, 536_870_912, _>")]
    pub max_record_bytes: u64,
    /// The most bytes of all large requests to models in flight. A tenant gets at most half of
    /// them.
    #[serde(deserialize_with = "integer::<_, 1_048_576, { i64::MAX }, _>")]
    pub max_model_request_bytes: usize,
}

/// The limits of subagents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct SubagentSettings {
    /// The most subagents of a run in total.
    #[serde(rename = "max_subagents", deserialize_with = "integer::<_, 1, 100_000, _>")]
    pub max: usize,
    /// The most active subagents of a run. Subagents that wait for their own subagents do not
    /// count.
    #[serde(rename = "subagent_concurrency", deserialize_with = "integer::<_, 1, 1_024, _>")]
    pub concurrency: usize,
    /// The most active subagents in this process, in addition to one for each run.
    #[serde(
        rename = "max_concurrent_subagents",
        deserialize_with = "integer::<_, 1, 1_000_000, _>"
    )]
    pub max_concurrent: usize,
}

/// Queued runs, and how this process executes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct QueueSettings {
    /// The role of this process.
    pub role: ProcessRole,
    /// The most queued runs that this process executes at the same time, if its role lets it.
    #[serde(deserialize_with = "integer::<_, 1, 100_000, _>")]
    pub concurrency: usize,
    /// How long a lease lasts unless it is renewed. It is renewed when a third of this time has
    /// passed.
    #[serde(deserialize_with = "duration::<1_000, 3_600_000, _>")]
    pub lease: Duration,
    /// How often the worker polls the queue without a wake-up.
    #[serde(deserialize_with = "duration::<10, 60_000, _>")]
    pub poll_interval: Duration,
    /// The most waiting runs. Further runs are refused.
    #[serde(deserialize_with = "integer::<_, 1, 100_000_000, _>")]
    pub max_waiting: u32,
    /// The runs among which a priority counts.
    pub priority: PriorityScope,
    /// The most attempts at a run. A run that no attempt ends fails.
    #[serde(deserialize_with = "integer::<_, 1, 1_000, _>")]
    pub max_attempts: u32,
}

/// The runs among which a priority counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriorityScope {
    /// The runs of the same tenant.
    Tenant,
    /// All runs: a tenant can delay others for as long as it likes.
    Global,
}

/// The role of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessRole {
    /// Serves requests, and leaves queued runs to workers.
    Api,
    /// Executes queued runs, and serves only probes.
    Worker,
    /// Both.
    All,
}

impl ProcessRole {
    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Api => "api",
            Self::Worker => "worker",
            Self::All => "all",
        }
    }
}

/// How long requests that carry an idempotency key are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct IdempotencySettings {
    /// The time from the first request with a key. After it the key is free again.
    #[serde(deserialize_with = "duration::<1_000, 31_536_000_000, _>")]
    pub retention: Duration,
}

impl QueueSettings {
    /// Returns how many queued runs this process executes at the same time.
    pub fn slots(&self) -> usize {
        if self.role == ProcessRole::Api {
            0
        } else {
            self.concurrency
        }
    }
}
