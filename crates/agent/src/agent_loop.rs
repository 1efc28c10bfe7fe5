//! The agent loop: makes steps until there is a reason to stop.
//!
//! The loop moves the state through the points of an execution, calls the hooks and emits the
//! events. The driver does the work of a step (`drivers/`). `ending.rs` emits the first and the
//! last event.
//!
//! ```text
//! before_execution ─▶ step ─▶ on_stop ─▶ after_execution
//!
//! step:  before_step ─ stop? ─ driver ─ on_error ─ after_step ─ stop? ─┐
//!        ▲                                                             │ no
//!        └─────────────────────────────────────────────────────────────┘
//! ```
//!
//! # When the loop stops
//!
//! `AgentState::should_stop` decides (`state/continuation.rs`). In this order:
//!
//! 1. A binding stop signal stops. Examples: the caller cancelled, a budget is spent, a hook
//!    failed.
//! 2. A request to continue overrides every other signal. It holds until the next step is made.
//! 3. Any other stop signal stops.
//! 4. A wanted retry, open tool calls or a paused completion continue. Otherwise the loop stops.
//!
//! If the loop continues after a final response, that response is marked as a trace, since it was
//! not final.
//!
//! # Messages that arrive during a run
//!
//! A caller can send messages to a running execution (`inbox.rs`). They join the conversation after
//! the hooks before a step and right before the driver. So a guard that forbids the step leaves
//! them waiting. They never join after a completion that the provider has paused. If a message
//! waits and this step would be the last one, the loop makes one more step, provided that the
//! budget allows it.
//!
//! # Calls that wait for the caller
//!
//! A step may have calls that need answers of the caller (`answers/`). The driver then leaves the
//! step open, and the loop ends the execution. No hook after the step is called, since the step has
//! not ended. Another execution begins with the answers and finishes the step, and the input joins
//! the conversation after it.
//!
//! # Pausing
//!
//! The loop checks for a pause between steps, and only if the execution has a journal. It then
//! returns a state whose execution is still active. Hooks and listeners see no end, since another
//! process resumes the execution. A subagent is part of its parent's step, so it is never paused.

use std::sync::Arc;

use super::answers::AnsweredStep;
use super::control::ExecutionControl;
use super::drivers::Driver;
use super::ending::Ending;
use super::events::{AgentEvent, ContinuationDecision, EventSink};
use super::hooks::{HookContext, HookFailure, HookStack, HookSubject};
use super::inbox::Inbox;
use super::state::{AgentState, AgentStep, AgentStepType, StopReason};
use crate::hook_point::HookPoint;
use crate::journal::{JournalFailed, PendingStep, Recorder};
use values::clock::Timestamp;
use values::ids::{ExecutionId, IdSource, MessageId, StepId};
use values::message::Message;

/// Runs executions of one agent.
#[derive(Debug)]
pub struct AgentLoop {
    driver: Driver,
    hooks: Arc<HookStack>,
    events: Arc<dyn EventSink>,
    control: Arc<ExecutionControl>,
    ids: Arc<dyn IdSource>,
    execution_id: Option<ExecutionId>,
    journal: Option<Arc<Recorder>>,
    inbox: Option<Arc<dyn Inbox>>,
}

impl AgentLoop {
    /// Makes a loop from its parts.
    pub fn new(
        driver: Driver,
        hooks: Arc<HookStack>,
        events: Arc<dyn EventSink>,
        control: Arc<ExecutionControl>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        Self {
            driver,
            hooks,
            events,
            control,
            ids,
            execution_id: None,
            journal: None,
            inbox: None,
        }
    }

    /// Names the execution. By default, each one has a new id.
    #[must_use]
    pub fn with_execution_id(self, execution_id: ExecutionId) -> Self {
        let execution_id = Some(execution_id);
        Self { execution_id, ..self }
    }

    /// Records the execution, so that another process can resume it. The driver must have the same
    /// recorder.
    #[must_use]
    pub fn with_journal(self, journal: Arc<Recorder>) -> Self {
        let journal = Some(journal);
        Self { journal, ..self }
    }

