//! The trace of a subagent's execution: its steps, collected as they end. Forwards its events if
//! the caller requested them.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::metrics::Metrics;
use crate::spans::RunTrace;
use agent::state::{AgentState, StepExecution};
use agent::{AgentEvent, EventSink, TracedWork};
use values::ids::{AgentId, ExecutionId};
use values::trace_context::TraceContext;

/// Collects the steps of an execution. They survive even if the execution panics and its state is
/// lost.
#[derive(Debug)]
pub(super) struct Trace {
    traced: Mutex<Traced>,
    relay: Option<Relay>,
    metrics: Option<Arc<Metrics>>,
    spans: Option<Arc<RunTrace>>,
}

/// Forwards events to the listeners of the run.
#[derive(Debug)]
pub(super) struct Relay {
    /// The run's own listeners.
    pub(super) to: Arc<dyn EventSink>,
    /// The step of the parent agent.
    pub(super) step_number: usize,
    /// The tool call of the parent agent.
    pub(super) call_id: String,
    /// How many levels the agent is below the run's own agent.
    pub(super) depth: u32,
}

#[derive(Debug, Default)]
struct Traced {
    agent_id: Option<AgentId>,
    execution_id: Option<ExecutionId>,
    steps: Vec<Arc<StepExecution>>,
}

impl Trace {
    /// Creates an empty trace.
    pub(super) fn new(relay: Option<Relay>, metrics: Option<Arc<Metrics>>, spans: Option<Arc<RunTrace>>) -> Self {
        Self {
            traced: Mutex::default(),
            relay,
            metrics,
            spans,
        }
    }

    /// Returns the execution, if it has begun, and its completed steps.
    pub(super) fn execution(&self) -> Option<(ExecutionId, Vec<Arc<StepExecution>>)> {
        let traced = self.traced.lock();
        Some((traced.execution_id?, traced.steps.clone()))
    }

    /// Starts with the steps of an earlier attempt.
    pub(super) fn go_on(&self, state: &AgentState) {
        let Some(execution) = state.execution() else { return };
        *self.traced.lock() = Traced {
            agent_id: Some(state.agent_id()),
            execution_id: Some(execution.execution_id),
            steps: execution.step_executions.iter().cloned().collect(),
        };
    }

    fn relay(&self, event: AgentEvent) {
        let Some(relay) = &self.relay else { return };
        let Some(agent_id) = self.traced.lock().agent_id else {
            return;
        };
        relay.to.emit(AgentEvent::SubagentEvent {
            step_number: relay.step_number,
            call_id: relay.call_id.clone(),
            agent_id,
            depth: relay.depth,
            event: Box::new(event),
        });
    }
}

impl EventSink for Trace {
    fn emit(&self, event: AgentEvent) {
        if let AgentEvent::ExecutionStarted {
            execution_id, agent_id, ..
        } = &event
        {
            let mut traced = self.traced.lock();
            traced.execution_id = Some(*execution_id);
            traced.agent_id = Some(*agent_id);
        }
        if let Some(metrics) = &self.metrics {
            metrics.runs.note(&event);
        }
        if let Some(spans) = &self.spans
            && let Some(agent_id) = self.traced.lock().agent_id
        {
            spans.note_subagent(agent_id, &event);
        }
        self.relay(event);
    }

    fn span_of(&self, work: TracedWork<'_>) -> Option<TraceContext> {
        let agent_id = self.traced.lock().agent_id?;
        self.spans.as_ref()?.span_of(Some(agent_id), work)
    }

    fn step_recorded(&self, step_number: usize, step: &Arc<StepExecution>) {
        self.traced.lock().steps.push(Arc::clone(step));
        self.relay(AgentEvent::step_completed(step_number, step));
    }
}
