//! The progress of an execution, computed from the entries of its journal.
//!
//! Progress is a state and possibly a pending step. The pending step has one slot for each call:
//! open, decided, begun or ended. `AgentLoop::resume` continues from there, with a control that
//! already counts the spent usage (`ExecutionControl::with_spent`).

use super::entry::JournalEntry;
use crate::ports::ToolUse;
use crate::state::{AdditionGap, AgentState, AgentStep, ToolExecution};
use values::clock::Timestamp;
use values::message::ToolCall;
use values::session::EnvironmentState;
use values::usage::Usage;

/// The progress of an execution.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The state at the last entry.
    pub state: AgentState,
    /// The step that was interrupted during its calls.
    pub pending: Option<PendingStep>,
    /// The environment, if it has changed since the execution began.
    pub environment: Option<PersistedEnvironment>,
}

/// An environment as an execution has persisted it.
#[derive(Debug, Clone, PartialEq)]
pub struct PersistedEnvironment {
    /// The number of changes since the environment was first restored.
    pub revision: u64,
    /// The environment.
    pub state: Box<EnvironmentState>,
}

/// A step that has a completion and calls that have not ended.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingStep {
    pub(crate) step: AgentStep,
    pub(crate) started_at: Timestamp,
    /// The calls, in their order.
    pub(crate) calls: Vec<PendingCall>,
}

/// A call of a pending step.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingCall {
    /// The call as the model wrote it.
    pub(crate) call: ToolCall,
    /// The progress of the call.
    pub(crate) stage: CallStage,
}

/// The progress of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum CallStage {
    /// The call has made no progress.
    Open,
    /// The caller has edited its arguments. The hooks before it have not decided.
    Edited(ToolUse),
    /// The hooks before it have decided.
    Decided(ToolUse),
    /// The call has begun, and its outcome is unknown.
    Begun(ToolUse),
    /// The call has ended.
    Ended(Box<ToolExecution>),
}

impl Progress {
    /// Applies the entries to the state that the execution began with. Returns `None` if the
    /// execution has not reached its first step.
    pub fn of(begun: AgentState, entries: impl IntoIterator<Item = JournalEntry>) -> Result<Option<Self>, AdditionGap> {
        let mut state = begun;
        let mut pending: Option<PendingStep> = None;
        let mut environment = None;
        let mut has_begun = false;
        for entry in entries {
            match entry {
                JournalEntry::SubagentBegun { .. } => (),
                JournalEntry::EnvironmentChanged { revision, state } => {
                    let changed = PersistedEnvironment { revision, state };
                    environment = Some(newest(environment, changed));
                }
                JournalEntry::Reached(addition) => {
                    state = addition.onto(state)?;
                    pending = None;
                    has_begun = true;
                }
                JournalEntry::CallsRequested {
                    step,
                    started_at,
                    addition,
                } => {
                    state = addition.onto(state)?;
                    pending = Some(PendingStep::new(*step, started_at));
                }
                JournalEntry::CallDecided {
                    index,
                    tool_use,
                    addition,
                } => {
                    state = addition.onto(state)?;
                    call_at(&mut pending, index)?.decide(tool_use);
                }
                JournalEntry::CallBegun { index } => call_at(&mut pending, index)?.begin(),
                JournalEntry::CallEnded {
                    index,
                    execution,
                    addition,
                } => {
                    state = addition.onto(state)?;
                    call_at(&mut pending, index)?.stage = CallStage::Ended(execution);
                }
            }
        }
        Ok(has_begun.then_some(Self {
            state,
            pending,
            environment,
        }))
    }

    /// Returns the usage, including the completion and the calls of the pending step.
    pub fn spent(&self) -> Usage {
        let pending = self.pending.as_ref().map(PendingStep::usage);
        self.state.usage() + pending.unwrap_or_default()
    }

    /// Iterates over the ended calls, the calls of the pending step last. An item has the number of
    /// the step, the index of the call, and the execution.
    pub fn ended_calls(&self) -> impl Iterator<Item = (usize, usize, &ToolExecution)> {
        let steps = (1..).zip(self.state.steps());
        let completed = steps.flat_map(|(number, step)| {
            let calls = step.tool_executions.iter().enumerate();
            calls.map(move |(index, execution)| (number, index, execution))
        });
        let number = self.state.step_count() + 1;
        let pending = self.pending.iter().flat_map(|pending| pending.calls.iter().enumerate());
        completed.chain(pending.filter_map(move |(index, call)| Some((number, index, call.ended()?))))
    }
}

impl PendingStep {
    /// Makes a pending step. None of its calls has begun.
    pub(crate) fn new(step: AgentStep, started_at: Timestamp) -> Self {
        let open = |call: &ToolCall| PendingCall {
            call: call.clone(),
            stage: CallStage::Open,
        };
        let calls = step.tool_calls().map(open).collect();
        Self {
            step,
            started_at,
            calls,
        }
    }

    fn usage(&self) -> Usage {
        let ended = self.calls.iter().filter_map(PendingCall::ended);
        self.step.usage() + ended.map(|execution| execution.trace.usage).sum()
    }
}

impl PendingCall {
    fn decide(&mut self, tool_use: ToolUse) {
        if matches!(self.stage, CallStage::Open | CallStage::Edited(_)) {
            self.stage = CallStage::Decided(tool_use);
        }
    }

    fn begin(&mut self) {
        let tool_use = match &self.stage {
            CallStage::Open => ToolUse::undecided(self.call.clone()),
            CallStage::Decided(tool_use) | CallStage::Edited(tool_use) => tool_use.clone(),
            CallStage::Begun(_) | CallStage::Ended(_) => return,
        };
        self.stage = CallStage::Begun(tool_use);
    }

    fn ended(&self) -> Option<&ToolExecution> {
        match &self.stage {
            CallStage::Ended(execution) => Some(execution),
            CallStage::Open | CallStage::Edited(_) | CallStage::Decided(_) | CallStage::Begun(_) => None,
        }
    }
}

fn newest(known: Option<PersistedEnvironment>, other: PersistedEnvironment) -> PersistedEnvironment {
    known.filter(|known| known.revision > other.revision).unwrap_or(other)
}

fn call_at(pending: &mut Option<PendingStep>, index: usize) -> Result<&mut PendingCall, AdditionGap> {
    let call = pending.as_mut().and_then(|pending| pending.calls.get_mut(index));
    call.ok_or(AdditionGap::Call { index })
}