    /// Receives messages from the inbox while the execution runs.
    #[must_use]
    pub fn with_inbox(self, inbox: Arc<dyn Inbox>) -> Self {
        let inbox = Some(inbox);
        Self { inbox, ..self }
    }

    /// Runs one execution on the input and returns the state at its end: completed, stopped or
    /// failed. If a recorded execution is paused, the returned state still has it active.
    ///
    /// Failures are recorded in the state; no output is lost. If the future is dropped, the end of
    /// the execution is still emitted.
    pub async fn run(&self, state: AgentState, input: Vec<Message>) -> AgentState {
        let state = state.start_execution(self.new_execution_id(), self.now());
        let ending = Ending::begin(Arc::clone(&self.events), Arc::clone(self.control.clock()), &state);
        let state = self.begin(state, input).await;
        let state = if self.hooks.has_effects_at(&[HookPoint::BeforeExecution]) {
            self.recorded(state).await
        } else {
            // The request of the run has the input, so it is persisted together with the next
            // entries.
            self.noted(state)
        };
        let is_over = is_stopped(&state);
        self.run_to_end(state, is_over, ending).await
    }

    /// Runs one execution that begins with answers to the open calls of a waiting session, and
    /// returns the state at its end. The input joins the conversation after the results of the
    /// calls. If a hook before the execution stops it, no call is executed.
    pub async fn answer(&self, state: AgentState, input: Vec<Message>, answered: AnsweredStep) -> AgentState {
        let state = state.start_execution(self.new_execution_id(), self.now());
        let mut ending = Ending::begin(Arc::clone(&self.events), Arc::clone(self.control.clock()), &state);
        let (state, input) = self.before_execution(state, input).await;
        let state = state.with_held_input(input, self.now());
        let answered = if is_stopped(&state) {
            answered.not_executed()
        } else {
            answered
        };
        // Persisted together with the step, since no takeover could make the step again.
        let state = self.noted(state);
        let step_number = state.step_count() + 1;
        self.events.emit(AgentEvent::StepStarted {
            step_number,
            step_id: answered.step_id(),
            started_at: self.now(),
            left_open_by: answered.run_id(),
        });
        let state = self.driver.answer_step(state, answered).await;
        let state = Box::pin(self.end_step(state, step_number)).await;
        ending.reached(&state);
        let is_over = state.should_stop();
        self.run_to_end(state, is_over, ending).await
    }

    /// Continues an execution after its last completed step, or within the pending step. The
    /// execution has the same id, and its earlier steps and usage count. If it has ended or never
    /// begun, the state is returned unchanged.
    ///
    /// The control must already count the earlier usage: see
    /// [`super::ExecutionControl::with_spent`] and [`crate::journal::Progress::spent`]. The
    /// recorder must have begun with the same state.
    pub async fn resume(&self, state: AgentState, pending: Option<PendingStep>) -> AgentState {
        if !state.has_active_execution() {
            return state;
        }
        let mut ending = Ending::resume(Arc::clone(&self.events), Arc::clone(self.control.clock()), &state);
        let Some(pending) = pending else {
            // The last step may already be made.
            let is_over = is_stopped(&state) || (state.step_count() > 0 && state.should_stop());
            return self.run_to_end(state, is_over, ending).await;
        };
        let step_number = state.step_count() + 1;
        let state = self.driver.resume_step(state, pending).await;
        let state = Box::pin(self.end_step(state, step_number)).await;
        ending.reached(&state);
        let is_over = state.should_stop();
        self.run_to_end(state, is_over, ending).await
    }

    async fn run_to_end(&self, state: AgentState, is_over: bool, mut ending: Ending) -> AgentState {
        let (mut state, mut is_over) = (state, is_over);
        while !is_over {
            if self.journal.is_some() && self.control.is_paused() {
                ending.hand_over();
                return self.persisted(state).await;
            }
            state = self.step(state).await;
            ending.reached(&state);
            is_over = state.should_stop();
        }
        Box::pin(self.end(state, ending)).await
    }

