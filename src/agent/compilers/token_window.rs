//! The compiler that sends as much of the conversation's end as fits a size.

use super::{Compiler, ConversationWithCurrentTrace, Placed, Reading};
use crate::agent::drivers::{content_bytes, estimated_tokens};
use crate::agent::state::{AgentState, Messages};
use crate::ids::ExecutionId;
use crate::message::{Message, Role};

/// Sends the newest messages whose estimated size fits, the system prompt and the summary counted.
///
/// The input of the current execution and the newest message, with the results of its calls, are sent whatever their size. Messages
/// leave at the front, so the prefix of requests changes and a provider's cache of it is lost.
#[derive(Debug, Clone, Copy)]
pub struct TokenWindow {
    max_tokens: u64,
}

impl TokenWindow {
    /// Allows so many tokens.
    pub fn new(max_tokens: u64) -> Self {
        Self { max_tokens }
    }
}

impl Compiler for TokenWindow {
    fn read(&self, state: &AgentState) -> Reading {
        ConversationWithCurrentTrace.read(state)
    }

    fn compile(&self, state: &AgentState) -> Messages {
        let reading = self.read(state);
        let current = state.execution().map(|execution| execution.execution_id);
        let is_pinned = |placed: &Placed| is_input(&placed.message, current);
        let summary = reading.summary.iter().map(|summary| tokens(&summary.message));
        let pinned = reading.messages.iter().filter(|placed| is_pinned(placed));
        let fixed: u64 = summary.chain(pinned.map(|placed| tokens(&placed.message))).sum();
        let system = estimated_tokens(state.context().system_prompt.len() as u64);
        let mut left = self.max_tokens.saturating_sub(fixed + system);

        // Calls and their results are one block.
        let blocks: Vec<&[Placed]> = reading.messages.chunk_by(|_, next| next.is_result()).collect();
        let mut kept: Vec<&[Placed]> = Vec::new();
        let mut is_full = false;
        for (age, block) in blocks.iter().rev().enumerate() {
            if block.iter().any(is_pinned) {
                kept.push(block);
                continue;
            }
            let size: u64 = block.iter().map(|placed| tokens(&placed.message)).sum();
            is_full |= size > left && age > 0;
            if !is_full {
                left = left.saturating_sub(size);
                kept.push(block);
            }
        }
        kept.reverse();
        if reading.summary.is_none() {
            // An answer without its question tells little, and some providers refuse a conversation that begins with one.
            let is_head =
                |placed: &Placed| is_pinned(placed) || matches!(placed.message.role, Role::System | Role::User);
            if let Some(head) = kept.iter().position(|block| block.iter().any(is_head)) {
                kept.drain(..head);
            }
        }
        let messages = kept.into_iter().flatten().cloned().collect();
        Reading { messages, ..reading }.into_messages()
    }
}

fn is_input(message: &Message, current: Option<ExecutionId>) -> bool {
    let tags = &message.tags;
    current.is_some() && tags.execution_id == current && tags.step_id.is_none() && !tags.is_trace
}

fn tokens(message: &Message) -> u64 {
    estimated_tokens(content_bytes(&message.content))
}
