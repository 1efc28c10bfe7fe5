//! What the board shows of one run.

use std::sync::Arc;

use crate::agent::state::StopSignal;
use crate::json::Value;
use crate::message::Message;
use crate::record::{RunRecord, RunSummary, StepRecord};

/// A run that is live, or has ended and could not be stored yet.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveRun {
    /// Where it stands.
    pub summary: RunSummary,
    /// The messages of its final step, once it has ended.
    pub output: Vec<Arc<Message>>,
    /// What its final answer says, where a shape was demanded of it, once it has ended.
    pub value: Option<Value>,
    /// The signal that ended its execution.
    pub stop_signal: Option<StopSignal>,
    /// Its completed steps.
    pub steps: Vec<Arc<StepRecord>>,
    /// The number of the lease under which it is at work, which grows with each worker; 0 for a run
    /// that was never in the queue.
    pub fence: u64,
}

impl LiveRun {
    /// Shows a run that has just begun.
    pub fn begun(summary: RunSummary) -> Self {
        Self {
            summary,
            output: Vec::new(),
            value: None,
            stop_signal: None,
            steps: Vec::new(),
            fence: 0,
        }
    }

    /// Shows that it is at work under a lease.
    #[must_use]
    pub fn leased(self, fence: u64) -> Self {
        Self { fence, ..self }
    }

    /// Returns the record as it stands.
    pub fn record(&self) -> RunRecord {
        RunRecord {
            summary: self.summary.clone(),
            output: self.output.clone(),
            value: self.value.clone(),
            stop_signal: self.stop_signal.clone(),
        }
    }
}
