//! The trace of a subagent's execution: its steps, kept as they end. Nobody else hears of its events.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::agent::state::{AgentState, StepExecution};
use crate::agent::{AgentEvent, EventSink};
use crate::ids::ExecutionId;

/// Keeps what is told of an execution, also when that meets a fault of ours and leaves no state behind.
#[derive(Debug, Default)]
pub(super) struct Trace(Mutex<Traced>);

#[derive(Debug, Default)]
struct Traced {
    execution_id: Option<ExecutionId>,
    steps: Vec<Arc<StepExecution>>,
}

impl Trace {
    /// Returns the execution, if it has begun, and its archived steps.
    pub(super) fn told(&self) -> Option<(ExecutionId, Vec<Arc<StepExecution>>)> {
        let traced = self.traced();
        Some((traced.execution_id?, traced.steps.clone()))
    }

    /// Begins with what another process was told.
    pub(super) fn go_on(&self, state: &AgentState) {
        let Some(execution) = state.execution() else { return };
        *self.traced() = Traced {
            execution_id: Some(execution.execution_id),
            steps: execution.step_executions.iter().cloned().collect(),
        };
    }

    fn traced(&self) -> MutexGuard<'_, Traced> {
        // No call under the lock can leave the trace half changed.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for Trace {
    fn emit(&self, event: AgentEvent) {
        if let AgentEvent::ExecutionStarted { execution_id, .. } = event {
            self.traced().execution_id = Some(execution_id);
        }
    }

    fn step_recorded(&self, _: usize, step: &Arc<StepExecution>) {
        self.traced().steps.push(Arc::clone(step));
    }
}
