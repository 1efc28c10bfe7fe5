//! The compiler that sends chosen sections.

use std::collections::BTreeSet;

use super::{Compiler, Reading};
use crate::agent::state::AgentState;
use crate::message::Section;

/// Sends the messages of some sections in the order of the history, and of their traces those of the current execution only.
#[derive(Debug, Clone)]
pub struct Sections {
    names: BTreeSet<Section>,
}

impl Sections {
    /// Chooses the sections.
    pub fn new(names: impl IntoIterator<Item = Section>) -> Self {
        Self {
            names: names.into_iter().collect(),
        }
    }
}

impl Compiler for Sections {
    fn read(&self, state: &AgentState) -> Reading {
        Reading::of(state, |section| self.names.contains(section))
    }
}
