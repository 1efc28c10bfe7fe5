//! The rule for every committed history, so that every provider accepts it.
//!
//! Each tool call has exactly one result, right after the message with the call, and no message is
//! empty.

use std::collections::BTreeSet;

use super::coverage::CoverageFault;
use super::history::History;
use crate::message::{ContentPart, Message, Role, Section, ToolCall, ToolResult};

/// Why providers would refuse a history. Indices count the checked messages from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistoryFault {
    /// A message has no content.
    #[error("the message at index {index} has no content")]
    EmptyMessage {
        /// The message's index.
        index: usize,
    },
    /// A message of another role than the assistant has a tool call.
    #[error("the message at index {index} has a tool call, and only assistant messages may have one")]
    MisplacedCall {
        /// The message's index.
        index: usize,
    },
    /// A message of another role than the tool has a tool result.
    #[error("the message at index {index} has a tool result, and only tool messages may have one")]
    MisplacedResult {
        /// The message's index.
        index: usize,
    },
    /// A tool message has content other than results.
    #[error("the tool message at index {index} holds something else than tool results")]
    MixedToolMessage {
        /// The message's index.
        index: usize,
    },
    /// A call without an id or without a tool.
    #[error("the message at index {index} has a tool call or result whose id or tool name is empty")]
    Nameless {
        /// The message's index.
        index: usize,
    },
    /// A call has no result.
    #[error("the tool call {call_id:?} has no result")]
    OpenCall {
        /// The call.
        call_id: String,
    },
    /// A result has no open call: the call does not exist, or already has a result.
    #[error("the tool result {call_id:?} answers no open tool call")]
    StrayResult {
        /// The call that it names.
        call_id: String,
    },
    /// Two calls of one message share an id.
    #[error("the tool call id {call_id:?} is used twice in one message")]
    DuplicateCall {
        /// The id.
        call_id: String,
    },
    /// The tags of a result differ from the tags of its call, so a request could contain only one
    /// of them.
    #[error("the tool result {call_id:?} has another `section` or `is_trace` tag than its tool call")]
    ForeignTags {
        /// The call.
        call_id: String,
    },
    /// A summary covers messages that it can't replace.
    #[error(transparent)]
    Coverage(#[from] CoverageFault),
}

/// Returns the first fault of the messages.
pub fn find_history_fault<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Option<HistoryFault> {
    find_fault(messages).err()
}

fn find_fault<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Result<(), HistoryFault> {
    let mut open = OpenCalls::default();
    for (index, message) in messages.into_iter().enumerate() {
        check_content(message, index)?;
        if message.role == Role::Tool {
            open.answer(message)?;
        } else {
            open.check_none()?;
            open.ask(message)?;
        }
    }
    open.check_none()
}

fn check_content(message: &Message, index: usize) -> Result<(), HistoryFault> {
    let is_result = |part: &ContentPart| matches!(part, ContentPart::ToolResult(_));
    if is_empty(message) {
        return Err(HistoryFault::EmptyMessage { index });
    }
    if message.role != Role::Assistant && message.tool_calls().next().is_some() {
        return Err(HistoryFault::MisplacedCall { index });
    }
    if message.role != Role::Tool && message.tool_results().next().is_some() {
        return Err(HistoryFault::MisplacedResult { index });
    }
    if message.role == Role::Tool && !message.content.iter().all(is_result) {
        return Err(HistoryFault::MixedToolMessage { index });
    }
    let mut calls = message.tool_calls().map(|call| (&call.id, &call.name));
    let mut results = message.tool_results().map(|result| (&result.call_id, &result.name));
    let is_nameless = |(id, name): (&String, &String)| id.is_empty() || name.is_empty();
    if calls.any(is_nameless) || results.any(is_nameless) {
        return Err(HistoryFault::Nameless { index });
    }
    Ok(())
}

/// Returns whether a message has no content. Only a message of the model may consist of a
/// provider's fields, with or without an empty text.
fn is_empty(message: &Message) -> bool {
    match message.role {
        Role::Assistant => message.content.is_empty() && message.provider_fields.is_none(),
        Role::System | Role::User => message.content.iter().all(|part| part.as_text() == Some("")),
        Role::Tool => message.content.is_empty(),
    }
}

/// The calls of the newest message with calls that have no result yet.
#[derive(Default)]
struct OpenCalls<'a> {
    ids: BTreeSet<&'a str>,
    /// The tags by which a compiler chooses messages.
    tags: Option<(&'a Section, bool)>,
}

impl<'a> OpenCalls<'a> {
    fn ask(&mut self, message: &'a Message) -> Result<(), HistoryFault> {
        self.tags = Some((&message.tags.section, message.tags.is_trace));
        for call in message.tool_calls() {
            if !self.ids.insert(&call.id) {
                let call_id = call.id.clone();
                return Err(HistoryFault::DuplicateCall { call_id });
            }
        }
        Ok(())
    }

