//! The live side of a run: numbers its events, passes them to the caller and keeps the board up to date.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio_util::sync::CancellationToken;

use super::event_stream::EventSender;
use super::outcome::Failure;
use super::request::OnDisconnect;
use crate::agent::state::StepExecution;
use crate::agent::{AgentEvent, EventSink};
use crate::board::{Board, LiveRun};
use crate::clock::{Clock, Timestamp};
use crate::record::{RunEvent, RunEventPayload, RunRecord, RunStatus, RunSummary, StepRecord};
use crate::tenant::TenantId;

/// Who follows a run, and how.
#[derive(Debug)]
pub(super) struct Follower {
    /// Takes events; none when the caller wants the result only.
    pub(super) events: Option<EventSender>,
    /// Takes the result.
    pub(super) result: oneshot::Sender<Arc<RunRecord>>,
    /// What to do when the caller goes away.
    pub(super) on_disconnect: OnDisconnect,
}

/// Hears everything that happens to one run.
#[derive(Debug)]
pub(super) struct LiveEvents {
    /// Cancelled when the run shall end without a session.
    pub(super) cancellation: CancellationToken,
    tenant: TenantId,
    board: Arc<dyn Board>,
    clock: Arc<dyn Clock>,
    on_disconnect: OnDisconnect,
    state: Mutex<LiveState>,
}

#[derive(Debug)]
struct LiveState {
    run: LiveRun,
    sequence: u64,
    events: Option<EventSender>,
    result: Option<oneshot::Sender<Arc<RunRecord>>>,
}

impl LiveEvents {
    pub(super) fn new(
        tenant: TenantId,
        run: LiveRun,
        board: Arc<dyn Board>,
        clock: Arc<dyn Clock>,
        cancellation: CancellationToken,
        follower: Follower,
    ) -> Self {
        let Follower {
            events,
            result,
            on_disconnect,
        } = follower;
        let state = Mutex::new(LiveState {
            run,
            sequence: 0,
            events,
            result: Some(result),
        });
        Self {
            cancellation,
            tenant,
            board,
            clock,
            on_disconnect,
            state,
        }
    }

    /// Returns where the run stands.
    pub(super) fn summary(&self) -> RunSummary {
        self.state().run.summary.clone()
    }

    /// Returns the steps that are archived.
    pub(super) fn steps(&self) -> Vec<StepRecord> {
        self.state().run.steps.iter().map(|step| (**step).clone()).collect()
    }

    /// Returns the time.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Tells the caller what happened.
    pub(super) fn tell(&self, payload: RunEventPayload) {
        let mut state = self.state();
        state.sequence += 1;
        let Some(events) = &state.events else { return };
        let event = RunEvent {
            sequence: state.sequence,
            run_id: state.run.summary.run_id,
            time: self.clock.now(),
            payload,
        };
        if events.send(Arc::new(event)).is_err() && self.on_disconnect == OnDisconnect::Cancel {
            self.cancellation.cancel();
        }
    }

    /// Tells everybody how the run ended: the board, then the stream, then, when the run's place is free again, the caller.
    pub(super) fn end(&self, record: &Arc<RunRecord>, permit: Option<OwnedSemaphorePermit>) {
        {
            let mut state = self.state();
            state.run.summary = record.summary.clone();
            state.run.output.clone_from(&record.output);
            state.run.value.clone_from(&record.value);
            self.board.run_update(&self.tenant, Arc::new(state.run.clone()));
        }
        self.tell(RunEventPayload::terminal((**record).clone()));
        drop(permit);
        let mut state = self.state();
        state.events = None;
        if let Some(result) = state.result.take() {
            // The caller may have gone away; the record is stored all the same.
            let _ = result.send(Arc::clone(record));
        }
    }

    fn state(&self) -> MutexGuard<'_, LiveState> {
        // No call under the lock can leave the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for LiveEvents {
    fn emit(&self, event: AgentEvent) {
        self.tell(RunEventPayload::Agent(event));
    }

    fn step_recorded(&self, step_number: usize, step: &Arc<StepExecution>) {
        {
            let mut state = self.state();
            state.run.summary.step_count = step_number as u64;
            state.run.summary.usage = state.run.summary.usage + step.step.usage();
            state
                .run
                .steps
                .push(Arc::new(StepRecord::new(step_number as u64, step)));
            self.board.run_update(&self.tenant, Arc::new(state.run.clone()));
        }
        self.emit(AgentEvent::step_completed(step_number, step));
    }
}

/// A run whose task was lost to a fault of ours ends all the same.
impl Drop for LiveEvents {
    fn drop(&mut self) {
        if self.state().result.is_none() {
            return;
        }
        let mut summary = self.summary();
        summary.status = RunStatus::Failed;
        summary.error = Some(Failure::panicked().into_error());
        summary.completed_at = Some(self.clock.now());
        let run_id = summary.run_id;
        self.end(
            &Arc::new(RunRecord {
                summary,
                output: Vec::new(),
                value: None,
            }),
            None,
        );
        self.board.run_close(&self.tenant, run_id);
    }
}
