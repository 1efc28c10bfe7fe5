//! Items become messages of a run, and answers to its open calls.
//!
//! A conversation here has messages with several parts, and a call's result right after the message
//! with the call. So the reasoning, the text and the calls of one turn of the model join in one
//! message, which gets its marks back, and results move to their calls.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::mem;

use super::items::Item;
use crate::http::codes::ProblemCode;
use crate::http::faces::openai::reasoning::Marks;
use crate::http::problem::Problem;
use crate::run::InputMessage;
use values::json::Object;
use values::message::{ContentPart, ReasoningPart, Role, Section, ToolCall, ToolResult};

/// The items of an input, by their use.
#[derive(Debug, Default, PartialEq)]
pub(in crate::http) struct Arranged {
    /// The new messages.
    pub(in crate::http) messages: Vec<InputMessage>,
    /// The results of open calls.
    pub(in crate::http) outputs: Vec<Output>,
    /// The decisions about open calls.
    pub(in crate::http) decisions: Vec<Decision>,
}

/// The result of a call.
#[derive(Debug, PartialEq)]
pub(in crate::http) struct Output {
    pub(in crate::http) call_id: String,
    pub(in crate::http) content: Vec<ContentPart>,
}

/// A decision about a call.
#[derive(Debug, PartialEq)]
pub(in crate::http) struct Decision {
    /// The index of its item.
    pub(in crate::http) index: usize,
    pub(in crate::http) request_id: String,
    pub(in crate::http) approves: bool,
    pub(in crate::http) reason: Option<String>,
}

/// The result of a call in an input.
struct CallResult {
    index: usize,
    content: Vec<ContentPart>,
    is_error: bool,
}

/// The results of an input by the ids of their calls, in their order. Some models use an id again
/// in another turn.
type Results = BTreeMap<String, VecDeque<CallResult>>;

/// A turn of the model that items add to.
#[derive(Default)]
struct Turn {
    content: Vec<ContentPart>,
    marks: Option<Marks>,
    calls: Vec<(usize, String, String)>,
    has_text: bool,
    /// Whether a result has come, so that what follows is another turn.
    is_answered: bool,
}

/// Arranges items. `open` are the calls of the base that wait for answers. A client may send such a
/// call again with its result, and the base has it already. `field` is the name of the list.
pub(in crate::http) fn arrange(
    mut items: Vec<(usize, Item)>,
    open: &BTreeSet<&str>,
    field: &str,
) -> Result<Arranged, Problem> {
    let mut arranged = Arranged::default();
    let mut history = History {
        field,
        results: take_results(&mut items),
        turn: Turn::default(),
        messages: Vec::new(),
    };
    for (index, item) in items {
        match item {
            Item::Message {
                role: Role::Assistant,
                content,
            } => history.add_text(content)?,
            Item::Message { role, content } => {
                history.end_turn()?;
                history.messages.push(message(role, content));
            }
            Item::Reasoning { text, marks } => history.add_reasoning(text, marks)?,
            Item::Call(call) if open.contains(call.id.as_str()) => (),
            Item::Call(call) => history.add_call(index, call)?,
            Item::ExecutedCall { call, .. } => {
                history.add_call(index, call)?;
                history.turn.is_answered = true;
            }
            Item::Output { .. } => history.turn.is_answered = true,
            Item::Decision {
                request_id,
                approves,
                reason,
            } => {
                arranged.decisions.push(Decision {
                    index,
                    request_id,
                    approves,
                    reason,
                });
            }
            // A reference was replaced by its item, if it has one.
            Item::ApprovalRequest | Item::Reference { .. } => (),
        }
    }
    history.end_turn()?;
    arranged.messages = history.messages;
    let results = history.results.into_iter();
    let numbered = |(id, results): (String, VecDeque<CallResult>)| {
        let results = results.into_iter().enumerate();
        results.map(move |(number, result)| (id.clone(), number, result))
    };
    for (call_id, number, result) in results.flat_map(numbered) {
        let words = match (open.contains(call_id.as_str()), number) {
            (true, 0) => None,
            (true, _) => Some(format!("There is another output for the call {call_id}.")),
            (false, _) => Some(format!(
                "No tool call found for function call output with call_id {call_id}."
            )),
        };
        if let Some(words) = words {
            return Err(Problem::invalid_field(format!("/{field}/{}", result.index), words));
        }
        arranged.outputs.push(Output {
            call_id,
            content: result.content,
        });
    }
    Ok(arranged)
}

/// Takes the results of calls out of their items.
fn take_results(items: &mut [(usize, Item)]) -> Results {
    let mut results = Results::new();
    for (index, item) in items {
        let (call_id, content, is_error) = match item {
            Item::Output { call_id, content } => (call_id, content, false),
            Item::ExecutedCall {
                call,
                content,
                is_error,
            } => (&mut call.id, content, *is_error),
            _ => continue,
        };
        let of_call = results.entry(call_id.clone()).or_default();
        of_call.push_back(CallResult {
            index: *index,
            content: mem::take(content),
            is_error,
        });
    }
    results
}

