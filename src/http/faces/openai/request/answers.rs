//! Answers to the open calls of the session that a request continues.
//!
//! A client answers all of them at once. It sends no hash of the arguments, so the answer is about
//! the arguments that are stored. A client that can't decide about calls sends a message to their
//! thread instead, which denies them.

use std::collections::BTreeMap;

use super::history::{Output, no_output};
use crate::http::codes::ProblemCode;
use crate::http::problem::Problem;
use agent::answers::{Answer, AnswerContent, Answers};
use values::clock::Timestamp;
use values::json::{JsonSchema, Value};
use values::message::ContentPart;
use values::session::{OpenCall, OpenCallKind};

/// The reason for the model when a tool asks a question that these clients can't show.
const NO_INPUT: &str = "The client can't be asked for input.";

/// The reason for the model when the client goes on without a decision.
const NO_DECISION: &str = "The client has sent a message instead of a decision.";

/// A decision of the client about a call.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::http) struct Verdict {
    pub(in crate::http) approves: bool,
    pub(in crate::http) reason: Option<String>,
}

/// The results and the decisions of a request, by the ids of the calls.
#[derive(Debug, Default)]
pub(in crate::http) struct Given {
    pub(in crate::http) outputs: Vec<Output>,
    pub(in crate::http) verdicts: BTreeMap<String, Verdict>,
    /// Whether the request has new messages for a thread. Without them, the thread would be stuck.
    pub(in crate::http) may_skip: bool,
}

impl Given {
    /// Returns whether the client goes on without the open calls: it sends messages alone, and not
    /// all of the calls are for tools of its own.
    fn skips(&self, open: &[OpenCall]) -> bool {
        let is_message_alone = self.may_skip && self.outputs.is_empty() && self.verdicts.is_empty();
        is_message_alone && open.iter().any(|call| call.kind != OpenCallKind::Client)
    }
}

/// Makes the answers to open calls. Calls that have expired need none. Messages alone deny all
/// calls on a thread, if one of them needs a decision or input.
pub(in crate::http) fn answers_to(
    open: &[OpenCall],
    mut given: Given,
    field: &str,
    now: Timestamp,
) -> Result<Answers, Problem> {
    let mut answers = Vec::with_capacity(open.len());
    let deny_open = given.skips(open);
    for call in open {
        let is_expired = call.is_expired(now);
        let content = match call.kind {
            OpenCallKind::Client => take_output(&mut given.outputs, call).map(|content| result_of(call, content)),
            OpenCallKind::Approval if deny_open && !is_expired => Some(denied(Some(NO_DECISION.to_owned()))),
            OpenCallKind::Approval => given.verdicts.remove(&call.call_id).map(decision_of),
            OpenCallKind::Input if !is_expired => Some(denied(Some(NO_INPUT.to_owned()))),
            OpenCallKind::Input | OpenCallKind::Unknown => None,
        };
        match content {
            Some(content) => answers.push(Answer {
                call_id: call.call_id.clone(),
                arguments_hash: call.arguments_hash,
                content,
            }),
            None if is_expired || deny_open => (),
            None if call.kind == OpenCallKind::Approval => {
                let words = format!(
                    "No response found for the approval request of the call {}.",
                    call.call_id
                );
                return Err(Problem::of_field(
                    ProblemCode::InvalidAnswers,
                    format!("/{field}"),
                    words,
                ));
            }
            None => return Err(no_output(&format!("/{field}"), &call.call_id)),
        }
    }
    Ok(Answers {
        answers,
        deny_open,
        ..Answers::default()
    })
}

fn take_output(outputs: &mut Vec<Output>, call: &OpenCall) -> Option<Vec<ContentPart>> {
    let index = outputs.iter().position(|output| output.call_id == call.call_id)?;
    Some(outputs.swap_remove(index).content)
}

/// Returns the result of a call: its text as the value that the schema of the tool asks for.
fn result_of(call: &OpenCall, content: Vec<ContentPart>) -> AnswerContent {
    let is_error = false;
    let text = match content.as_slice() {
        [part] => part.as_text(),
        _ => None,
    };
    match text.map(|text| value_of(&call.response_schema, text)) {
        Some(value) => AnswerContent::Result { value, is_error },
        None => AnswerContent::Parts { content, is_error },
    }
}

