//! Emits the first and the last event of every execution, also if its future is dropped.
//!
//! If an execution is handed over, the process that resumes it emits the last event.

use std::sync::Arc;

use super::events::{AgentEvent, EventSink};
use super::state::{AgentState, ExecutionState, ExecutionStatus, StopReason, StopSignal};
use values::clock::Clock;

/// Emits the end of an execution exactly once.
#[derive(Debug)]
pub(super) struct Ending {
    events: Arc<dyn EventSink>,
    clock: Arc<dyn Clock>,
    /// The last known state of the execution; none once its end is emitted.
    execution: Option<ExecutionState>,
}

impl Ending {
    /// Emits the beginning of the execution.
    pub(super) fn begin(events: Arc<dyn EventSink>, clock: Arc<dyn Clock>, state: &AgentState) -> Self {
        if let Some(execution) = state.execution() {
            events.emit(AgentEvent::ExecutionStarted {
                execution_id: execution.execution_id,
                agent_id: state.agent_id(),
                parent_agent_id: state.parent_agent_id(),
                execution_count: state.execution_count(),
            });
        }
        Self::resume(events, clock, state)
    }

    /// Continues an execution whose beginning another process has emitted.
    pub(super) fn resume(events: Arc<dyn EventSink>, clock: Arc<dyn Clock>, state: &AgentState) -> Self {
        Self {
            events,
            clock,
            execution: state.execution().cloned(),
        }
    }

    /// Emits nothing: another process continues the execution.
    pub(super) fn hand_over(mut self) {
        self.execution = None;
    }

    /// Notes the latest state of the execution.
    pub(super) fn reached(&mut self, state: &AgentState) {
        self.execution = state.execution().cloned();
    }

    /// Emits how the execution ended.
    pub(super) fn end(mut self, state: &AgentState) {
        self.execution = None;
        if let Some(execution) = state.execution() {
            self.emit(execution, state.stop_signal());
        }
    }

    fn emit(&self, execution: &ExecutionState, signal: Option<&StopSignal>) {
        self.events.emit(AgentEvent::ExecutionEnded {
            execution_id: execution.execution_id,
            status: execution.status,
            reason: execution.stop_reason().unwrap_or(StopReason::Unknown),
            was_force_stopped: execution.was_force_stopped(),
            source: signal.and_then(|signal| signal.source.clone()),
            message: signal.map(|signal| signal.message.clone()),
            context: signal.map(|signal| signal.context.clone()).unwrap_or_default(),
            step_count: execution.step_count(),
            usage: Box::new(execution.usage()),
            duration_ms: execution.duration(self.clock.now()).num_milliseconds(),
        });
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        let Some(mut execution) = self.execution.take() else {
            return;
        };
        let signal = StopSignal::new(StopReason::Unknown, "loop", "the execution was dropped");
        execution.status = ExecutionStatus::Failed;
        execution.continuation.stop_signals = vec![signal.clone()];
        self.emit(&execution, Some(&signal));
    }
}
