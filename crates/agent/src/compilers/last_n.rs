//! The compiler that sends the newest turns of the conversation.

use super::{Compiler, IndexedMessage, Reading, Traces};
use crate::state::{AgentState, Messages};
use values::message::{Role, Section};

/// Sends the newest turns of the conversation, up to a total number of messages.
///
/// A turn consists of the messages that one execution added. For messages that no execution added,
/// a turn is a question and its completion. A tool result belongs to the turn of its call, even if
/// the caller sent the result.
///
/// The newest turn is always sent, even if it exceeds the number. So is every turn of an earlier
/// execution that has no final response yet, unless the agent wants no traces. The summary is sent
/// and not counted.
///
/// The oldest turns are dropped first. So the prefix of requests changes, and the provider's prompt
/// cache misses.
#[derive(Debug, Clone, Copy)]
pub struct LastN {
    messages: usize,
    traces: Traces,
}

impl LastN {
    /// Makes a compiler that sends up to `messages` messages, with these traces of earlier
    /// executions.
    pub fn new(messages: usize, traces: Traces) -> Self {
        Self { messages, traces }
    }
}

impl Compiler for LastN {
    fn read(&self, state: &AgentState) -> Reading {
        Reading::of(state, self.traces, Section::is_messages)
    }

    fn compile(&self, state: &AgentState) -> Messages {
        let reading = self.read(state);
        let turns: Vec<&[IndexedMessage]> = reading.messages.chunk_by(is_same_turn).collect();
        let is_unfinished = |turn: &&[IndexedMessage]| turn.iter().any(|indexed| reading.is_unfinished(indexed));
        let newest = turns.len().saturating_sub(1);
        let from = turns.iter().position(is_unfinished).unwrap_or(newest);
        let (older, newest) = turns.split_at(from.min(newest));
        let mut retained: usize = newest.iter().map(|turn| turn.len()).sum();
        for turn in older.iter().rev() {
            if retained + turn.len() > self.messages {
                break;
            }
            retained += turn.len();
        }
        let from = reading.messages.len() - retained;
        let messages = reading.messages.get(from..).unwrap_or_default().to_vec();
        Reading { messages, ..reading }.into_messages()
    }
}

fn is_same_turn(left: &IndexedMessage, right: &IndexedMessage) -> bool {
    if right.is_result() {
        return true;
    }
    let (left, right) = (&left.message, &right.message);
    if left.tags.execution_id.is_some() || right.tags.execution_id.is_some() {
        return left.tags.execution_id == right.tags.execution_id;
    }
    let asks = |role| matches!(role, Role::System | Role::User);
    asks(left.role) || !asks(right.role)
}
