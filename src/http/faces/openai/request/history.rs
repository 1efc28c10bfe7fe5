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

    /// Adds reasoning. Marks may come after the words of their message, and always come before its
    /// calls.
    fn add_reasoning(&mut self, text: String, marks: Option<Marks>) -> Result<(), Problem> {
        match &marks {
            Some(marks) if self.turn.has_words_of(marks) => (),
            Some(_) if self.turn.marks.is_some() => self.end_turn()?,
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
    /// Returns whether the turn has exactly the words of a message with these marks, and no calls
    /// yet.
    fn has_words_of(&self, marks: &Marks) -> bool {
        let is_open = self.marks.is_none() && self.calls.is_empty() && !self.is_answered;
        is_open && self.word_bytes() == marks.word_bytes()
    }

    /// Returns whether its marks are of a message with more words, which come before the calls.
    fn lacks_words(&self) -> bool {
        let is_open = self.calls.is_empty() && !self.is_answered;
        let marks = self.marks.as_ref().filter(|_| is_open);
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
mod tests {
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use values::clock::Timestamp;
    use values::ids::MessageId;
    use values::json::RawJson;
    use values::message::{Message, ProviderFields};

    fn text(role: Role, text: &str) -> Item {
        let content = vec![ContentPart::text(text)];
        Item::Message { role, content }
    }

    fn call(id: &str) -> Item {
        let (id, name, arguments) = (id.to_owned(), "f".to_owned(), "{}".to_owned());
        Item::Call(ToolCall {
            id,
            name,
            arguments,
            signature: None,
        })
    }

    fn output(call_id: &str) -> Item {
        let (call_id, content) = (call_id.to_owned(), vec![ContentPart::text("r")]);
        Item::Output { call_id, content }
    }

    fn arranged(items: Vec<Item>, open: &[&str]) -> Result<Arranged, Problem> {
        arrange(
            items.into_iter().enumerate().collect(),
            &open.iter().copied().collect(),
            "input",
        )
    }

    /// Writes a message as its role and its parts.
    fn shown(messages: &[InputMessage]) -> Vec<String> {
        let part = |part: &ContentPart| match part {
            ContentPart::Text(part) => part.text.clone(),
            ContentPart::ToolCall(call) => format!("{}?", call.id),
            ContentPart::ToolResult(result) => format!("{}!", result.call_id),
            other => serde_json::to_value(other).unwrap()["type"].to_string(),
        };
        let message = |message: &InputMessage| {
            let parts: Vec<String> = message.content.iter().map(part).collect();
            let role = json!(message.role);
            format!("{}: {}", role.as_str().unwrap(), parts.join(" "))
        };
        messages.iter().map(message).collect()
    }

    #[test]
    fn a_turn_becomes_one_message_and_its_results_follow() {
        for (items, expected) in [
            (
                vec![
                    text(Role::User, "q"),
                    text(Role::Assistant, "t"),
                    call("a"),
                    call("b"),
                    output("b"),
                    output("a"),
                ],
                &["user: q", "assistant: t a? b?", "tool: a! b!"][..],
            ),
            (
                vec![call("a"), output("a"), call("b"), output("b")],
                &["assistant: a?", "tool: a!", "assistant: b?", "tool: b!"],
            ),
            (
                vec![call("a"), text(Role::User, "q"), output("a")],
                &["assistant: a?", "tool: a!", "user: q"],
            ),
            (
                vec![call("a"), output("a"), text(Role::User, "q"), call("a"), output("a")],
                &["assistant: a?", "tool: a!", "user: q", "assistant: a?", "tool: a!"],
            ),
            (
                vec![text(Role::Assistant, "t"), text(Role::Assistant, "u")],
                &["assistant: t", "assistant: u"],
            ),
        ] {
            assert_eq!(shown(&arranged(items, &[]).unwrap().messages), expected);
        }
    }

    #[test]
    fn marks_belong_to_the_message_with_their_words() {
        let marked = |words: &str| {
            let id = MessageId::from_uuid(Uuid::nil());
            let mut message = Message::text(id, Role::Assistant, words, Timestamp::UNIX_EPOCH);
            let field = ("reasoning_content".to_owned(), RawJson::new("\"hm\""));
            message.provider_fields = Some(ProviderFields {
                fields: vec![field],
                ..ProviderFields::owner("p")
            });
            let (text, marks) = (String::new(), Marks::of(&message));
            Item::Reasoning { text, marks }
        };
        let thought = || Item::Reasoning {
            text: "hm".to_owned(),
            marks: None,
        };
        for (items, expected, owned) in [
            (
                vec![
                    thought(),
                    text(Role::Assistant, "t"),
                    marked("t"),
                    call("a"),
                    output("a"),
                ],
                &["assistant: \"reasoning\" t a?", "tool: a!"][..],
                &[true, false][..],
            ),
            (
                vec![marked("t"), text(Role::Assistant, "t"), call("a"), output("a")],
                &["assistant: t a?", "tool: a!"],
                &[true, false],
            ),
            // The marks are of another message, without words.
            (
                vec![text(Role::Assistant, "t"), marked(""), call("a"), output("a")],
                &["assistant: t", "assistant: a?", "tool: a!"],
                &[false, true, false],
            ),
            (
                vec![
                    text(Role::Assistant, "t"),
                    marked("t"),
                    marked("u"),
                    text(Role::Assistant, "u"),
                ],
                &["assistant: t", "assistant: u"],
                &[true, true],
            ),
            (
                vec![marked("tu"), text(Role::Assistant, "t"), text(Role::Assistant, "u")],
                &["assistant: tu"],
                &[true],
            ),
            (vec![marked(""), text(Role::User, "q")], &["user: q"], &[false]),
        ] {
            let messages = arranged(items, &[]).unwrap().messages;
            assert_eq!(shown(&messages), expected);
            let found: Vec<bool> = messages
                .iter()
                .map(|message| message.provider_fields.is_some())
                .collect();
            assert_eq!(found, owned);
        }
    }

    #[test]
    fn results_of_open_calls_are_answers() {
        let found = arranged(vec![call("a"), output("a"), text(Role::User, "q")], &["a"]).unwrap();
        assert_eq!(shown(&found.messages), ["user: q"]);
        assert_eq!(
            found.outputs,
            [Output {
                call_id: "a".to_owned(),
                content: vec![ContentPart::text("r")]
            }]
        );
    }

    #[test]
    fn a_call_has_exactly_one_result() {
        for (items, words) in [
            (vec![call("a")], "No tool output found for function call a."),
            (
                vec![output("a")],
                "No tool call found for function call output with call_id a.",
            ),
            (vec![call("a"), output("a"), output("a")], "No tool call found"),
        ] {
            let problem = arranged(items, &[]).unwrap_err();
            let found = &problem.first_error().unwrap().message;
            assert!(found.contains(words), "{found}");
        }
    }
}
