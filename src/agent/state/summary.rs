//! The state in a few figures, for logs and assertions (document 001, "Debugging").

use serde::Serialize;

use super::agent_state::AgentState;
use super::continuation::ExecutionContinuation;
use super::error::ErrorList;
use super::execution::ExecutionStatus;
use crate::ids::ExecutionId;
use crate::usage::Usage;

/// The figures of a state.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StateSummary {
    /// The status of the execution.
    pub status: Option<ExecutionStatus>,
    /// How many executions the agent has had.
    pub execution_count: u64,
    /// Whether the state holds an execution.
    pub has_execution: bool,
    /// Names the execution.
    pub execution_id: Option<ExecutionId>,
    /// The number of completed steps.
    pub steps: usize,
    /// The stop signals, and whether one more step is requested, in words.
    pub continuation: String,
    /// Whether the execution has errors.
    pub has_errors: bool,
    /// The errors of the execution.
    pub errors: ErrorList,
    /// The usage of the execution.
    pub usage: Usage,
}

impl AgentState {
    /// Summarises the state.
    pub fn debug(&self) -> StateSummary {
        let (execution, errors) = (self.execution(), self.errors());
        StateSummary {
            status: self.status(),
            execution_count: self.execution_count(),
            has_execution: execution.is_some(),
            execution_id: execution.map(|execution| execution.execution_id),
            steps: self.step_count(),
            continuation: execution.map_or_else(String::new, |execution| in_words(&execution.continuation)),
            has_errors: !errors.is_empty(),
            errors,
            usage: self.usage(),
        }
    }
}

fn in_words(continuation: &ExecutionContinuation) -> String {
    let signals = continuation.stop_signals.iter();
    let signals: Vec<_> = signals
        .map(|signal| format!("{}: {}", signal.reason.as_str(), signal.message))
        .collect();
    let signals = match &signals[..] {
        [] => "No Stop Signals".to_owned(),
        signals => signals.join(", "),
    };
    let requested = if continuation.is_continuation_requested {
        "Yes"
    } else {
        "No"
    };
    format!("{signals}; Continuation Requested: {requested}")
}
