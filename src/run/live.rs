//! The live side of a run: numbers its events, updates the board, and sends the result to a waiting
//! caller.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::oneshot;

use super::active::{ActiveGuard, ActiveRun};
use super::end_events::EndEvents;
use super::failure::Failure;
use super::run_slots::RunSlot;
use crate::agent::state::{AgentState, StepExecution};
use crate::agent::{AgentEvent, EventSink};
use crate::board::{Board, LiveRun};
use crate::clock::{Clock, Timestamp};
use crate::record::{RunEvent, RunEventPayload, RunRecord, RunStatus, RunSummary, StepRecord};
use crate::session::SessionHead;
use crate::usage::Usage;

/// Receives everything that happens to one run.
#[derive(Debug)]
pub(super) struct LiveEvents {
    /// The control handle of the run.
    pub(super) active: Arc<ActiveRun>,
    /// Keeps it among the runs at work.
    _at_work: ActiveGuard,
    board: Arc<Board>,
    clock: Arc<dyn Clock>,
    state: Mutex<LiveState>,
}

#[derive(Debug)]
struct LiveState {
    run: LiveRun,
    /// The number of the last event.
    sequence: u64,
    /// Whether nothing is emitted any more but the last events.
    is_ending: bool,
    /// The session that is published.
    session: Option<SessionHead>,
    /// Whether there was an earlier attempt, whose events may be lost.
    is_resumed: bool,
    /// What the steps have used that are archived.
    of_steps: Usage,
    /// Takes the result; none when no caller waits for it.
    result: Option<oneshot::Sender<Arc<RunRecord>>>,
    /// Whether the run has ended, or goes on elsewhere.
    is_over: bool,
}

impl LiveEvents {
    pub(super) fn new(
        active: Arc<ActiveRun>,
        at_work: ActiveGuard,
        run: LiveRun,
        board: Arc<Board>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let state = Mutex::new(LiveState {
            run,
            sequence: 0,
            is_ending: false,
            session: None,
            is_resumed: false,
            of_steps: Usage::NOTHING,
            result: None,
            is_over: false,
        });
        Self {
            active,
            _at_work: at_work,
            board,
            clock,
            state,
        }
    }

    /// Sends the result to the caller that waits at the other end.
    #[must_use]
    pub(super) fn with_result(self, result: oneshot::Sender<Arc<RunRecord>>) -> Self {
        self.state.lock().result = Some(result);
        self
    }

    /// Goes on after the events of an earlier attempt. Those of one that was taken over may be
    /// lost, and still have been read.
    #[must_use]
    pub(super) fn following(self, last: u64, is_taken_over: bool) -> Self {
        {
            let mut state = self.state.lock();
            state.sequence = last;
            state.is_resumed = last > 0 || is_taken_over;
        }
        self
    }

    /// Returns whether an earlier worker has begun the run.
    pub(super) fn is_resumed(&self) -> bool {
        self.state.lock().is_resumed
    }

    /// Counts what earlier attempts have spent, where this one goes on with a part of it. Returns
    /// the rest, which is lost.
    pub(super) fn count_lost(&self, reached: Usage) -> Usage {
        let mut state = self.state.lock();
        let lost = state.run.summary.usage.since(reached);
        // What is gone on with is counted again with its steps.
        state.run.summary.usage = lost;
        lost
    }

    /// Returns what earlier attempts have spent and this one, whose work has begun, does not go on
    /// with. It gets less as subagents go on.
    pub(super) fn lost(&self) -> Usage {
        let control = self.active.spending.get();
        control.map_or(Usage::NOTHING, |control| control.lost())
    }

    /// Returns what this attempt and earlier ones have spent, once its work has begun.
    pub(super) fn spent(&self) -> Usage {
        let control = self.active.spending.get();
        control.map_or(Usage::NOTHING, |control| control.spent())
    }

    /// Emits that the run begins, unless an earlier attempt has.
    pub(super) fn emit_started(&self) {
        if self.state.lock().sequence == 0 {
            self.emit_next(RunEventPayload::Started(Box::new(self.summary())));
        }
    }

