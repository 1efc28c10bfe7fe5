//! The compiler that sends the configured sections.

use std::collections::BTreeSet;

use super::{Compiler, Reading, Traces};
use crate::agent::state::AgentState;
use crate::message::Section;

/// Sends the messages of some sections in the order of the history, with the traces that the agent
/// wants.
#[derive(Debug, Clone)]
pub struct Sections {
    names: BTreeSet<Section>,
    traces: Traces,
}

impl Sections {
    /// Chooses the sections, and the traces of earlier executions.
    pub fn new(names: impl IntoIterator<Item = Section>, traces: Traces) -> Self {
        Self {
            names: names.into_iter().collect(),
            traces,
        }
    }
}

impl Compiler for Sections {
    fn read(&self, state: &AgentState) -> Reading {
        Reading::of(state, self.traces, |section| self.names.contains(section))
    }
}