/// Returns the value that a text stands for: the text itself if the schema allows it, and otherwise
/// the value that it is the JSON of.
fn value_of(schema: &Value, text: &str) -> Value {
    let as_text = Value::from(text);
    let is_allowed = |schema: &Value| JsonSchema::compile(schema).is_ok_and(|schema| schema.check(&as_text).is_ok());
    if *schema == Value::Bool(true) || is_allowed(schema) {
        return as_text;
    }
    serde_json::from_str(text).unwrap_or(as_text)
}

fn decision_of(verdict: Verdict) -> AnswerContent {
    if verdict.approves {
        AnswerContent::Approve { remember: false }
    } else {
        denied(verdict.reason)
    }
}

fn denied(reason: Option<String>) -> AnswerContent {
    AnswerContent::Deny { reason }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn open(kind: OpenCallKind, schema: &Value) -> OpenCall {
        let hash = "0".repeat(64);
        let call = json!({
            "call_id": "c", "kind": kind, "tool": "f", "arguments": {}, "arguments_hash": hash,
            "response_schema": schema, "expires_at": "2026-01-02T00:00:00Z",
        });
        serde_json::from_value(call).unwrap()
    }

    fn given(text: &str) -> Given {
        let content = vec![ContentPart::text(text)];
        let verdict = Verdict {
            approves: text == "yes",
            reason: None,
        };
        Given {
            outputs: vec![Output {
                call_id: "c".to_owned(),
                content,
            }],
            verdicts: BTreeMap::from([("c".to_owned(), verdict)]),
            may_skip: true,
        }
    }

    fn now() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    #[test]
    fn each_kind_of_call_gets_its_answer() {
        let result = |value| AnswerContent::Result { value, is_error: false };
        for (call, text, expected) in [
            (open(OpenCallKind::Client, &json!(true)), "5", result(json!("5"))),
            (
                open(OpenCallKind::Client, &json!({"type": "integer"})),
                "5",
                result(json!(5)),
            ),
            (
                open(OpenCallKind::Client, &json!({"type": "string"})),
                "5",
                result(json!("5")),
            ),
            (
                open(OpenCallKind::Approval, &json!(true)),
                "yes",
                AnswerContent::Approve { remember: false },
            ),
            (open(OpenCallKind::Approval, &json!(true)), "no", denied(None)),
            (
                open(OpenCallKind::Input, &json!(true)),
                "x",
                denied(Some(NO_INPUT.to_owned())),
            ),
        ] {
            let answers = answers_to(&[call], given(text), "input", now()).unwrap();
            assert_eq!(answers.answers[0].content, expected);
        }
    }

    #[test]
    fn a_message_alone_denies_calls_that_need_a_decision() {
        let messages_alone = || Given {
            may_skip: true,
            ..Given::default()
        };
        let of = |kind| open(kind, &json!(true));
        let no_decision = denied(Some(NO_DECISION.to_owned()));
        let no_input = denied(Some(NO_INPUT.to_owned()));
        for (open, expected) in [
            (vec![of(OpenCallKind::Approval)], vec![no_decision.clone()]),
            // The core denies the others without a reason of this module.
            (
                vec![of(OpenCallKind::Client), of(OpenCallKind::Approval)],
                vec![no_decision],
            ),
            (vec![of(OpenCallKind::Input)], vec![no_input]),
        ] {
            let answers = answers_to(&open, messages_alone(), "input", now()).unwrap();
            let contents: Vec<_> = answers.answers.into_iter().map(|answer| answer.content).collect();
            assert_eq!((contents, answers.deny_open), (expected, true));
        }
        let own = [of(OpenCallKind::Client)];
        let problem = answers_to(&own, messages_alone(), "input", now()).unwrap_err();
        assert_eq!(problem.code(), ProblemCode::InvalidAnswers);
    }

    #[test]
    fn every_open_call_needs_an_answer_until_it_expires() {
        for (kind, words) in [
            (OpenCallKind::Client, "No tool output found for function call c."),
            (OpenCallKind::Approval, "approval request of the call c"),
        ] {
            let call = [open(kind, &json!(true))];
            let problem = answers_to(&call, Given::default(), "input", now()).unwrap_err();
            assert!(problem.detail().contains(words), "{}", problem.detail());
            let late = call[0].expires_at;
            assert_eq!(answers_to(&call, Given::default(), "input", late).unwrap().answers, []);
        }
    }
}
