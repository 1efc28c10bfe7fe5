//! The journal of an execution: the port and its entries, so that another process can resume.
//!
//! An entry stores only changes since the previous entry, so its size does not grow with the
//! conversation. These are the entries:
//!
//! ```text
//! SubagentBegun                       the first entry of a subagent's journal: names its session
//! Reached                             the input is there, a step is completed, messages have
//!                                     joined, or the execution has ended
//! CallsRequested                      a model has requested the calls of a step
//! CallDecided*  CallBegun*            the calls of the step begin
//! CallEnded                           a call has ended
//! EnvironmentChanged                  the last entry of an append, if variables, resources or
//!                                     files have changed since the one before
//! ```
//!
//! # When entries are persisted
//!
//! An append is a write that the execution waits for, so there are as few as possible. An effect
//! begins only after the entry of its beginning is persisted. The end of a phase is persisted
//! before the next effect or model request begins. So the entries are collected, and appended at
//! these moments:
//!
//! - before calls with effects begin, together with the end of the call before;
//! - before the next step, together with the end of the last call. A step whose calls have no
//!   effects has this append only;
//! - before a hook with effects is called;
//! - before the execution is handed over to another process.
//!
//! The entries of the last step are never appended if the commit of the run follows at once. An
//! execution of one step without tools appends nothing. `CallDecided` exists only if hooks run
//! before calls.
//!
//! The events of an entry are emitted right before the entry is appended, and both are persisted
//! together. Only `message.applied` follows its entry, since a reader of this event drops the
//! message.
//!
//! A failed append ends the execution: running calls are dropped, no hook is called, and nothing is
//! appended after it. Subagents share the failure.
//!
//! Work without an entry is lost with the process. A completion is requested again unless one of
//! its calls had effects or its step was completed. The effect of a call without a `CallEnded` is
//! uncertain.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::ports::ToolUse;
use crate::state::{AgentStep, StateAddition, ToolExecution};
use values::clock::Timestamp;
use values::ids::{AgentId, SessionId};
use values::session::{EnvironmentState, Hash};

/// Persists entries in their order.
pub trait Journal: Send + Sync + fmt::Debug {
    /// Persists all entries or none. The execution continues afterwards.
    fn append(&self, entries: Vec<JournalEntry>) -> BoxFuture<'_, Result<(), JournalError>>;
}

/// The journals of a run. Each execution has one, in a separate scope.
pub trait Journals: Send + Sync + fmt::Debug {
    /// Returns the journal of a scope. The scope of the run's own agent is empty; the scope of a
    /// subagent is the key of its call.
    fn scope(&self, scope: &str) -> Arc<dyn Journal>;

    /// Returns the entries of a scope from earlier attempts, in their order; empty for a new scope.
    fn entries(&self, scope: &str) -> Vec<JournalEntry>;
}

/// A persisted entry. It contains only changes since the previous entry.
#[derive(Debug, Clone, PartialEq)]
pub enum JournalEntry {
    /// A subagent begins. This is the first entry of its scope, so that the subagent resumes as the
    /// same agent.
    SubagentBegun {
        /// The session that it creates.
        session_id: SessionId,
        /// The agent instance.
        agent_id: AgentId,
        /// The version of its definition.
        agent_version: Hash,
        /// The environment with which it begins; `None` if it shares the environment of its parent
        /// agent.
        environment: Option<Box<EnvironmentState>>,
    },
    /// The environment has changed. Persisted together with the entries before it.
    EnvironmentChanged {
        /// The number of changes since the environment was first restored. Executions that share an
        /// environment may persist it at once, so the highest revision of the scope is the newest.
        revision: u64,
        /// The environment.
        state: Box<EnvironmentState>,
    },
    /// The execution has its input, has completed a step, has received messages before a step, or
    /// has ended. Contains the additions to the state since the previous entry.
    Reached(StateAddition),
    /// A model has requested tools. None of its calls has begun.
    CallsRequested {
        /// The step so far: the completion and its messages. It is not part of the state yet.
        step: Box<AgentStep>,
        /// When the step began.
        started_at: Timestamp,
        /// The changes of the state by hooks since the previous entry.
        addition: StateAddition,
    },
    /// The hooks before a call have decided about it. Without such hooks, the call is executed as
    /// the model wrote it.
    CallDecided {
        /// The index of the call in the step, from 0.
        index: usize,
        /// The call with the changes of the hooks, and whether it is executed.
        tool_use: ToolUse,
        /// The changes of the state by the hooks.
        addition: StateAddition,
    },
    /// A call begins.
    CallBegun {
        /// The index of the call in the step, from 0.
        index: usize,
    },
    /// A call has ended, and the hooks have seen it.
    CallEnded {
        /// The index of the call in the step, from 0.
        index: usize,
        /// The execution of the call.
        execution: Box<ToolExecution>,
        /// The changes of the state by the hooks after the call.
        addition: StateAddition,
    },
}

impl JournalEntry {
    /// Returns the files that the entry refers to.
    pub fn tree(&self) -> Option<Hash> {
        match self {
            Self::EnvironmentChanged { state, .. } => state.tree(),
            Self::SubagentBegun { environment, .. } => environment.as_ref()?.tree(),
            Self::Reached(_)
            | Self::CallsRequested { .. }
            | Self::CallDecided { .. }
            | Self::CallBegun { .. }
            | Self::CallEnded { .. } => None,
        }
    }
}

/// The failure of a journal. The execution ends without a session.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process has taken the execution over.
    #[error("another worker has taken over")]
    Superseded,
    /// The entries can't be persisted.
    #[error("the progress of the execution can't be persisted")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}
