//! The compiler that sends the newest turns of the conversation.

use super::{Compiler, ConversationWithCurrentTrace, Placed, Reading};
use crate::agent::state::{AgentState, Messages};
use crate::message::Role;

/// Sends the newest turns that have no more messages together than allowed; the newest one is sent whatever its length.
///
/// A turn is what an execution added. Among messages that no execution added it is what was asked and what was answered. Results belong
/// to the turn of their calls, whoever brought them. The summary is sent as well and not counted. Turns leave at the front, so the prefix of requests changes and a provider's cache of it is lost.
#[derive(Debug, Clone, Copy)]
pub struct LastN {
    messages: usize,
}

impl LastN {
    /// Allows so many messages.
    pub fn new(messages: usize) -> Self {
        Self { messages }
    }
}

impl Compiler for LastN {
    fn read(&self, state: &AgentState) -> Reading {
        ConversationWithCurrentTrace.read(state)
    }

    fn compile(&self, state: &AgentState) -> Messages {
        let reading = self.read(state);
        let turns: Vec<&[Placed]> = reading.messages.chunk_by(is_same_turn).collect();
        let mut kept = 0;
        for turn in turns.iter().rev() {
            if kept > 0 && kept + turn.len() > self.messages {
                break;
            }
            kept += turn.len();
        }
        let from = reading.messages.len() - kept;
        let messages = reading.messages.get(from..).unwrap_or_default().to_vec();
        Reading { messages, ..reading }.into_messages()
    }
}

fn is_same_turn(left: &Placed, right: &Placed) -> bool {
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
