//! Records an execution in its journal. The loop and its driver decide when.
//!
//! The recorder knows the state that the entries so far amount to. So each new entry contains only
//! what has changed since (`AgentState::since`).

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::hooks::ToolUse;
use super::journal::{Journal, JournalEntry, JournalError};
use super::state::{
    AgentError, AgentState, AgentStep, ErrorKind, StateAddition, StopReason, StopSignal, ToolExecution,
};
use crate::clock::Timestamp;

/// Names the journal as the source of errors and stop signals.
const JOURNAL: &str = "journal";
/// The code of an execution that could not be kept.
const JOURNAL_FAILED: &str = "journal_failed";

/// Records one execution. After a failure nothing more is kept, and the execution ends.
#[derive(Debug)]
pub struct Recorder {
    journal: Arc<dyn Journal>,
    recording: Mutex<Recording>,
    /// Shared by the executions of a run: where one is not kept any more, none is.
    failure: Arc<OnceLock<JournalError>>,
}

#[derive(Debug)]
struct Recording {
    /// The state that comes of all entries.
    last: AgentState,
    /// What is not handed to the journal yet.
    unkept: Vec<JournalEntry>,
}

/// The journal keeps nothing more, so the execution must end without any further effect.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unkept;

impl Recorder {
    /// Records what follows on a state: the one that the execution begins with, or that which its entries amount to.
    pub fn new(journal: Arc<dyn Journal>, begun: AgentState) -> Self {
        Self {
            journal,
            recording: Mutex::new(Recording {
                last: begun,
                unkept: Vec::new(),
            }),
            failure: Arc::default(),
        }
    }

    /// Records the execution of a subagent. When one of both fails, both end.
    #[must_use]
    pub fn for_subagent(&self, journal: Arc<dyn Journal>, begun: AgentState) -> Self {
        let failure = Arc::clone(&self.failure);
        Self {
            failure,
            ..Self::new(journal, begun)
        }
    }

    /// Begins the journal with an entry, which is kept together with the one that follows.
    #[must_use]
    pub fn beginning_with(self, entry: JournalEntry) -> Self {
        self.recording().unkept.push(entry);
        self
    }

    /// Returns why nothing more is kept, if something has failed.
    pub fn failure(&self) -> Option<&JournalError> {
        self.failure.get()
    }

    /// Notes where the execution stands between its steps.
    pub(super) fn reached(&self, state: &AgentState) {
        self.note(state, JournalEntry::Reached);
    }

    /// Notes a step whose calls are to be executed.
    pub(super) fn answered(&self, step: &AgentStep, started_at: Timestamp, state: &AgentState) {
        self.note(state, |addition| JournalEntry::Answered {
            step: Box::new(step.clone()),
            started_at,
            addition,
        });
    }

    /// Notes what hooks have decided about a call.
    pub(super) fn decided(&self, place: usize, tool_use: &ToolUse, state: &AgentState) {
        self.note(state, |addition| JournalEntry::CallDecided {
            place,
            tool_use: tool_use.clone(),
            addition,
        });
    }

    /// Notes that a call begins.
    pub(super) fn begun(&self, place: usize) {
        self.recording().unkept.push(JournalEntry::CallBegun { place });
    }

    /// Notes that a call has ended.
    pub(super) fn ended(&self, place: usize, execution: &ToolExecution, state: &AgentState) {
        self.note(state, |addition| JournalEntry::CallEnded {
            place,
            execution: Box::new(execution.clone()),
            addition,
        });
    }

    /// Keeps what was noted.
    pub(super) async fn keep(&self) -> Result<(), Unkept> {
        if self.failure.get().is_some() {
            return Err(Unkept);
        }
        let entries = std::mem::take(&mut self.recording().unkept);
        if entries.is_empty() {
            return Ok(());
        }
        self.journal.append(entries).await.map_err(|failure| {
            let error = &failure as &dyn std::error::Error;
            tracing::warn!(error, "an execution ends because its journal keeps nothing more");
            // The first failure of several executions stays.
            let _ = self.failure.set(failure);
            Unkept
        })
    }

    fn note(&self, state: &AgentState, entry: impl FnOnce(StateAddition) -> JournalEntry) {
        let mut recording = self.recording();
        let addition = state.since(&recording.last);
        recording.last = state.clone();
        recording.unkept.push(entry(addition));
    }

    fn recording(&self) -> MutexGuard<'_, Recording> {
        // A note is taken at once, so a panic elsewhere leaves the recording whole.
        self.recording.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Unkept {
    /// Returns the state of an execution that ends for it.
    pub(super) fn in_state(state: AgentState, now: Timestamp) -> AgentState {
        let message = "the progress of the run can't be kept";
        let error = AgentError {
            kind: ErrorKind::Unknown,
            code: JOURNAL_FAILED.to_owned(),
            message: message.to_owned(),
            source_name: Some(JOURNAL.to_owned()),
        };
        let signal = StopSignal::new(StopReason::ErrorForbade, JOURNAL, message).binding();
        state.with_error(error, now).with_stop_signal(signal, now)
    }
}