    fn answer(&mut self, message: &Message) -> Result<(), HistoryFault> {
        let has_same_tags = self.tags == Some((&message.tags.section, message.tags.is_trace));
        for result in message.tool_results() {
            let call_id = result.call_id.clone();
            if !self.ids.remove(result.call_id.as_str()) {
                return Err(HistoryFault::StrayResult { call_id });
            }
            if !has_same_tags {
                return Err(HistoryFault::ForeignTags { call_id });
            }
        }
        Ok(())
    }

    fn check_none(&self) -> Result<(), HistoryFault> {
        self.ids.first().map_or(Ok(()), |call_id| {
            let call_id = (*call_id).to_owned();
            Err(HistoryFault::OpenCall { call_id })
        })
    }
}

/// Returns error results for the open calls of the newest messages. The message with these results
/// needs the tags of the last message.
pub fn close_open_tool_calls(history: &History, explanation: &str) -> Vec<ContentPart> {
    let mut answered: BTreeSet<&str> = BTreeSet::new();
    for message in history.iter().rev() {
        answered.extend(message.tool_results().map(|result| result.call_id.as_str()));
        if message.role == Role::Tool {
            continue;
        }
        let open = message.tool_calls().filter(|call| !answered.contains(call.id.as_str()));
        return open.map(|call| error_result(call, explanation)).collect();
    }
    Vec::new()
}

fn error_result(call: &ToolCall, explanation: &str) -> ContentPart {
    ContentPart::ToolResult(ToolResult {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: vec![ContentPart::text(explanation)],
        is_error: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;
    use crate::ids::{MessageId, UuidV7Source};
    use crate::json::RawJson;
    use crate::message::{MessageTags, ProviderFields, ReasoningPart};

    fn message(role: Role, content: Vec<ContentPart>) -> Message {
        Message::new(MessageId::generate(&UuidV7Source), role, content, Timestamp::UNIX_EPOCH)
    }

    fn call(id: &str, name: &str) -> ContentPart {
        ContentPart::ToolCall(ToolCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: "{}".to_owned(),
            signature: None,
        })
    }

    fn result(call_id: &str, name: &str) -> ContentPart {
        ContentPart::ToolResult(ToolResult {
            call_id: call_id.to_owned(),
            name: name.to_owned(),
            content: Vec::new(),
            is_error: false,
        })
    }

    fn asks(ids: &[&str]) -> Message {
        message(Role::Assistant, ids.iter().map(|id| call(id, "t")).collect())
    }

    fn answers(ids: &[&str]) -> Message {
        message(Role::Tool, ids.iter().map(|id| result(id, "t")).collect())
    }

    fn says(role: Role) -> Message {
        message(role, vec![ContentPart::text("x")])
    }

    fn trace(message: Message) -> Message {
        message.with_tags(MessageTags {
            is_trace: true,
            ..MessageTags::default()
        })
    }

    #[test]
    fn what_an_agent_produces_is_valid() {
        let reasoning = message(Role::Assistant, vec![ContentPart::Reasoning(ReasoningPart::default())]);
        let fields_only = Message {
            provider_fields: Some(ProviderFields {
                provider: "mock".to_owned(),
                model: None,
                fields: vec![("a".to_owned(), RawJson::new("1"))],
            }),
            ..message(Role::Assistant, Vec::new())
        };
        let history = [
            says(Role::System),
            says(Role::User),
            reasoning,
            fields_only,
            trace(asks(&["a", "b"])),
            trace(answers(&["b"])),
            trace(answers(&["a"])),
            asks(&["a"]),
            answers(&["a"]),
        ];
        assert_eq!(find_history_fault(&history), None);
    }

    #[test]
    fn every_fault_is_found_and_described() {
        // The faults of an import are in the tests of the service.
        let named = |id: &str, name: &str| {
            let asked = message(Role::Assistant, vec![call(id, name)]);
            vec![asked, message(Role::Tool, vec![result(id, name)])]
        };
        let no_content = vec![asks(&["a"]), message(Role::Tool, Vec::new())];
        let unnamed_result = vec![asks(&["a"]), message(Role::Tool, vec![result("a", "")])];
        let no_result = "something else than tool results";
        let cases = [
            (no_content, "index 1 has no content"),
            (vec![message(Role::Tool, vec![ContentPart::text("x")])], no_result),
            (named("", "t"), "name is empty"),
            (named("a", ""), "name is empty"),
            (unnamed_result, "name is empty"),
            (vec![asks(&["a"])], "\"a\" has no result"),
            (vec![asks(&["a"]), asks(&["b"])], "\"a\" has no result"),
            (vec![says(Role::User), answers(&["a"])], "answers no open tool call"),
            (vec![asks(&["a", "a"]), answers(&["a"])], "used twice"),
        ];
        for (messages, words) in cases {
            let fault = find_history_fault(&messages).map(|fault| fault.to_string());
            assert!(
                fault.as_ref().is_some_and(|fault| fault.contains(words)),
                "{fault:?}: {words}"
            );
        }
    }
}
