//! Folds the chunks of an agent into messages.
//!
//! A step is a message with the id `{run}.{step}`, and each result of its calls is one whose id
//! begins with that.

use std::collections::BTreeMap;

use super::interrupt::object;
use super::message::{Ai, Content, Message, ToolCall, ToolResult};
use crate::http::faces::chat::Chunk;

/// Returns the step of a text or a call; `id` is its id in chunks.
fn step_of(id: &str) -> &str {
    id.split_once(':').map_or(id, |(step, _)| step)
}

/// Returns the id of the message of a step.
pub(super) fn message_id(owner: &str, id: &str) -> String {
    format!("{owner}.{}", step_of(id))
}

/// Messages that grow.
#[derive(Debug, Clone, Default)]
pub(in crate::http) struct Messages {
    pub(super) list: Vec<Message>,
    /// The names of the tools of the calls.
    names: BTreeMap<String, String>,
}

impl Messages {
    /// Makes the messages of a conversation so far.
    pub(in crate::http) fn new(list: Vec<Message>) -> Self {
        let calls = list.iter().flat_map(|message| match message {
            Message::Ai(message) => message.tool_calls.as_slice(),
            _ => &[],
        });
        let names = calls.map(|call| (call.id.clone(), call.name.clone())).collect();
        Self { list, names }
    }

    /// Adds what a chunk says; `owner` is the run of its step. Returns the result of a call, if the
    /// chunk has one.
    pub(super) fn add(&mut self, owner: &str, chunk: &Chunk) -> Option<ToolResult> {
        match chunk {
            Chunk::TextDelta { id, delta } => self.step(owner, id).content.push_str(delta),
            Chunk::ReasoningDelta { id, delta } => {
                let kwargs = &mut self.step(owner, id).additional_kwargs;
                kwargs.reasoning_content.push_str(delta);
            }
            Chunk::ToolInputAvailable {
                tool_call_id,
                tool_name,
                input,
            }
            | Chunk::ToolInputError {
                tool_call_id,
                tool_name,
                input,
                ..
            } => {
                self.names.insert(tool_call_id.clone(), tool_name.clone());
                let call = ToolCall {
                    id: tool_call_id.clone(),
                    name: tool_name.clone(),
                    args: object(input),
                    kind: "tool_call",
                };
                self.step(owner, tool_call_id).tool_calls.push(call);
            }
            _ => (),
        }
        match chunk {
            Chunk::ToolInputError {
                tool_call_id,
                error_text,
                ..
            }
            | Chunk::ToolOutputError {
                tool_call_id,
                error_text,
            } => self.end(owner, tool_call_id, Content::Text(error_text.clone()), "error"),
            Chunk::ToolOutputAvailable {
                tool_call_id,
                output,
                preliminary: false,
            } => self.end(owner, tool_call_id, Content::of_output(output.clone()), "success"),
            Chunk::ToolOutputDenied { tool_call_id, words } => {
                self.end(owner, tool_call_id, Content::Text(words.clone()), "error")
            }
            _ => None,
        }
    }

    /// Finds the message of a step, or adds it.
    fn step(&mut self, owner: &str, id: &str) -> &mut Ai {
        let id = message_id(owner, id);
        let is_step = |message: &Message| matches!(message, Message::Ai(message) if message.id == id);
        let found = self.list.iter().rposition(is_step);
        let at = found.unwrap_or(self.list.len());
        if found.is_none() {
            self.list.push(Message::Ai(Ai { id, ..Ai::default() }));
        }
        match &mut self.list[at] {
            Message::Ai(message) => message,
            _ => unreachable!("the message is one of a step"),
        }
    }

    /// Adds the result of a call, right after the message of its step and the results that are
    /// there. Nothing is known of a call that was cut.
    fn end(&mut self, owner: &str, call_id: &str, content: Content, status: &'static str) -> Option<ToolResult> {
        let result = ToolResult {
            id: format!("{owner}.{}", call_id.replacen(':', ".", 1)),
            tool_call_id: call_id.to_owned(),
            name: self.names.get(call_id)?.clone(),
            content,
            status,
        };
        let id = message_id(owner, call_id);
        let step = self.list.iter().rposition(|message| message.id() == id)?;
        let is_result = |message: &&Message| matches!(message, Message::Tool(_));
        let results = self.list[step + 1..].iter().take_while(is_result).count();
        self.list.insert(step + 1 + results, Message::Tool(result.clone()));
        Some(result)
    }
}
