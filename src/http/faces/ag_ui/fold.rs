//! Folds events into messages, as a page does.

use super::event::{Event, Tagged};
use super::message::{Function, Message, Said, ToolCall};
use values::ids::SessionId;

/// Adds what an event says to messages, as a page does.
pub(super) fn fold(messages: &mut Vec<Message>, Tagged { event, subagent_run_id }: &Tagged) {
    let tag = *subagent_run_id;
    match event {
        Event::TextMessageStart { message_id, .. } => {
            assistant(messages, message_id, tag);
        }
        Event::TextMessageContent { message_id, delta } => {
            if let Said::Assistant { content, .. } = &mut assistant(messages, message_id, tag).said {
                content.push_str(delta);
            }
        }
        Event::ReasoningMessageStart { message_id, .. } => {
            let content = String::new();
            messages.push(Message::new(message_id.clone(), tag, Said::Reasoning { content }));
        }
        Event::ReasoningMessageContent { message_id, delta } => {
            let found = messages.iter_mut().rfind(|message| message.id == *message_id);
            if let Some(Said::Reasoning { content }) = found.map(|message| &mut message.said) {
                content.push_str(delta);
            }
        }
        Event::ToolCallStart {
            tool_call_id,
            tool_call_name,
            parent_message_id,
        } => {
            if let Said::Assistant { tool_calls, .. } = &mut assistant(messages, parent_message_id, tag).said {
                tool_calls.push(ToolCall {
                    id: tool_call_id.clone(),
                    kind: "function",
                    function: Function {
                        name: tool_call_name.clone(),
                        arguments: String::new(),
                    },
                });
            }
        }
        Event::ToolCallArgs { tool_call_id, delta } => {
            let mut calls = messages.iter_mut().rev().flat_map(Message::calls);
            if let Some(call) = calls.find(|call| call.id == *tool_call_id) {
                call.function.arguments.push_str(delta);
            }
        }
        Event::ToolCallResult {
            message_id,
            tool_call_id,
            content,
            ..
        } => {
            let said = Said::Tool {
                tool_call_id: tool_call_id.clone(),
                content: content.clone(),
            };
            let at = index_of_result(messages, tool_call_id);
            messages.insert(at, Message::new(message_id.clone(), tag, said));
        }
        _ => (),
    }
}

/// Finds a message of the agent, or adds it.
fn assistant<'m>(messages: &'m mut Vec<Message>, id: &str, tag: Option<SessionId>) -> &'m mut Message {
    let found = messages.iter().rposition(|message| message.id == id);
    let at = found.unwrap_or(messages.len());
    if found.is_none() {
        let said = Said::Assistant {
            content: String::new(),
            tool_calls: Vec::new(),
        };
        messages.push(Message::new(id.to_owned(), tag, said));
    }
    &mut messages[at]
}

/// Returns where the result of a call belongs: after the message with the call, and after the
/// results that are there.
fn index_of_result(messages: &mut [Message], tool_call_id: &str) -> usize {
    let count = messages.len();
    let has_call = |message: &mut Message| message.calls().any(|call| call.id == tool_call_id);
    let Some(owner) = messages.iter_mut().position(has_call) else {
        return count;
    };
    let is_result = |message: &&Message| matches!(message.said, Said::Tool { .. });
    owner + 1 + messages[owner + 1..].iter().take_while(is_result).count()
}
