//! Items become messages of a run, and answers to its open calls.
//!
//! A conversation here has messages with several parts, and a call's result right after the message
//! with the call. So the reasoning, the text and the calls of one completion join in one message,
//! which gets its marks back, and results move to their calls.

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
struct IndexedResult {
    index: usize,
    content: Vec<ContentPart>,
    is_error: bool,
}

/// The results of an input by the ids of their calls, in their order. Some models use an id again
/// in another completion.
type Results = BTreeMap<String, VecDeque<IndexedResult>>;

/// A completion of the model that items add to.
#[derive(Default)]
struct Completion {
    content: Vec<ContentPart>,
    marks: Option<Marks>,
    calls: Vec<(usize, String, String)>,
    has_text: bool,
    /// Whether a result has come, so that what follows is of another one.
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
    put_marks_first(&mut items);
    let mut history = History {
        field,
        results: take_results(&mut items),
        completion: Completion::default(),
        messages: Vec::new(),
    };
    for (index, item) in items {
        match item {
            Item::Message {
                role: Role::Assistant,
                content,
            } => history.add_text(content)?,
            Item::Message { role, content } => {
                history.end_completion()?;
                history.messages.push(message(role, content));
            }
            Item::Reasoning { text, marks } => history.add_reasoning(text, marks)?,
            Item::Call(call) if open.contains(call.id.as_str()) => (),
            Item::Call(call) => history.add_call(index, call)?,
            Item::ExecutedCall { call, .. } => {
                history.add_call(index, call)?;
                history.completion.is_answered = true;
            }
            Item::Output { .. } => history.completion.is_answered = true,
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
    history.end_completion()?;
    arranged.messages = history.messages;
    let results = history.results.into_iter();
    let numbered = |(id, results): (String, VecDeque<IndexedResult>)| {
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

/// Moves marks that follow their words before these, where those of a step that begins with
/// reasoning are.
fn put_marks_first(items: &mut [(usize, Item)]) {
    for at in 1..items.len() {
        let (before, rest) = items.split_at(at);
        let Item::Reasoning {
            text,
            marks: Some(marks),
        } = &rest[0].1
        else {
            continue;
        };
        let words_follow = rest.get(1).is_some_and(|(_, next)| bytes_said(next) > Some(0));
        if text.is_empty()
            && !words_follow
            && let Some(first) = last_said(before, marks.word_bytes())
        {
            items[first..=at].rotate_right(1);
        }
    }
}

/// Returns the index of the first of the last items that have said so many bytes, at least one.
fn last_said(items: &[(usize, Item)], mut bytes: usize) -> Option<usize> {
    for (at, (_, item)) in items.iter().enumerate().rev() {
        let said = bytes_said(item)?;
        bytes = bytes.checked_sub(said)?;
        if said > 0 && bytes == 0 {
            return Some(at);
        }
    }
    None
}

/// Returns the bytes of the words of a model; `None` if the item has neither words nor reasoning
/// without marks.
fn bytes_said(item: &Item) -> Option<usize> {
    match item {
        Item::Message {
            role: Role::Assistant,
            content,
        } => Some(word_bytes(content)),
        Item::Reasoning { marks: None, .. } => Some(0),
        _ => None,
    }
}

/// Returns the length of words without the reasoning, in bytes.
fn word_bytes(content: &[ContentPart]) -> usize {
    let bytes = content.iter().map(|part| match part {
        ContentPart::Text(part) => part.text.len(),
        ContentPart::Refusal { text } => text.len(),
        _ => 0,
    });
    bytes.sum()
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
        of_call.push_back(IndexedResult {
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
    completion: Completion,
    messages: Vec<InputMessage>,
}

impl History<'_> {
    /// Ends the completion if it has asked for tools or has its text, since another one follows.
    fn begin_part(&mut self) -> Result<(), Problem> {
        let completion = &self.completion;
        if completion.has_text || completion.is_answered || !completion.calls.is_empty() {
            self.end_completion()?;
        }
        Ok(())
    }

    /// Adds reasoning. The first of a message has its marks, and the rest comes before its calls.
    fn add_reasoning(&mut self, text: String, marks: Option<Marks>) -> Result<(), Problem> {
        match (marks.is_some(), self.completion.marks.is_some()) {
            (true, true) => self.end_completion()?,
            // More words may follow, also if the client has changed those before.
            (false, true) if self.completion.is_open() => self.completion.has_text = false,
            _ => self.begin_part()?,
        }
        if !text.is_empty() {
            let part = ReasoningPart {
                text,
                ..ReasoningPart::default()
            };
            self.completion.content.push(ContentPart::Reasoning(part));
        }
        self.completion.marks = self.completion.marks.take().or(marks);
        Ok(())
    }

    fn add_text(&mut self, content: Vec<ContentPart>) -> Result<(), Problem> {
        if !self.completion.lacks_words() {
            self.begin_part()?;
        }
        self.completion.has_text = !content.is_empty();
        self.completion.content.extend(content);
        Ok(())
    }

    fn add_call(&mut self, index: usize, call: ToolCall) -> Result<(), Problem> {
        if self.completion.is_answered && !self.completion.lacks_call(&call.id) {
            self.end_completion()?;
        }
        self.completion.calls.push((index, call.id.clone(), call.name.clone()));
        self.completion.content.push(ContentPart::ToolCall(call));
        Ok(())
    }

    /// Adds the message of the completion, and the results of its calls.
    fn end_completion(&mut self) -> Result<(), Problem> {
        let completion = mem::take(&mut self.completion);
        if completion.content.is_empty() {
            return Ok(());
        }
        let (content, provider_fields) = match completion.marks {
            Some(marks) => {
                let (content, model) = marks.restore(completion.content);
                (content, Some(model))
            }
            None => (completion.content, None),
        };
        self.messages.push(InputMessage {
            provider_fields,
            ..message(Role::Assistant, content)
        });
        let mut results = Vec::new();
        for (index, call_id, name) in completion.calls {
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

impl Completion {
    /// Returns whether words may follow: they come before the calls.
    fn is_open(&self) -> bool {
        self.calls.is_empty() && !self.is_answered
    }

    /// Returns whether its marks are of a message with more words.
    fn lacks_words(&self) -> bool {
        let marks = self.marks.as_ref().filter(|_| self.is_open());
        marks.is_some_and(|marks| word_bytes(&self.content) < marks.word_bytes())
    }

    /// Returns whether its marks are of a message with a call that it does not have yet.
    fn lacks_call(&self, call_id: &str) -> bool {
        let has_call = self.calls.iter().any(|(_, known, _)| known == call_id);
        let marks = self.marks.as_ref().filter(|_| !has_call);
        marks.is_some_and(|marks| marks.has_call(call_id))
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
