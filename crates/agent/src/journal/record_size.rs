//! The size of a run's record, counted as steps are archived.
//!
//! When the size reaches its limit, all executions of the run stop before their next step. So a run
//! ends before its record is too large to store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::progress::Progress;
use crate::state::{AgentStep, StepExecution};
use values::json::json_length;

/// The size of a step or a call without its content: ids, times, usage.
const ENTRY_BYTES: usize = 512;

/// Counts the records of all executions of a run, which share it.
#[derive(Debug)]
pub struct RecordSize {
    bytes: AtomicU64,
    max_bytes: u64,
}

impl RecordSize {
    /// Bounds a record.
    pub fn new(max_bytes: u64) -> Self {
        Self {
            bytes: AtomicU64::new(0),
            max_bytes,
        }
    }

    /// Counts a step. The executions of subagents count their own steps.
    pub(crate) fn add(&self, step: &AgentStep) {
        self.bytes.fetch_add(bytes_of(step), Ordering::Relaxed);
    }

    /// Counts the steps that another process has recorded, including those of subagents.
    pub fn add_progress(&self, progress: &Progress) {
        let steps: u64 = progress.state.steps().map(bytes_of).sum();
        let below = progress.ended_calls();
        let below = below.filter_map(|(_, _, execution)| execution.trace.subagent.as_deref());
        let below: u64 = below.map(|subagent| bytes_below(&subagent.steps)).sum();
        self.bytes.fetch_add(steps + below, Ordering::Relaxed);
    }

    /// Returns the bound, if it is reached.
    pub(crate) fn reached(&self) -> Option<u64> {
        (self.bytes.load(Ordering::Relaxed) >= self.max_bytes).then_some(self.max_bytes)
    }
}

impl Default for RecordSize {
    fn default() -> Self {
        Self::new(u64::MAX)
    }
}

fn bytes_below(steps: &[Arc<StepExecution>]) -> u64 {
    let step_bytes = |step: &AgentStep| {
        let below = step.tool_executions.iter();
        let below = below.filter_map(|execution| execution.trace.subagent.as_deref());
        bytes_of(step) + below.map(|subagent| bytes_below(&subagent.steps)).sum::<u64>()
    };
    steps.iter().map(|done| step_bytes(&done.step)).sum()
}

/// Estimates the bytes of the record of the step as JSON: its messages, errors, requests to models
/// and entries.
fn bytes_of(step: &AgentStep) -> u64 {
    let entries = ENTRY_BYTES * (step.tool_executions.len() + 1);
    let errors = json_length(&step.all_errors()) + json_length(&step.model_requests);
    (entries + errors + json_length(&step.output_messages)) as u64
}
