//! Decides which traces of work a request contains. Traces of the current execution are always
//! sent, and traces of earlier executions as configured.
//!
//! A trace is a tool call, its result, or anything else that is not a final response. By default a
//! request leaves out the traces of earlier executions once one of them has a final response. So
//! the first request of turn n+1 begins with the bytes of the first request of turn n, and within a
//! turn each request begins with the one before.
//!
//! A stopped turn and the turn that continues it count as one. When the second one has its final
//! response, the prefix changes once.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use values::ids::ExecutionId;
use values::message::{Message, Role};
use values::session::History;

/// The traces of earlier executions that go to the model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Traces {
    /// The traces of all executions.
    All,
    /// The traces after the newest final response: the work of executions that ended without one.
    #[default]
    Unfinished,
    /// None.
    None,
}

/// The traces that the requests of one execution have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VisibleTraces {
    traces: Traces,
    execution: Option<ExecutionId>,
    /// The index after the newest final response of another execution.
    unfinished_from: usize,
}

impl VisibleTraces {
    /// Finds the traces among the messages of the range.
    ///
    /// A final response of the execution itself hides no traces, so its later requests still
    /// contain what its first request contained.
    pub(crate) fn of(traces: Traces, execution: Option<ExecutionId>, history: &History, range: Range<usize>) -> Self {
        let is_last_word = |message: &Message| {
            let is_others = execution.is_none() || message.tags.execution_id != execution;
            is_others && is_final_response(message)
        };
        let start = range.start;
        let newest = range
            .rev()
            .find(|index| history.get(*index).is_some_and(|message| is_last_word(message)));
        Self {
            traces,
            execution,
            unfinished_from: newest.map_or(start, |index| index + 1),
        }
    }

    /// Returns the traces that the requests of another execution contained, by the same choice.
    pub(super) fn of_execution(self, execution: Option<ExecutionId>, history: &History, range: Range<usize>) -> Self {
        Self::of(self.traces, execution, history, range)
    }

    /// Returns whether the trace at the index is visible.
    pub(crate) fn have(&self, index: usize, message: &Message) -> bool {
        let is_own = self.execution.is_some() && message.tags.execution_id == self.execution;
        is_own
            || match self.traces {
                Traces::All => true,
                Traces::Unfinished => index >= self.unfinished_from,
                Traces::None => false,
            }
    }

    /// Returns the index from which traces of other executions may be visible now and hidden later.
    pub(super) fn unfinished_from(&self) -> usize {
        self.unfinished_from
    }

    /// Returns whether the message at the index is a trace of another execution that has no final
    /// response yet.
    pub(super) fn is_unfinished(&self, index: usize, message: &Message) -> bool {
        let is_others = self.execution.is_none() || message.tags.execution_id != self.execution;
        is_others && message.tags.is_trace && index >= self.unfinished_from
    }
}

/// Returns whether the message is the final response of an execution. A cut completion is not.
fn is_final_response(message: &Message) -> bool {
    let tags = &message.tags;
    let is_answer = message.role == Role::Assistant && tags.step_id.is_some();
    is_answer && !tags.is_trace && !tags.is_partial && tags.covers.is_none()
}
