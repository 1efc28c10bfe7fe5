//! The default compiler: the conversation, and of its traces those of the current execution.

use super::{Compiler, Reading};
use crate::agent::state::AgentState;
use crate::message::Section;

/// Sends the conversation, and of its traces those of the current execution only.
///
/// The first request of each execution begins with the first one of the execution before, up to the next compaction.
#[derive(Debug, Clone, Copy, Default)]
pub struct ConversationWithCurrentTrace;

impl Compiler for ConversationWithCurrentTrace {
    fn read(&self, state: &AgentState) -> Reading {
        Reading::of(state, Section::is_messages)
    }
}
