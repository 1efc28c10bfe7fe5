//! How runs are bounded, as an operator configures it.

use std::time::Duration;

use crate::agent::state::ExecutionBudget;

/// How runs are bounded.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// The agent of a request that names none and continues nothing.
    pub default_agent: String,
    /// The most runs at once.
    pub max_concurrent: usize,
    /// The limits that apply where neither the request nor the agent names one.
    pub budget: ExecutionBudget,
    /// How long a commit is tried again while the store is unavailable.
    pub commit_patience: Duration,
    /// How long a request that carries an idempotency key is known.
    pub idempotency_retention: Duration,
    /// How many agents may work below one run.
    pub subagents: SubagentSettings,
    /// The most bytes of the record of one run, its steps and those of its subagents.
    pub max_record_bytes: u64,
    /// The bytes of all large requests to models that were not answered yet; a tenant takes no more
    /// than it leaves.
    pub max_model_request_bytes: usize,
    /// How the queue is worked on.
    pub queue: QueueSettings,
}

/// How many agents may work below one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubagentSettings {
    /// The most in all.
    pub max: usize,
    /// The most at work at the same time; those that wait for others don't count.
    pub concurrency: usize,
    /// The most at work at the same time in this process, beside one of each run.
    pub max_concurrent: usize,
}

/// How this process works on the runs of the queue.
#[derive(Debug, Clone)]
pub struct QueueSettings {
    /// The most runs of the queue at work here at once; with 0 this process accepts runs and leaves
    /// them to others.
    pub concurrency: usize,
    /// How long a lease lasts that is not renewed. It is renewed three times in this time.
    pub lease: Duration,
    /// How often the queue is read when nothing wakes the worker.
    pub poll_interval: Duration,
    /// The most runs that wait; further ones are refused.
    pub max_waiting: u32,
    /// Whether a run of a higher priority goes before those of other tenants as well.
    pub ranks_tenants: bool,
    /// How often a run is begun that its workers don't end, before it fails.
    pub max_attempts: u32,
}
