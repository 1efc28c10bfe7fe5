//! What is new on a page: messages of the user, and answers to open calls.
//!
//! A page sends all of its messages, only the new ones, or none beside `resume`, and may have
//! changed any of them. So only ids count, as in `faces/ai_sdk`.
//!
//! | messages | base |
//! |---|---|
//! | one of the agent is among them | the session of its turn |
//! | none, and the first of the user is known | the session before it: it is replaced |
//! | none | the session of the thread |
//!
//! Interrupts are answered by `resume`, all at once, and calls of tools of the page by their
//! results. Each call and its arguments are those of the session.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::outcome::interrupts;
use super::request::{PageMessage, ResumeEntry, ResumeStatus, RunInput};
use crate::http::codes::ProblemCode;
use crate::http::faces::chat::tool_call_id;
use crate::http::problem::Problem;
use crate::run::InputMessage;
use agent::answers::{Answer, AnswerContent};
use values::clock::Timestamp;
use values::ids::StepId;
use values::json::{Object, Value};
use values::session::{OpenCall, OpenCallKind};

/// The payload that resolves an interrupt of an approval.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Decision {
    approved: bool,
    edited_args: Option<Object>,
    reason: Option<String>,
}

impl RunInput {
    /// Returns the messages of the user from the one with an index on.
    pub(in crate::http) fn new_messages(&self, first: usize, max: usize) -> Result<Vec<InputMessage>, Problem> {
        let new = self.messages.iter().skip(first).filter(|message| message.is_of_user());
        let new: Vec<_> = new.collect();
        if new.len() > max {
            let words = format!("{} new messages, and at most {max} are allowed", new.len());
            return Err(Problem::of_field(ProblemCode::TooManyMessages, "/messages", words));
        }
        new.into_iter().map(PageMessage::input).collect()
    }

    /// Returns the answers to the open calls of a step. Calls that have expired are denied by
    /// themselves.
    pub(in crate::http) fn answers_to(
        &self,
        (step, open_calls): (StepId, &[OpenCall]),
        now: Timestamp,
    ) -> Result<Vec<Answer>, Problem> {
        let tools = self.tool_names();
        let mut unknown = BTreeSet::new();
        for ResumeEntry { interrupt_id, .. } in &self.resume {
            if !unknown.insert(interrupt_id.as_str()) {
                return Err(refused(format!(
                    "`resume` answers the interrupt {interrupt_id:?} twice"
                )));
            }
        }
        let mut answers = Vec::new();
        for open in open_calls {
            let id = tool_call_id(step, &open.call_id);
            unknown.remove(id.as_str());
            if let Some(content) = self.answer_to(open, &id, now, &tools)? {
                answers.push(Answer {
                    call_id: open.call_id.clone(),
                    arguments_hash: open.arguments_hash,
                    content,
                });
            }
        }
        match unknown.first() {
            Some(id) => Err(refused(format!("no interrupt {id:?} is open"))),
            None => Ok(answers),
        }
    }

    fn answer_to(
        &self,
        open: &OpenCall,
        id: &str,
        now: Timestamp,
        tools: &BTreeSet<String>,
    ) -> Result<Option<AnswerContent>, Problem> {
        let entry = self.resume.iter().find(|entry| entry.interrupt_id == id);
        if open.is_expired(now) {
            return match entry {
                Some(entry) if entry.status == ResumeStatus::Resolved => Err(refused(format!(
                    "the interrupt {id:?} has expired, so it can only be cancelled"
                ))),
                _ => Ok(None),
            };
        }
        if let Some(entry) = entry {
            return entry.answer(open).map(Some);
        }
        let mut results = self.messages.iter().rev().filter(|message| message.is_result());
        let result = results.find(|message| message.tool_call_id.as_deref() == Some(id));
        match result.filter(|_| open.kind == OpenCallKind::Client) {
            Some(result) => result.answer(open).map(Some),
            None if interrupts(open, tools) => Err(refused(format!(
                "the interrupt {id:?} is open: `resume` must resolve or cancel it"
            ))),
            None => Ok(None),
        }
    }

    /// Refuses answers to only some of the open calls.
    pub(in crate::http) fn check_whole(
        (step, open_calls): (StepId, &[OpenCall]),
        answers: &[Answer],
        now: Timestamp,
    ) -> Result<(), Problem> {
        let is_left =
            |open: &&OpenCall| !open.is_expired(now) && !answers.iter().any(|answer| answer.call_id == open.call_id);
        match open_calls.iter().find(is_left) {
            Some(open) => {
                let id = tool_call_id(step, &open.call_id);
                Err(refused(format!(
                    "the call {id:?} of {} is open: a `tool` message must have its result",
                    open.tool
                )))
            }
            None => Ok(()),
        }
    }

    /// Makes the problem of a request with nothing new.
    pub(in crate::http) fn nothing_new(&self) -> Problem {
        let words = match self.resume.first() {
            Some(entry) => format!("no interrupt {:?} is open", entry.interrupt_id),
            None => "nothing on the page is new: no message of the user, and no result of a call that waits".to_owned(),
        };
        refused(words)
    }
}

impl PageMessage {
    /// Returns the result of a tool of the page. A text is a value if the tool has a schema for it.
    fn answer(&self, open: &OpenCall) -> Result<AnswerContent, Problem> {
        let is_error = self.error.is_some();
        if let Value::Array(_) = self.content {
            let content = self.parts()?;
            return Ok(AnswerContent::Parts { content, is_error });
        }
        let text = self.content.as_str().unwrap_or_default();
        let value = serde_json::from_str(text)
            .ok()
            .filter(|_| open.response_schema.is_object());
        Ok(AnswerContent::Result {
            value: value.unwrap_or_else(|| Value::from(text)),
            is_error,
        })
    }
}

impl ResumeEntry {
    fn answer(&self, open: &OpenCall) -> Result<AnswerContent, Problem> {
        if self.status == ResumeStatus::Cancelled {
            return Ok(AnswerContent::Deny { reason: None });
        }
        if open.kind != OpenCallKind::Approval {
            return Ok(AnswerContent::Result {
                value: self.payload.clone(),
                is_error: false,
            });
        }
        let decision = Decision::deserialize(&self.payload);
        let decision = decision.map_err(|error| refused(format!("the payload of {:?}: {error}", self.interrupt_id)))?;
        Ok(match decision {
            Decision {
                approved: false,
                reason,
                ..
            } => AnswerContent::Deny { reason },
            Decision {
                edited_args: Some(arguments),
                ..
            } => AnswerContent::Edit { arguments },
            Decision { .. } => AnswerContent::Approve { remember: false },
        })
    }
}

/// Returns the variables that the state of a page changes. A state that the page was sent, of the
/// base or last, changes nothing. `has_all` is whether the page has got all variables, so those
/// that it lacks were removed.
pub(in crate::http) fn changed_variables(
    state: &Variables,
    (base, last): (&Variables, &Variables),
    has_all: bool,
) -> Variables {
    if state == base || state == last {
        return Variables::new();
    }
    let set = state.iter().filter(|(name, value)| base.get(*name) != Some(value));
    let set = set.map(|(name, value)| (name.clone(), value.clone()));
    let removed = base.keys().filter(|name| has_all && !state.contains_key(*name));
    set.chain(removed.map(|name| (name.clone(), Value::Null))).collect()
}

/// Variables, by name.
pub(in crate::http) type Variables = BTreeMap<String, Value>;

fn refused(words: String) -> Problem {
    Problem::new(ProblemCode::InvalidAnswers, words)
}
