//! The live side of a run: numbers its events, updates the board, and sends the result to a waiting
//! caller.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::failure::Failure;
use crate::run::context::{ActiveGuard, ActiveRun, RunContext, RunSlot};
use crate::run::events::EndEvents;
use agent::record::{RunEvent, RunEventPayload, RunRecord, RunStatus, RunSummary, StepRecord};
use agent::state::{AgentState, StepExecution};
use agent::{AgentEvent, EventSink, TracedWork};
use board::LiveRun;
use values::clock::Timestamp;
use values::message::Message;
use values::session::SessionHead;
use values::trace_context::TraceContext;
use values::usage::Usage;

/// Receives all events of one run.
#[derive(Debug)]
pub(in crate::run) struct LiveEvents {
    /// The control handle of the run.
    pub(in crate::run) active: Arc<ActiveRun>,
    /// Registers the run as active.
    _at_work: ActiveGuard,
    ctx: Arc<RunContext>,
    /// The input that the record keeps if the run ends without a session.
    input: Arc<[Message]>,
    state: Mutex<LiveState>,
}

#[derive(Debug)]
struct LiveState {
    run: LiveRun,
    /// The number of the last event.
    sequence: u64,
    /// Whether only the events of the end may still be emitted.
    is_ending: bool,
    /// The session that is published.
    session: Option<SessionHead>,
    /// Whether there was an earlier attempt. Its events may be lost.
    is_resumed: bool,
    /// The usage of the completed steps.
    step_usage: Usage,
    /// Sends the result to the caller; `None` if no caller waits for it.
    result: Option<oneshot::Sender<Arc<RunRecord>>>,
    /// Whether the run has ended or continues in another process.
    is_over: bool,
}

impl LiveEvents {
    pub(in crate::run) fn new(
        ctx: &Arc<RunContext>,
        active: Arc<ActiveRun>,
        at_work: ActiveGuard,
        run: LiveRun,
    ) -> Self {
        let state = Mutex::new(LiveState {
            run,
            sequence: 0,
            is_ending: false,
            session: None,
            is_resumed: false,
            step_usage: Usage::NOTHING,
            result: None,
            is_over: false,
        });
        Self {
            active,
            _at_work: at_work,
            ctx: Arc::clone(ctx),
            input: Arc::default(),
            state,
        }
    }

    /// Sets the input that the record keeps if the run ends without a session.
    #[must_use]
    pub(in crate::run) fn keeping(mut self, input: Arc<[Message]>) -> Self {
        self.input = input;
        self
    }

    /// Returns the input that the record keeps if the run ends without a session.
    pub(in crate::run) fn input(&self) -> &Arc<[Message]> {
        &self.input
    }

    /// Sets the channel that sends the result to the caller, if one waits.
    #[must_use]
    pub(in crate::run) fn with_result(self, result: Option<oneshot::Sender<Arc<RunRecord>>>) -> Self {
        self.state.lock().result = result;
        self
    }

    /// Continues after the events of an earlier attempt. If the run was taken over, some events may
    /// be lost although readers have seen them.
    #[must_use]
    pub(in crate::run) fn following(self, last: u64, is_taken_over: bool) -> Self {
        {
            let mut state = self.state.lock();
            state.sequence = last;
            state.is_resumed = last > 0 || is_taken_over;
        }
        self
    }

    /// Returns whether an earlier worker began the run.
    pub(in crate::run) fn is_resumed(&self) -> bool {
        self.state.lock().is_resumed
    }

    /// Splits the usage of earlier attempts. This attempt continues from the part `reached`.
    /// Returns the rest, whose results are lost.
    pub(in crate::run) fn count_lost(&self, reached: Usage) -> Usage {
        let mut state = self.state.lock();
        let lost = state.run.summary.usage.since(reached);
        // The restored steps count their usage again.
        state.run.summary.usage = lost;
        lost
    }

    /// Returns the usage of earlier attempts whose results are lost; none before the work has
    /// begun. Decreases when subagents continue from their journals.
    pub(in crate::run) fn lost(&self) -> Usage {
        let control = self.active.spending.get();
        control.map_or(Usage::NOTHING, |control| control.lost())
    }

    /// Returns the usage of this attempt and earlier ones; none before the work has begun.
    pub(in crate::run) fn spent(&self) -> Usage {
        let control = self.active.spending.get();
        control.map_or(Usage::NOTHING, |control| control.spent())
    }

    /// Emits the start of the run, unless an earlier attempt did.
    pub(in crate::run) fn emit_started(&self) {
        if self.state.lock().sequence == 0 {
            self.emit_next(RunEventPayload::Started(Box::new(self.summary())));
        }
    }

    /// Emits that the run resumes after the steps that an earlier worker completed.
    pub(in crate::run) fn emit_resumed(&self, reached: Option<&AgentState>) {
        let steps = reached
            .and_then(AgentState::execution)
            .map(|execution| &execution.step_executions);
        if let Some(steps) = steps {
            self.restore_steps(steps);
        }
        let attempts = self.summary().attempts;
        self.emit_next(RunEventPayload::Resumed {
            attempts,
            step_count: steps.map_or(0, |steps| steps.len() as u64),
        });
    }

    /// Returns the current summary of the run.
    pub(in crate::run) fn summary(&self) -> RunSummary {
        self.state.lock().run.summary.clone()
    }

