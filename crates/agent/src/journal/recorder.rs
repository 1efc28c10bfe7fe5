//! Records an execution in its journal. The loop and its driver decide when.
//!
//! The recorder has the state that results from all entries so far. So each new entry contains only
//! the changes since then (`AgentState::since`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::{Mutex, MutexGuard};

use super::entry::{Journal, JournalEntry, JournalError};
use crate::ports::ToolUse;
use crate::run_error::RunErrorCode;
use crate::state::{
    AgentError, AgentState, AgentStep, ErrorKind, StateAddition, StopReason, StopSignal, ToolExecution,
};
use values::clock::Timestamp;
use workspace::environment::{Environment, EnvironmentError};

/// Names the journal as the source of errors and stop signals.
const JOURNAL: &str = "journal";

/// Records one execution. After a failure nothing more is persisted, and the execution ends.
#[derive(Debug)]
pub struct Recorder {
    journal: Arc<dyn Journal>,
    environment: RecordedEnvironment,
    recording: Mutex<Recording>,
    /// Whether a commit follows the end of the execution, and persists it.
    is_committed_at_end: bool,
    /// Shared by the executions of a run, so that all end together.
    failure: Arc<OnceLock<JournalError>>,
}

#[derive(Debug)]
struct Recording {
    /// The state after all entries.
    last: AgentState,
    /// Entries that are not persisted yet.
    pending: Vec<JournalEntry>,
}

/// The environment of an execution, which is persisted with the next entries after a change.
#[derive(Debug)]
struct RecordedEnvironment {
    environment: Arc<Environment>,
    /// The journal of the execution that shares its environment with this one; `None` if the
    /// environment is this execution's own.
    owner: Option<Arc<dyn Journal>>,
    /// The revision that is persisted. Shared like the environment.
    persisted: Arc<AtomicU64>,
}

/// The error of a failed journal. The execution must end without any further effect.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JournalFailed;

impl Recorder {
    /// Records the changes after a state: the state that the execution begins with, or the state
    /// that results from its entries.
    pub fn new(journal: Arc<dyn Journal>, begun: AgentState, environment: Arc<Environment>) -> Self {
        Self {
            journal,
            environment: RecordedEnvironment {
                persisted: Arc::new(AtomicU64::new(environment.revision())),
                environment,
                owner: None,
            },
            recording: Mutex::new(Recording {
                last: begun,
                pending: Vec::new(),
            }),
            is_committed_at_end: true,
            failure: Arc::default(),
        }
    }

    /// Makes the recorder of a subagent. If either journal fails, both executions end. An
    /// environment that the subagent shares is persisted in the journal of its owner.
    #[must_use]
    pub fn for_subagent(&self, journal: Arc<dyn Journal>, begun: AgentState, environment: Arc<Environment>) -> Self {
        let failure = Arc::clone(&self.failure);
        let mut recorder = Self::new(journal, begun, environment);
        if Arc::ptr_eq(&recorder.environment.environment, &self.environment.environment) {
            let owner = self.environment.owner.as_ref().unwrap_or(&self.journal);
            recorder.environment.owner = Some(Arc::clone(owner));
            recorder.environment.persisted = Arc::clone(&self.environment.persisted);
        }
        Self {
            failure,
            // The run goes on after it, and needs its session at the end.
            is_committed_at_end: false,
            ..recorder
        }
    }

    /// Adds a first entry, which is persisted together with the next one.
    #[must_use]
    pub fn beginning_with(self, entry: JournalEntry) -> Self {
        self.recording().pending.push(entry);
        self
    }

    /// Returns whether a commit follows the end of the execution at once.
    pub(crate) fn is_committed_at_end(&self) -> bool {
        self.is_committed_at_end
    }

    /// Returns the failure of the journal, if any.
    pub fn failure(&self) -> Option<&JournalError> {
        self.failure.get()
    }

    /// Records the state between two steps.
    pub(crate) fn reached(&self, state: &AgentState) {
        self.note(state, JournalEntry::Reached);
    }