    /// Emits that the run goes on, after what an earlier worker has completed.
    pub(super) fn emit_resumed(&self, reached: Option<&AgentState>) {
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

    /// Returns where the run stands.
    pub(super) fn summary(&self) -> RunSummary {
        self.state.lock().run.summary.clone()
    }

    /// Shows the steps that an earlier worker has completed.
    fn restore_steps<'a>(&self, steps: impl IntoIterator<Item = &'a Arc<StepExecution>>) {
        let mut state = self.state.lock();
        // Nothing else is counted yet.
        let lost = state.run.summary.usage;
        for (step, number) in steps.into_iter().zip(1..) {
            state.add_step(number, step, lost);
        }
        self.board.run_update(&self.active.tenant, Arc::new(state.run.clone()));
    }

    /// Returns the steps that are archived.
    pub(super) fn steps(&self) -> Vec<StepRecord> {
        self.state
            .lock()
            .run
            .steps
            .iter()
            .map(|step| (**step).clone())
            .collect()
    }

    /// Returns the time.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the number of the terminal event of a run that ends so, for its record. From now on
    /// only the last events are emitted.
    pub(super) fn last_number(&self, status: RunStatus) -> u64 {
        let mut state = self.state.lock();
        state.is_ending = true;
        state.sequence + EndEvents::count(status)
    }

    /// Notes the session that is published.
    pub(super) fn published(&self, session: &SessionHead) {
        self.state.lock().session = Some(session.clone());
    }

    fn emit_next(&self, payload: RunEventPayload) {
        let mut state = self.state.lock();
        // What happens after another worker has begun is for that one to emit.
        if state.is_over || state.is_ending || self.active.is_lost() {
            return;
        }
        state.sequence += 1;
        let event = Arc::new(RunEvent {
            sequence: state.sequence,
            run_id: state.run.summary.run_id,
            time: self.clock.now(),
            payload,
        });
        if let Some(held) = &self.active.held_lease {
            held.emitted(Arc::clone(&event));
        }
        self.board.event_append(&self.active.tenant, event);
    }

    /// Ends the run for everybody: on the board, for its readers, then, when its slot is free
    /// again, for the caller.
    pub(super) fn end(&self, record: &Arc<RunRecord>, slot: Option<RunSlot>) {
        self.active.inbox.close();
        {
            let mut state = self.state.lock();
            state.run.summary = record.summary.clone();
            state.run.output.clone_from(&record.output);
            state.run.value.clone_from(&record.value);
            state.run.stop_signal.clone_from(&record.stop_signal);
            self.board.run_update(&self.active.tenant, Arc::new(state.run.clone()));
            state.is_over = true;
            for event in EndEvents::new(record, state.session.as_ref()).after(0) {
                self.board.event_append(&self.active.tenant, event);
            }
        }
        drop(slot);
        if let Some(result) = self.state.lock().result.take() {
            // The caller may have gone away; the record is stored all the same.
            let _ = result.send(Arc::clone(record));
        }
    }

    /// Leaves the run to another worker: nothing more of it is emitted here. Where another attempt
    /// of this very process has it already, the board shows that one. May be repeated.
    pub(super) fn leave(&self) {
        let mut state = self.state.lock();
        if !std::mem::replace(&mut state.is_over, true) {
            let attempt = state.run.fence;
            self.board.run_release(&self.active.tenant, self.active.run_id, attempt);
        }
    }
}

impl LiveState {
    fn add_step(&mut self, number: u64, step: &StepExecution, lost: Usage) {
        self.of_steps = self.of_steps + step.step.usage();
        self.run.summary.step_count = number;
        self.run.summary.usage = lost + self.of_steps;
        if let Some(model) = &step.step.answered_by {
            self.run.summary.answered_by = Some(model.clone());
        }
        self.run.steps.push(Arc::new(StepRecord::new(number, step)));
    }
}

impl EventSink for LiveEvents {
    fn emit(&self, event: AgentEvent) {
        self.emit_next(RunEventPayload::Agent(event));
    }

    fn step_recorded(&self, step_number: usize, step: &Arc<StepExecution>) {
        let lost = self.lost();
        {
            let mut state = self.state.lock();
            state.add_step(step_number as u64, step, lost);
            self.board.run_update(&self.active.tenant, Arc::new(state.run.clone()));
        }
        self.emit(AgentEvent::step_completed(step_number, step));
    }
}

/// A run whose task was lost to a fault of ours ends all the same; a queued one goes to another
/// worker when its lease expires.
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
        summary.end(self.clock.now());
        summary.event_count = self.last_number(summary.status);
        let run_id = summary.run_id;
        self.end(&Arc::new(RunRecord::without_output(summary)), None);
        self.board.run_close(&self.active.tenant, run_id);
    }
}