/// The messages so far.
struct History<'a> {
    field: &'a str,
    results: Results,
    turn: Turn,
    messages: Vec<InputMessage>,
}

impl History<'_> {
    /// Ends the turn if it has asked for tools or has its text, since what follows is another one.
    fn begin_part(&mut self) -> Result<(), Problem> {
        let turn = &self.turn;
        if turn.has_text || turn.is_answered || !turn.calls.is_empty() {
            self.end_turn()?;
        }
        Ok(())
    }

    /// Adds reasoning. The first of a message has its marks, and the rest comes before its calls.
    fn add_reasoning(&mut self, text: String, marks: Option<Marks>) -> Result<(), Problem> {
        match (marks.is_some(), self.turn.marks.is_some()) {
            (true, true) => self.end_turn()?,
            // More words may follow, also if the client has changed those before.
            (false, true) if self.turn.is_open() => self.turn.has_text = false,
            _ => self.begin_part()?,
        }
        if !text.is_empty() {
            let part = ReasoningPart {
                text,
                ..ReasoningPart::default()
            };
            self.turn.content.push(ContentPart::Reasoning(part));
        }
        self.turn.marks = self.turn.marks.take().or(marks);
        Ok(())
    }

    fn add_text(&mut self, content: Vec<ContentPart>) -> Result<(), Problem> {
        if !self.turn.lacks_words() {
            self.begin_part()?;
        }
        self.turn.has_text = !content.is_empty();
        self.turn.content.extend(content);
        Ok(())
    }

    fn add_call(&mut self, index: usize, call: ToolCall) -> Result<(), Problem> {
        if self.turn.is_answered && !self.turn.lacks_call(&call.id) {
            self.end_turn()?;
        }
        self.turn.calls.push((index, call.id.clone(), call.name.clone()));
        self.turn.content.push(ContentPart::ToolCall(call));
        Ok(())
    }

    /// Adds the message of the turn, and the results of its calls.
    fn end_turn(&mut self) -> Result<(), Problem> {
        let turn = mem::take(&mut self.turn);
        if turn.content.is_empty() {
            return Ok(());
        }
        let (content, provider_fields) = match turn.marks {
            Some(marks) => {
                let (content, model) = marks.restore(turn.content);
                (content, Some(model))
            }
            None => (turn.content, None),
        };
        self.messages.push(InputMessage {
            provider_fields,
            ..message(Role::Assistant, content)
        });
        let mut results = Vec::new();
        for (index, call_id, name) in turn.calls {
            let result = self.results.get_mut(&call_id).and_then(VecDeque::pop_front);
            let result = result.ok_or_else(|| no_output(&format!("/{}/{index}", self.field), &call_id))?;
            results.push(ContentPart::ToolResult(ToolResult {
                call_id,
                name,
                content: result.content,
                is_error: result.is_error,
            }));
        }
        if !results.is_empty() {
            self.messages.push(message(Role::Tool, results));
        }
        Ok(())
    }
}

impl Turn {
    /// Returns whether words may follow: they come before the calls.
    fn is_open(&self) -> bool {
        self.calls.is_empty() && !self.is_answered
    }

    /// Returns whether its marks are of a message with more words.
    fn lacks_words(&self) -> bool {
        let marks = self.marks.as_ref().filter(|_| self.is_open());
        marks.is_some_and(|marks| self.word_bytes() < marks.word_bytes())
    }

    /// Returns whether its marks are of a message with a call that it does not have yet.
    fn lacks_call(&self, call_id: &str) -> bool {
        let has_call = self.calls.iter().any(|(_, known, _)| known == call_id);
        let marks = self.marks.as_ref().filter(|_| !has_call);
        marks.is_some_and(|marks| marks.has_call(call_id))
    }

    /// Returns the length of the words without the reasoning, in bytes.
    fn word_bytes(&self) -> usize {
        let bytes = self.content.iter().map(|part| match part {
            ContentPart::Text(part) => part.text.len(),
            ContentPart::Refusal { text } => text.len(),
            _ => 0,
        });
        bytes.sum()
    }
}

/// Makes the problem of a call without a result.
pub(in crate::http) fn no_output(pointer: &str, call_id: &str) -> Problem {
    let words = format!("No tool output found for function call {call_id}.");
    Problem::of_field(ProblemCode::InvalidAnswers, pointer, words)
}

fn message(role: Role, content: Vec<ContentPart>) -> InputMessage {
    InputMessage {
        role,
        name: None,
        section: Section::default(),
        content,
        provider_fields: None,
        metadata: Object::new(),
    }
}

#[cfg(test)]
mod tests;