    /// Ends the execution. After a journal failure it has no further effect, so no hook is called.
    async fn end(&self, state: AgentState, ending: Ending) -> AgentState {
        let state = if self.has_journal_failed() {
            state
        } else {
            let state = self.call_hooks(HookPoint::OnStop, state).await;
            self.call_hooks(HookPoint::AfterExecution, state).await
        };
        let state = state.with_execution_ended(self.now());
        ending.end(&state);
        let state = if self.is_persisted_by_commit() {
            state
        } else {
            self.recorded(state).await
        };
        if self.has_journal_failed() {
            return state.with_execution_ended(self.now());
        }
        state
    }

    /// Adds the input after the hooks before the execution have changed it.
    async fn begin(&self, state: AgentState, input: Vec<Message>) -> AgentState {
        let (state, input) = self.before_execution(state, input).await;
        state.with_input(input, self.now())
    }

    /// Calls the hooks before the execution. Returns the input as they have changed it.
    async fn before_execution(&self, state: AgentState, input: Vec<Message>) -> (AgentState, Vec<Message>) {
        let context = HookContext::new(HookPoint::BeforeExecution, state, HookSubject::Input(input));
        let (context, failure) = self.hooks.call(context, || self.now()).await;
        let input = match context.subject {
            HookSubject::Input(input) => input,
            // The stack lets no hook change the kind of the subject.
            _ => Vec::new(),
        };
        (HookFailure::applied(failure, context.state, self.now()), input)
    }

    /// Makes one step, unless a hook stops the execution before it.
    async fn step(&self, state: AgentState) -> AgentState {
        let step_number = state.step_count() + 1;
        let step_id = StepId::generate(&*self.ids);
        let started_at = self.now();
        self.events.emit(AgentEvent::StepStarted {
            step_number,
            step_id,
            started_at,
            left_open_by: None,
        });
        let state = self
            .call_hooks(HookPoint::BeforeStep, state.with_step_started(started_at))
            .await;
        if is_stopped(&state) {
            self.emit_decision(step_number, &state);
            return state;
        }
        let state = Box::pin(self.with_inbox_messages(state)).await;
        if self.has_journal_failed() {
            return state;
        }
        let state = self.driver.step(state.with_step_granted(started_at), step_id).await;
        // Boxed, so that its memory is not held while the model works.
        Box::pin(self.end_step(state, step_number)).await
    }

    /// Archives the step that the driver has made.
    async fn end_step(&self, state: AgentState, step_number: usize) -> AgentState {
        // Hooks see the step when it ends with the answers to its open calls.
        let state = if self.hooks.has_effects_at(&[HookPoint::OnError, HookPoint::AfterStep]) {
            self.persisted(state).await
        } else {
            state
        };
        let state = if self.has_journal_failed() || state.context().waiting.is_some() {
            state
        } else {
            let state = self.call_error_hooks(state).await;
            let state = self.call_hooks(HookPoint::AfterStep, state).await;
            self.within_budget(self.with_step_for_inbox(state))
        };
        if let Some(step) = state.current_step() {
            self.control.record().add(step);
        }
        let state = state.with_step_recorded(self.now()).with_held_input_added(self.now());
        self.emit_step(step_number, &state);
        self.emit_decision(step_number, &state);
        if state.should_stop() && self.is_persisted_by_commit() {
            return self.noted(state);
        }
        self.recorded(state).await
    }

    /// Adds the waiting messages to the conversation. Their events are emitted once they are
    /// persisted.
    async fn with_inbox_messages(&self, state: AgentState) -> AgentState {
        let Some(inbox) = self.inbox.as_ref().filter(|inbox| !inbox.is_empty()) else {
            return state;
        };
        // A provider that has paused requires its own message as the last one.
        if state.last_step().is_some_and(AgentStep::is_paused) {
            return state;
        }
        let messages = inbox.take();
        let applied: Vec<MessageId> = messages.iter().map(|message| message.id).collect();
        // Another process may have added the message without emitting its event.
        let is_new = |message: &Message| !state.store().history().iter().any(|other| other.id == message.id);
        let new: Vec<Message> = messages.into_iter().filter(is_new).collect();
        // At least one more step must respond to these messages.
        let state = state
            .with_input(new, self.now())
            .with_continuation_requested(self.now());
        let state = self.recorded(state).await;
        if self.has_journal_failed() {
            return state;
        }
        let step_number = state.step_count() + 1;
        for message_id in applied {
            self.events.emit(AgentEvent::MessageApplied {
                step_number,
                message_id,
            });
        }
        state
    }

