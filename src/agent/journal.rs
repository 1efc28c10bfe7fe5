//! The journal of an execution: the port and its entries, so that another process can resume.
//!
//! An entry stores what is new since the entry before, so its size is that of the step. These are
//! the entries:
//!
//! ```text
//! SubagentBegun                       the first entry of a subagent's journal: names its session
//! Reached                             the input is there, a step is completed, messages have
//!                                     joined, or the execution has ended
//! Answered  CallDecided*  CallBegun*  one append, before the calls of a step begin
//! CallEnded  CallBegun?               one append, after a call has ended, before the next begins
//! ```
//!
//! An effect begins only after the entry of its beginning is persisted. An end is persisted before
//! the next effect begins. `CallDecided` exists only if hooks run before calls.
//!
//! The events of an entry are emitted right before it is appended, so that both can be persisted
//! together. `message.applied` alone follows its entry, since its readers forget the message.
//!
//! A failed append ends the execution: running calls are dropped, no hook is called, and nothing is
//! appended after it. Subagents share the failure.
//!
//! What no entry contains is lost with the process. A completion without calls is requested again
//! if its step was not completed. The effect of a call without a `CallEnded` is uncertain.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::hooks::ToolUse;
use super::state::{AgentStep, StateAddition, ToolExecution};
use crate::clock::Timestamp;
use crate::ids::{AgentId, SessionId};
use crate::session::Hash;

/// Persists entries in their order.
pub trait Journal: Send + Sync + fmt::Debug {
    /// Persists entries before the execution continues: all of them or none.
    fn append(&self, entries: Vec<JournalEntry>) -> BoxFuture<'_, Result<(), JournalError>>;
}

/// The journals of a run: one for each execution, in a scope of its own.
pub trait Journals: Send + Sync + fmt::Debug {
    /// Returns the journal of a scope. That of the run's own agent is the empty one; each
    /// subagent's is named by the key of its call.
    fn scope(&self, scope: &str) -> Arc<dyn Journal>;

    /// Returns the entries of a scope from earlier attempts, in their order; empty for a new scope.
    fn entries(&self, scope: &str) -> Vec<JournalEntry>;
}

/// A persisted entry. It contains only what is new since the one before.
#[derive(Debug, Clone, PartialEq)]
pub enum JournalEntry {
    /// A subagent begins: the first entry of its scope, so that it is resumed as the same agent.
    SubagentBegun {
        /// The session that it makes.
        session_id: SessionId,
        /// The agent instance.
        agent_id: AgentId,
        /// The version of its definition.
        agent_version: Hash,
    },
    /// The execution has its input, or has completed a step, or messages have joined it before one,
    /// or it has ended: what the state has more than at the entry before.
    Reached(StateAddition),
    /// A model has asked for tools, and none of its calls has begun.
    Answered {
        /// The step so far: the completion and its messages. It is not part of the state yet.
        step: Box<AgentStep>,
        /// When the step began.
        started_at: Timestamp,
        /// What the hooks since the entry before have changed in the state.
        addition: StateAddition,
    },
    /// The hooks before a call have decided about it. Where there are none, the call is executed as
    /// the model wrote it.
    CallDecided {
        /// The index of the call in the step, from 0.
        index: usize,
        /// The call as it is executed, and whether it is.
        tool_use: ToolUse,
        /// What the hooks have changed in the state.
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
        /// How it ended.
        execution: Box<ToolExecution>,
        /// What the hooks after it have changed in the state.
        addition: StateAddition,
    },
}

/// Why the journal has failed. The execution ends without a session of its own.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another process has taken the execution over.
    #[error("another worker has taken over")]
    Superseded,
    /// The entries can't be persisted.
    #[error("the progress of the execution can't be persisted")]
    Failed(#[source] Box<dyn Error + Send + Sync>),
}