    /// Notes a step whose calls are to be executed.
    pub(crate) fn calls_requested(&self, step: &AgentStep, started_at: Timestamp, state: &AgentState) {
        self.note(state, |addition| JournalEntry::CallsRequested {
            step: Box::new(step.clone()),
            started_at,
            addition,
        });
    }

    /// Notes the decision of hooks about a call.
    pub(crate) fn decided(&self, index: usize, tool_use: &ToolUse, state: &AgentState) {
        self.note(state, |addition| JournalEntry::CallDecided {
            index,
            tool_use: tool_use.clone(),
            addition,
        });
    }

    /// Notes that a call begins.
    pub(crate) fn begun(&self, index: usize) {
        self.recording().pending.push(JournalEntry::CallBegun { index });
    }

    /// Notes that a call has ended.
    pub(crate) fn ended(&self, index: usize, execution: &ToolExecution, state: &AgentState) {
        self.note(state, |addition| JournalEntry::CallEnded {
            index,
            execution: Box::new(execution.clone()),
            addition,
        });
    }

    /// Persists the recorded entries, and the environment if it has changed.
    pub(crate) async fn flush(&self) -> Result<(), JournalFailed> {
        if self.failure.get().is_some() {
            return Err(JournalFailed);
        }
        let entries = std::mem::take(&mut self.recording().pending);
        if entries.is_empty() {
            return Ok(());
        }
        self.append(entries).await.map_err(|failure| {
            let error = &failure as &dyn std::error::Error;
            tracing::warn!(error, "the execution ends because its journal failed");
            // If several executions fail, the first failure stays.
            let _ = self.failure.set(failure);
            JournalFailed
        })
    }

    /// Returns the message for the caller if the journal failed because the tenant may not store
    /// more files.
    fn storage_limit(&self) -> Option<String> {
        match self.failure.get()? {
            JournalError::Failed(error) => error.downcast_ref::<EnvironmentError>()?.storage_limit(),
            JournalError::Superseded => None,
        }
    }

    async fn append(&self, mut entries: Vec<JournalEntry>) -> Result<(), JournalError> {
        if let Some((revision, changed)) = self.environment.change().await? {
            match &self.environment.owner {
                None => entries.push(changed),
                Some(owner) => owner.append(vec![changed]).await?,
            }
            self.environment.persisted.fetch_max(revision, Ordering::Relaxed);
        }
        self.journal.append(entries).await
    }

    fn note(&self, state: &AgentState, entry: impl FnOnce(StateAddition) -> JournalEntry) {
        let mut recording = self.recording();
        let addition = state.since(&recording.last);
        recording.last = state.clone();
        recording.pending.push(entry(addition));
    }

    fn recording(&self) -> MutexGuard<'_, Recording> {
        // Each entry is added by a single call, so the recording stays valid if another thread
        // panics.
        self.recording.lock()
    }
}

impl RecordedEnvironment {
    /// Returns the entry of a change that is not persisted yet, with its revision.
    async fn change(&self) -> Result<Option<(u64, JournalEntry)>, JournalError> {
        if self.environment.revision() == self.persisted.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let exported = self.environment.export_with_revision().await;
        let (state, revision) = exported.map_err(|error| JournalError::Failed(error.into()))?;
        let state = Box::new(state);
        Ok(Some((revision, JournalEntry::EnvironmentChanged { revision, state })))
    }
}

impl JournalFailed {
    /// Returns the state of an execution that ends because of the failure.
    pub(crate) fn in_state(state: AgentState, recorder: Option<&Recorder>, now: Timestamp) -> AgentState {
        let (code, message) = match recorder.and_then(Recorder::storage_limit) {
            Some(message) => (RunErrorCode::StorageQuotaExceeded, message),
            None => (
                RunErrorCode::JournalFailed,
                "the progress of the run can't be persisted".to_owned(),
            ),
        };
        let error = AgentError {
            kind: ErrorKind::Unknown,
            code: code.into(),
            message: message.clone(),
            source_name: Some(JOURNAL.to_owned()),
        };
        let signal = StopSignal::new(StopReason::ErrorForbade, JOURNAL, message).binding();
        state.with_error(error, now).with_stop_signal(signal, now)
    }
}
