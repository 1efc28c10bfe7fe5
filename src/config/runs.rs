//! `[runs]`: limits of runs, and the default budget.

use std::time::Duration;

use serde::Deserialize;

use super::values::{duration, filled, integer, optional_cost, optional_integer};
use values::usage::Cost;

/// Limits of runs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunsConfig {
    /// The agent of a run that names none and continues nothing.
    #[serde(deserialize_with = "filled")]
    pub default_agent: String,
    /// Runs in progress in this process; further ones are refused.
    #[serde(deserialize_with = "integer::<_, 1, 1_000_000, _>")]
    pub max_concurrent: usize,
    /// Messages in the input of one request.
    #[serde(deserialize_with = "integer::<_, 1, 1_000_000, _>")]
    pub max_input_messages: usize,
    /// Tool calls of one step that execute at the same time.
    #[serde(deserialize_with = "integer::<_, 1, 1_024, _>")]
    pub tool_concurrency: usize,
    /// Tool calls of one step that are executed.
    #[serde(deserialize_with = "integer::<_, 1, 1_024, _>")]
    pub max_calls_per_step: usize,
    #[serde(deserialize_with = "duration::<1, 86_400_000, _>")]
    pub tool_timeout: Duration,
    /// Bytes of one tool result that reach the model; the rest is cut.
    #[serde(deserialize_with = "integer::<_, 256, 1_073_741_824, _>")]
    pub max_tool_output_bytes: usize,
    /// Subagents of one run, all levels together.
    #[serde(deserialize_with = "integer::<_, 1, 100_000, _>")]
    pub max_subagents: usize,
    /// Subagents of one run that execute at the same time.
    #[serde(deserialize_with = "integer::<_, 1, 1_024, _>")]
    pub subagent_concurrency: usize,
    /// Subagents that execute at the same time in this process, besides one of each run.
    #[serde(deserialize_with = "integer::<_, 1, 1_000_000, _>")]
    pub max_concurrent_subagents: usize,
    /// Bytes of the record of one run, the steps of its subagents included.
    #[serde(deserialize_with = "integer::<_, 65_536, 536_870_912, _>")]
    pub max_record_bytes: u64,
    /// Bytes of the large model requests in flight of all runs.
    #[serde(deserialize_with = "integer::<_, 1_048_576, { i64::MAX }, _>")]
    pub max_model_request_bytes: usize,
    /// How long an open call waits for the caller's answer before it counts as denied.
    #[serde(deserialize_with = "duration::<1_000, 31_536_000_000, _>")]
    pub answer_expiry: Duration,
    /// How long the rules and the client tools of agents may let a call wait.
    #[serde(deserialize_with = "duration::<1_000, 31_536_000_000, _>")]
    pub max_answer_expiry: Duration,
    /// How long a finished run tries to publish its session during an outage of the store.
    #[serde(deserialize_with = "duration::<0, 3_600_000, _>")]
    pub commit_patience: Duration,
    /// How long a shutdown lets runs finish before it cancels them.
    #[serde(deserialize_with = "duration::<0, 86_400_000, _>")]
    pub shutdown_grace: Duration,
    pub budget: BudgetConfig,
}

/// The limits of a run where neither it nor its agent names one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetConfig {
    #[serde(deserialize_with = "integer::<_, 1, 1_000_000, _>")]
    pub max_steps: u32,
    /// Input and output tokens together.
    #[serde(default, deserialize_with = "optional_integer::<_, 1, { i64::MAX }, _>")]
    pub max_tokens: Option<u64>,
    #[serde(deserialize_with = "integer::<_, 1, 604_800, _>")]
    pub max_seconds: u32,
    /// US dollars.
    #[serde(default, deserialize_with = "optional_cost")]
    pub max_cost: Option<Cost>,
}
