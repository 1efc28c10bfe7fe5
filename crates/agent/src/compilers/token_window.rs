//! The compiler that sends the newest messages of the conversation that fit a size.

use std::collections::{BTreeMap, BTreeSet};

use super::{Compiler, IndexedMessage, Reading, Traces};
use crate::model_calls::{estimated_tokens, message_tokens};
use crate::state::{AgentState, Messages};
use values::ids::ExecutionId;
use values::message::{Role, Section};

/// Sends the newest messages whose estimated size fits. The system prompt and the summary also
/// count.
///
/// The input of the current execution is always sent. So is the newest message with the results of
/// its calls. Traces of an earlier execution are sent together with its input, so both must fit.
/// The oldest messages are dropped first. So the prefix of requests changes, and the provider's
/// prompt cache misses.
#[derive(Debug, Clone, Copy)]
pub struct TokenWindow {
    max_tokens: u64,
    traces: Traces,
}

impl TokenWindow {
    /// Makes a compiler that sends up to `max_tokens` tokens, with these traces of earlier
    /// executions.
    pub fn new(max_tokens: u64, traces: Traces) -> Self {
        Self { max_tokens, traces }
    }
}

impl Compiler for TokenWindow {
    fn read(&self, state: &AgentState) -> Reading {
        Reading::of(state, self.traces, Section::is_messages)
    }

    fn compile(&self, state: &AgentState) -> Messages {
        let reading = self.read(state);
        let current = state.execution().map(|execution| execution.execution_id);
        // The executions whose input is sent: the current one, and those whose traces are sent.
        let mut asked: BTreeSet<ExecutionId> = current.into_iter().collect();
        let inputs = input_tokens(&reading);
        let input_size = |id: &ExecutionId| inputs.get(id).copied().unwrap_or_default();
        let summary = reading.summary.iter().map(|summary| message_tokens(&summary.message));
        let fixed = summary.sum::<u64>() + current.iter().map(input_size).sum::<u64>();
        let system = estimated_tokens(state.context().prompt_bytes());
        let mut left = self.max_tokens.saturating_sub(fixed + system);

        // Calls and their results are one block.
        let blocks: Vec<&[IndexedMessage]> = reading.messages.chunk_by(|_, next| next.is_result()).collect();
        let mut retained: Vec<&[IndexedMessage]> = Vec::new();
        let mut is_full = false;
        for (age, block) in blocks.iter().rev().enumerate() {
            if block.iter().any(|indexed| is_input_of(indexed, &asked)) {
                retained.push(block);
                continue;
            }
            if is_full {
                continue;
            }
            let asker = block.iter().find_map(work_of).filter(|id| !asked.contains(id));
            let question = asker.as_ref().map(input_size).unwrap_or_default();
            let size = question
                + block
                    .iter()
                    .map(|indexed| message_tokens(&indexed.message))
                    .sum::<u64>();
            is_full = size > left && age > 0;
            if !is_full {
                left = left.saturating_sub(size);
                asked.extend(asker);
                retained.push(block);
            }
        }
        retained.reverse();
        if reading.summary.is_none() {
            // A completion without its question is of little use. Some providers also reject a
            // conversation that begins with a completion.
            let asks = |indexed: &IndexedMessage| matches!(indexed.message.role, Role::System | Role::User);
            let is_head = |indexed: &IndexedMessage| is_input_of(indexed, &asked) || asks(indexed);
            if let Some(head) = retained.iter().position(|block| block.iter().any(is_head)) {
                retained.drain(..head);
            }
        }
        let messages = retained.into_iter().flatten().cloned().collect();
        Reading { messages, ..reading }.into_messages()
    }
}

/// Returns the execution of a trace.
fn work_of(indexed: &IndexedMessage) -> Option<ExecutionId> {
    let tags = &indexed.message.tags;
    tags.execution_id.filter(|_| tags.is_trace)
}

/// Returns the execution of an input message.
fn input_of(indexed: &IndexedMessage) -> Option<ExecutionId> {
    let tags = &indexed.message.tags;
    tags.execution_id.filter(|_| tags.step_id.is_none() && !tags.is_trace)
}

fn is_input_of(indexed: &IndexedMessage, executions: &BTreeSet<ExecutionId>) -> bool {
    input_of(indexed).is_some_and(|id| executions.contains(&id))
}

/// Returns the size of the input of each execution.
fn input_tokens(reading: &Reading) -> BTreeMap<ExecutionId, u64> {
    let mut inputs = BTreeMap::new();
    for indexed in &reading.messages {
        if let Some(id) = input_of(indexed) {
            *inputs.entry(id).or_default() += message_tokens(&indexed.message);
        }
    }
    inputs
}
