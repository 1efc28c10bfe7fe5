//! The settings of runs, as an operator configures them.

use std::time::Duration;

use agent::AnswerExpiry;
use agent::state::ExecutionBudget;
use workspace::WorkspaceLimits;

/// The settings of runs.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// The agent of a request that names none and continues nothing.
    pub default_agent: String,
    /// The most runs at once.
    pub max_concurrent: usize,
    /// The limits that apply if neither the request nor the agent sets one.
    pub budget: ExecutionBudget,
    /// How long a commit is retried while the store is unavailable.
    pub commit_patience: Duration,
    /// How long an idempotency key is retained.
    pub idempotency_retention: Duration,
    /// The limits of subagents.
    pub subagents: SubagentSettings,
    /// How long open calls wait for answers.
    pub answer_expiry: AnswerExpiry,
    /// The most bytes of the record of one run, including its steps and those of its subagents.
    pub max_record_bytes: u64,
    /// The most bytes of all large requests to models in flight. A tenant gets at most half of
    /// them.
    pub max_model_request_bytes: usize,
    /// The limits of workspaces.
    pub workspace: WorkspaceLimits,
    /// The settings of the queue.
    pub queue: QueueSettings,
}

/// The limits of subagents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubagentSettings {
    /// The most subagents of a run in total.
    pub max: usize,
    /// The most active subagents of a run. Those that wait for their own subagents do not count.
    pub concurrency: usize,
    /// The most active subagents in this process, in addition to one for each run.
    pub max_concurrent: usize,
}

/// How this process executes queued runs.
#[derive(Debug, Clone)]
pub struct QueueSettings {
    /// The most queued runs that this process executes at the same time. With 0, it accepts runs
    /// and leaves them to other processes.
    pub concurrency: usize,
    /// How long a lease lasts unless it is renewed. It is renewed when a third of this time has
    /// passed.
    pub lease: Duration,
    /// How often the worker polls the queue without a wake-up.
    pub poll_interval: Duration,
    /// The most waiting runs. Further runs are refused.
    pub max_waiting: u32,
    /// Whether a run of a higher priority also precedes runs of other tenants.
    pub ranks_tenants: bool,
    /// The most attempts at a run. It fails if none of them ends it.
    pub max_attempts: u32,
}
