//! The loop: steps until there is a reason to stop. It moves the state, calls hooks and tells what happens; the driver does the work.

use std::sync::Arc;

use super::drivers::Driver;
use super::ending::Ending;
use super::events::{AgentEvent, ContinuationDecision, EventSink};
use super::hooks::{HookContext, HookPoint, HookStack, HookSubject};
use super::state::{AgentState, AgentStep, StopReason};
use crate::clock::Clock;
use crate::ids::{ExecutionId, IdSource, StepId};
use crate::message::Message;

/// Runs executions of one agent.
#[derive(Debug)]
pub struct AgentLoop {
    driver: Box<dyn Driver>,
    hooks: Arc<HookStack>,
    events: Arc<dyn EventSink>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

impl AgentLoop {
    /// Makes a loop of its parts.
    pub fn new(
        driver: Box<dyn Driver>,
        hooks: Arc<HookStack>,
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
    /// Whatever fails is in the state; nothing that was produced is lost. An execution whose future is dropped is told as ended.
    pub async fn run(&self, state: AgentState, input: Vec<Message>) -> AgentState {
        let execution_id = ExecutionId::generate(&*self.ids);
        let state = state.start_execution(execution_id, self.clock.now());
        let ending = Ending::begin(Arc::clone(&self.events), Arc::clone(&self.clock), &state);
        let state = self.begin(state, input).await;
        self.run_to_end(state, ending).await
    }

    /// Goes on with an execution that was stored before its first step or after a later one, under its own id and with what it has
    /// spent and done already. One that has ended, or never begun, is returned as it is.
    ///
    /// The control of the loop's parts must have been told what is spent: see [`super::ExecutionControl::with_spent`].
    pub async fn resume(&self, state: AgentState) -> AgentState {
        if !state.has_active_execution() {
            return state;
        }
        let ending = Ending::begin(Arc::clone(&self.events), Arc::clone(&self.clock), &state);
        self.run_to_end(state, ending).await
    }

    async fn run_to_end(&self, state: AgentState, mut ending: Ending) -> AgentState {
        let mut state = state;
        // An execution that is resumed may have made its last step already.
        let mut is_over = is_stopped(&state) || (state.step_count() > 0 && state.should_stop());
        while !is_over {
            state = self.step(state).await;
            ending.reached(&state);
            is_over = state.should_stop();
        }
        let state = self.call_hooks(HookPoint::OnStop, state).await;
        let state = self.call_hooks(HookPoint::AfterExecution, state).await;
        let state = state.with_execution_ended(self.clock.now());
        ending.end(&state);
        state
    }

    /// Adds the input, as the hooks before the execution leave it.
    async fn begin(&self, state: AgentState, input: Vec<Message>) -> AgentState {
        let context = HookContext {
            point: HookPoint::BeforeExecution,
            state,
            subject: HookSubject::Input(input),
        };
        let (context, failure) = self.hooks.call(context).await;
        let now = self.clock.now();
        let state = match context.subject {
            HookSubject::Input(input) => context.state.with_input(input, now),
            // The stack lets no hook change the kind of the subject.
            _ => context.state,
        };
        match failure {
            Some(failure) => failure.in_state(state, now),
            None => state,
        }
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
        let state = self.driver.step(state.with_step_granted(started_at), step_id).await;
        let state = self.call_error_hooks(state).await;
        let state = self.call_hooks(HookPoint::AfterStep, state).await;
        let state = state.with_step_recorded(self.clock.now());
        self.tell_step(step_number, &state);
        self.tell_decision(step_number, &state);
        state
    }

    async fn call_hooks(&self, point: HookPoint, state: AgentState) -> AgentState {
        self.hooks.call_on_state(point, state, self.clock.now()).await
    }

    async fn call_error_hooks(&self, state: AgentState) -> AgentState {
        let errors = state.current_step().map(AgentStep::all_errors).unwrap_or_default();
        if errors.is_empty() {
            return state;
        }
        let context = HookContext {
            point: HookPoint::OnError,
            state,
            subject: HookSubject::Errors(errors),
        };
        let (context, failure) = self.hooks.call(context).await;
        match failure {
            Some(failure) => failure.in_state(context.state, self.clock.now()),
            None => context.state,
        }
    }

    fn tell_step(&self, step_number: usize, state: &AgentState) {
        let recorded = state.execution().and_then(|execution| execution.step_executions.last());
        if let Some(recorded) = recorded {
            self.events.step_recorded(step_number, recorded);
        }
    }

    fn tell_decision(&self, step_number: usize, state: &AgentState) {
        let stops = state.should_stop();
        let signal = state.stop_signal().filter(|_| stops);
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
