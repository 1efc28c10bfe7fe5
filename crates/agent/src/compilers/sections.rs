//! The compiler that sends the messages of the conversation, of other sections as well, or of all.

use std::collections::BTreeSet;

use super::{Compiler, Reading, Traces, prefix};
use crate::state::{AgentState, Messages};
use values::message::Section;

/// Sends the messages of its sections in the order of the history. These include the traces of the
/// current execution, and traces of earlier executions as the agent wants them.
///
/// The requests of an execution begin like those of the execution before it, so that providers can
/// cache the beginning. Two events change it: a compaction, and the first final response after
/// executions without one, whose traces are not sent any more.
#[derive(Debug, Clone)]
pub struct Sections {
    /// The names of the sections; none for all sections.
    names: Option<BTreeSet<Section>>,
    traces: Traces,
}

impl Sections {
    /// Sends the conversation. This is the default.
    pub fn conversation(traces: Traces) -> Self {
        Self::named([Section::default()], traces)
    }

    /// Sends the messages of the named sections.
    pub fn named(names: impl IntoIterator<Item = Section>, traces: Traces) -> Self {
        let names = Some(names.into_iter().collect());
        Self { names, traces }
    }

    /// Sends the messages of all sections.
    pub fn all(traces: Traces) -> Self {
        Self { names: None, traces }
    }
}

impl Compiler for Sections {
    fn read(&self, state: &AgentState) -> Reading {
        let is_chosen = |section: &Section| self.names.as_ref().is_none_or(|names| names.contains(section));
        Reading::of(state, self.traces, is_chosen)
    }

    fn compile(&self, state: &AgentState) -> Messages {
        prefix::compile(state, self.traces, self.names.as_ref())
    }
}
