//! The state of one run on the board.

use std::sync::Arc;

use agent::record::{RunRecord, RunSummary, StepRecord};
use agent::state::StopSignal;
use values::json::{Object, Value};
use values::message::Message;
use values::session::OpenCall;

/// A run that is live, or that has ended but is not stored yet.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveRun {
    /// Its summary, with its status.
    pub summary: RunSummary,
    /// The messages of its request, once it has ended without a session.
    pub input: Arc<[Message]>,
    /// The messages of its final step, once it has ended.
    pub output: Vec<Arc<Message>>,
    /// The value of its final response, if it has a response format and has ended.
    pub value: Option<Value>,
    /// The signal that ended its execution.
    pub stop_signal: Option<StopSignal>,
    /// The calls that wait for answers of the caller, if the run ended because of them.
    pub open_calls: Vec<OpenCall>,
    /// The request as its caller wrote it.
    pub echo: Option<Arc<Object>>,
    /// Its completed steps.
    pub steps: Vec<Arc<StepRecord>>,
    /// The fence token of its lease; 0 for a run that was never in the queue.
    pub fence: u64,
}

impl LiveRun {
    /// Creates the state of a run that has just begun.
    pub fn begun(summary: RunSummary) -> Self {
        Self {
            summary,
            input: Arc::default(),
            output: Vec::new(),
            value: None,
            stop_signal: None,
            open_calls: Vec::new(),
            echo: None,
            steps: Vec::new(),
            fence: 0,
        }
    }

    /// Sets the request as its caller wrote it.
    #[must_use]
    pub fn with_echo(self, echo: Option<Arc<Object>>) -> Self {
        Self { echo, ..self }
    }

    /// Sets the fence token of the lease.
    #[must_use]
    pub fn leased(self, fence: u64) -> Self {
        Self { fence, ..self }
    }

    /// Returns the current record.
    pub fn record(&self) -> RunRecord {
        RunRecord {
            summary: self.summary.clone(),
            input: Arc::clone(&self.input),
            output: self.output.clone(),
            value: self.value.clone(),
            finish_reason: self.steps.iter().rev().find_map(|step| step.finish_reason.clone()),
            stop_signal: self.stop_signal.clone(),
            open_calls: self.open_calls.clone(),
            echo: self.echo.clone(),
            is_hidden: false,
        }
    }
}
