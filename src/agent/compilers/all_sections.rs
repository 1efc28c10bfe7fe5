//! The compiler that sends messages of every section.

use super::{Compiler, Reading, Traces};
use crate::agent::state::AgentState;

/// Sends the messages of all sections in the order of the history, with the traces that the agent
/// wants.
#[derive(Debug, Clone, Copy)]
pub struct AllSections {
    traces: Traces,
}

impl AllSections {
    /// Chooses the traces of earlier executions.
    pub fn new(traces: Traces) -> Self {
        Self { traces }
    }
}

impl Compiler for AllSections {
    fn read(&self, state: &AgentState) -> Reading {
        Reading::of(state, self.traces, |_| true)
    }
}
