//! The compiler that leaves no section out.

use super::{Compiler, Reading};
use crate::agent::state::AgentState;

/// Sends the messages of all sections in the order of the history, and of their traces those of the current execution only.
#[derive(Debug, Clone, Copy, Default)]
pub struct AllSections;

impl Compiler for AllSections {
    fn read(&self, state: &AgentState) -> Reading {
        Reading::of(state, |_| true)
    }
}
