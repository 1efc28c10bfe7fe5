//! The loop: steps until there is a reason to stop. It moves the state, calls hooks and tells what happens; the driver does the work.

use std::sync::Arc;

use super::drivers::Driver;
use super::events::{AgentEvent, ContinuationDecision, EventSink};
use super::hooks::{HookPoint, HookStack};
use super::state::{AgentError, AgentState, ErrorKind, StopReason, StopSignal};
use crate::clock::Clock;
use crate::ids::{ExecutionId, IdSource, StepId};
use crate::message::Message;

/// Runs executions of one agent.
#[derive(Debug)]
pub struct AgentLoop {
    driver: Box<dyn Driver>,
    hooks: HookStack,
    events: Arc<dyn EventSink>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

impl AgentLoop {
    /// Makes a loop of its parts.
    pub fn new(
        driver: Box<dyn Driver>,
        hooks: HookStack,
        events: Arc<dyn EventSink>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        Self {
            driver,
            hooks,
            events,
            clock,
            ids,
        }
    }

    /// Runs one execution on the input and returns the state at its end: completed, stopped or failed.
    ///
    /// Whatever fails is in the state; nothing that was produced is lost.
    pub async fn run(&self, state: AgentState, input: Vec<Message>) -> AgentState {
        let execution_id = ExecutionId::generate(&*self.ids);
        let state = state
            .start_execution(execution_id, self.clock.now())
            .with_input(input, self.clock.now());
        let mut state = self.call_hooks(HookPoint::BeforeExecution, state).await;
        while !is_stopped(&state) {
            state = self.step(state).await;
            if state.should_stop() {
                break;
            }
        }
        let state = self.call_hooks(HookPoint::OnStop, state).await;
        let state = self.call_hooks(HookPoint::AfterExecution, state).await;
        state.with_execution_ended(self.clock.now())
    }

    /// Makes one step, or none when a hook stops the execution before it.
    async fn step(&self, state: AgentState) -> AgentState {
        let step_number = state.step_count() + 1;
        let step_id = StepId::generate(&*self.ids);
        let started_at = self.clock.now();
        self.events.emit(AgentEvent::StepStarted {
            step_number,
            step_id,
            started_at,
        });
        let state = self
            .call_hooks(HookPoint::BeforeStep, state.with_step_started(started_at))
            .await;
        if is_stopped(&state) {
            self.tell_decision(step_number, &state);
            return state;
        }
        let state = self.driver.step(state, step_id).await;
        let state = self.call_hooks(HookPoint::AfterStep, state).await;
        let state = state.with_step_recorded(self.clock.now());
        self.tell_step(step_number, &state);
        self.tell_decision(step_number, &state);
        state
    }

    /// A hook that fails ends the execution with an error that names it.
    async fn call_hooks(&self, point: HookPoint, state: AgentState) -> AgentState {
        let (state, failure) = self.hooks.call(point, state).await;
        let Some(failure) = failure else { return state };
        let now = self.clock.now();
        let signal = StopSignal::new(StopReason::ErrorForbade, failure.hook.clone(), failure.message.clone());
        let error = AgentError {
            kind: ErrorKind::Hook,
            code: "hook_failed".to_owned(),
            message: failure.to_string(),
            source_name: Some(failure.hook),
        };
        // No other hook's request to go on may outlive the failure.
        state
            .with_error(error, now)
            .with_stop_signal(signal, now)
            .with_continuation_withdrawn(now)
    }

    fn tell_step(&self, step_number: usize, state: &AgentState) {
        let recorded = state.execution().and_then(|execution| execution.step_executions.last());
        if let Some(recorded) = recorded {
            self.events.step_recorded(step_number, recorded);
        }
    }

    fn tell_decision(&self, step_number: usize, state: &AgentState) {
        let stops = state.should_stop();
        let signal = state.stop_signal();
        self.events.emit(AgentEvent::ContinuationEvaluated {
            step_number,
            decision: if stops {
                ContinuationDecision::Stop
            } else {
                ContinuationDecision::Continue
            },
            reason: stops.then(|| state.stop_reason().unwrap_or(StopReason::Completed)),
            source: signal.and_then(|signal| signal.source.clone()),
            message: signal.map(|signal| signal.message.clone()),
        });
    }
}

/// Tells whether a signal forbids the next step. Unlike [`AgentState::should_stop`] it does not ask for tool calls.
fn is_stopped(state: &AgentState) -> bool {
    state
        .execution()
        .is_none_or(|execution| execution.continuation.should_stop())
}
