//! The compiler that sends the messages of the conversation, of other sections as well, or of all.

use std::collections::BTreeSet;

use super::{Compiler, Reading, Traces};
use crate::agent::state::AgentState;
use crate::message::Section;

/// Sends the messages of its sections in the order of the history, the traces of the current
/// execution and, of those of earlier ones, what the agent wants.
///
/// The first request of each execution begins with the first one of the execution before, up to the
/// next compaction. Where earlier executions had no final response, it begins with the last one,
/// and once one has a final response the prefix changes once.
#[derive(Debug, Clone)]
pub struct Sections {
    /// All when none is named.
    names: Option<BTreeSet<Section>>,
    traces: Traces,
}

impl Sections {
    /// Sends the conversation: the default.
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
}