    /// Adds the steps that an earlier worker completed.
    fn restore_steps<'a>(&self, steps: impl IntoIterator<Item = &'a Arc<StepExecution>>) {
        let mut state = self.state.lock();
        // At this point the usage contains only the lost part.
        let lost = state.run.summary.usage;
        for (step, number) in steps.into_iter().zip(1..) {
            state.add_step(number, step, lost);
        }
        self.ctx
            .board
            .run_update(&self.active.tenant, Arc::new(state.run.clone()));
    }

    /// Returns the completed steps.
    pub(in crate::run) fn steps(&self) -> Vec<StepRecord> {
        self.state
            .lock()
            .run
            .steps
            .iter()
            .map(|step| (**step).clone())
            .collect()
    }

    /// Returns the time of the service's clock.
    pub(in crate::run) fn now(&self) -> Timestamp {
        self.ctx.clock.now()
    }

    /// Allows only the events of the end from now on. Returns the number of the last of them, for
    /// the run as it ends.
    pub(in crate::run) fn begin_end(&self, ended: &RunSummary) -> u64 {
        let mut state = self.state.lock();
        state.is_ending = true;
        state.sequence + EndEvents::count(ended)
    }

    /// Returns the record of the run as it ends, without output.
    pub(in crate::run) fn record_without_output(&self, ended: RunSummary) -> RunRecord {
        RunRecord {
            echo: self.state.lock().run.echo.clone(),
            ..RunRecord::without_output(ended)
        }
    }

    /// Records the published session.
    pub(in crate::run) fn published(&self, session: &SessionHead) {
        self.state.lock().session = Some(session.clone());
    }

    fn emit_next(&self, payload: RunEventPayload) {
        let mut state = self.state.lock();
        // Once another worker has the run, only that worker may emit events.
        if state.is_over || state.is_ending || self.active.is_lost() {
            return;
        }
        state.sequence += 1;
        let event = Arc::new(RunEvent {
            sequence: state.sequence,
            run_id: state.run.summary.run_id,
            time: self.ctx.clock.now(),
            payload,
        });
        if let Some(trace) = &self.active.trace {
            trace.note(&event.payload, event.time);
        }
        if let Some(held) = &self.active.held_lease {
            held.emitted(Arc::clone(&event));
        }
        self.ctx.board.event_append(&self.active.tenant, event);
    }

    /// Ends the run: on the board, for its readers, and for the caller. Releases the slot before it
    /// notifies the caller.
    pub(in crate::run) fn end(&self, record: &Arc<RunRecord>, slot: Option<RunSlot>) {
        self.active.inbox.close();
        {
            let mut state = self.state.lock();
            state.run.summary = record.summary.clone();
            state.run.input = Arc::clone(&record.input);
            state.run.output.clone_from(&record.output);
            state.run.value.clone_from(&record.value);
            state.run.stop_signal.clone_from(&record.stop_signal);
            state.run.open_calls.clone_from(&record.open_calls);
            self.ctx
                .board
                .run_update(&self.active.tenant, Arc::new(state.run.clone()));
            state.is_over = true;
            for event in EndEvents::new(record, state.session.as_ref()).after(0) {
                if let Some(trace) = &self.active.trace {
                    trace.note(&event.payload, event.time);
                }
                self.ctx.board.event_append(&self.active.tenant, event);
            }
        }
        drop(slot);
        if let Some(metrics) = &self.ctx.metrics {
            let kind = self.active.kind();
            metrics.runs.ended(&self.active.tenant, &record.summary, kind);
        }
        if let Some(result) = self.state.lock().result.take() {
            // The caller may have disconnected. The record is stored anyway.
            let _ = result.send(Arc::clone(record));
        }
    }

    /// Leaves the run to another worker. No more of its events are emitted here, and the caller no
    /// longer waits for a result from here. If another attempt of this process already has the run,
    /// the board shows that attempt. May be repeated.
    pub(in crate::run) fn leave(&self) {
        let mut state = self.state.lock();
        state.result = None;
        if !std::mem::replace(&mut state.is_over, true) {
            let fence = state.run.fence;
            self.ctx
                .board
                .run_release(&self.active.tenant, self.active.run_id, fence);
        }
    }
}

impl LiveState {
    fn add_step(&mut self, number: u64, step: &StepExecution, lost: Usage) {
        self.step_usage = self.step_usage + step.step.usage();
        self.run.summary.step_count = number;
        self.run.summary.usage = lost + self.step_usage;
        if let Some(model) = &step.step.answered_by {
            self.run.summary.answered_by = Some(model.clone());
        }
        self.run.steps.push(Arc::new(StepRecord::new(number, step)));
    }
}

impl EventSink for LiveEvents {
    fn emit(&self, event: AgentEvent) {
        if let Some(metrics) = &self.ctx.metrics {
            metrics.runs.note(&event);
        }
        self.emit_next(RunEventPayload::Agent(event));
    }

    fn span_of(&self, work: TracedWork<'_>) -> Option<TraceContext> {
        self.active.trace.as_ref()?.span_of(None, work)
    }

    fn step_recorded(&self, step_number: usize, step: &Arc<StepExecution>) {
        let lost = self.lost();
        {
            let mut state = self.state.lock();
            state.add_step(step_number as u64, step, lost);
            self.ctx
                .board
                .run_update(&self.active.tenant, Arc::new(state.run.clone()));
        }
        self.emit(AgentEvent::step_completed(step_number, step));
    }
}

/// Ends a light run whose task panicked. A queued run is taken over when its lease expires.
impl Drop for LiveEvents {
    fn drop(&mut self) {
        if self.state.lock().is_over {
            return;
        }
        if self.active.held_lease.is_some() {
            return self.leave();
        }
        let mut summary = self.summary();
        summary.status = RunStatus::Failed;
        summary.error = Some(Failure::panicked().into_error());
        summary.end(self.ctx.clock.now());
        summary.event_count = self.begin_end(&summary);
        let run_id = summary.run_id;
        self.end(&Arc::new(self.record_without_output(summary)), None);
        self.ctx.board.run_close(&self.active.tenant, run_id);
    }
}
