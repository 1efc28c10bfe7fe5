//! The default compiler: sends the conversation, with the traces that the agent asks for.

use super::{Compiler, Reading, Traces};
use crate::agent::state::AgentState;
use crate::message::Section;

/// Sends the conversation, the traces of the current execution and, of those of earlier ones, what
/// the agent wants.
///
/// The first request of each execution begins with the first one of the execution before, up to the
/// next compaction. Where earlier executions had no final response, it begins with the last one,
/// and once one has a final response the prefix changes once.
#[derive(Debug, Clone, Copy, Default)]
pub struct Conversation {
    traces: Traces,
}

impl Conversation {
    /// Chooses the traces of earlier executions.
    pub fn new(traces: Traces) -> Self {
        Self { traces }
    }
}

impl Compiler for Conversation {
    fn read(&self, state: &AgentState) -> Reading {
        Reading::of(state, self.traces, Section::is_messages)
    }
}