    /// Requests one more step if a message waits, this step would be the last one, and the budget
    /// allows another.
    fn with_step_for_inbox(&self, state: AgentState) -> AgentState {
        let has_messages = self.inbox.as_ref().is_some_and(|inbox| !inbox.is_empty());
        if !has_messages || !state.should_stop() || self.control.called_off().is_some() {
            return state;
        }
        if self.control.limits_after_step(&state).next().is_some() {
            return state;
        }
        state.with_continuation_requested(self.now())
    }

    /// Stops after a final response if another step is requested and the budget allows none. The
    /// guard before that step would also stop, but only after the response is marked as a trace.
    fn within_budget(&self, state: AgentState) -> AgentState {
        let step_type = state.current_step().map(AgentStep::step_type);
        if step_type != Some(AgentStepType::FinalResponse) || state.should_stop() {
            return state;
        }
        let signals = self.control.limits_after_step(&state);
        signals.fold(state, |state, signal| state.with_stop_signal(signal, self.now()))
    }

    /// Returns whether nothing lies between the last step and the commit of the run, which persists
    /// all that is not persisted yet.
    fn is_persisted_by_commit(&self) -> bool {
        let journal = self.journal.as_ref();
        journal.is_some_and(|journal| journal.is_committed_at_end())
            && !self
                .hooks
                .has_effects_at(&[HookPoint::OnStop, HookPoint::AfterExecution])
    }

    /// Notes the state of the execution, to be persisted together with the next entries.
    fn noted(&self, state: AgentState) -> AgentState {
        if let Some(journal) = &self.journal {
            journal.reached(&state);
        }
        state
    }

    /// Persists the state of the execution. If this fails, the execution must end.
    async fn recorded(&self, state: AgentState) -> AgentState {
        if self.has_journal_failed() {
            return state;
        }
        self.persisted(self.noted(state)).await
    }

    /// Persists the noted entries. If this fails, the execution must end.
    async fn persisted(&self, state: AgentState) -> AgentState {
        let Some(journal) = self.journal.as_ref().filter(|journal| journal.failure().is_none()) else {
            return state;
        };
        match Box::pin(journal.flush()).await {
            Ok(()) => state,
            Err(JournalFailed) => JournalFailed::in_state(state, self.journal.as_deref(), self.now()),
        }
    }

    /// Returns whether the journal has failed. After a failure, nothing may have an effect.
    fn has_journal_failed(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.failure().is_some())
    }

    fn new_execution_id(&self) -> ExecutionId {
        self.execution_id.unwrap_or_else(|| ExecutionId::generate(&*self.ids))
    }

    fn now(&self) -> Timestamp {
        self.control.now()
    }

    async fn call_hooks(&self, point: HookPoint, state: AgentState) -> AgentState {
        self.hooks.call_on_state(point, state, || self.now()).await
    }

    async fn call_error_hooks(&self, state: AgentState) -> AgentState {
        let errors = state.current_step().map(AgentStep::all_errors).unwrap_or_default();
        if errors.is_empty() {
            return state;
        }
        let context = HookContext::new(HookPoint::OnError, state, HookSubject::Errors(errors));
        let (context, failure) = self.hooks.call(context, || self.now()).await;
        HookFailure::applied(failure, context.state, self.now())
    }

    fn emit_step(&self, step_number: usize, state: &AgentState) {
        let recorded = state.execution().and_then(|execution| execution.step_executions.last());
        if let Some(recorded) = recorded {
            self.events.step_recorded(step_number, recorded);
        }
    }

    fn emit_decision(&self, step_number: usize, state: &AgentState) {
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
            context: signal.map(|signal| signal.context.clone()).unwrap_or_default(),
        });
    }
}

/// Returns whether a signal forbids the next step. Unlike [`AgentState::should_stop`] it ignores
/// requested tool calls.
fn is_stopped(state: &AgentState) -> bool {
    state
        .execution()
        .is_none_or(|execution| execution.continuation.should_stop())
}
