//! The answers of a caller to the open calls of a session, and their check.
//!
//! All open calls get an answer at once. An answer names the call and the hash of its arguments, so
//! that no answer reaches a call that its author has not seen.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ports::Blocker;
use values::clock::Timestamp;
use values::json::{JsonSchema, Object, Value};
use values::message::ContentPart;
use values::session::{Hash, OpenCall, OpenCallKind, PinnedTool, RememberedApproval, WaitingStep};

/// An answer to an open call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The call.
    pub call_id: String,
    /// The hash of the arguments that the caller has seen.
    pub arguments_hash: Hash,
    /// The content of the answer.
    pub content: AnswerContent,
}

/// The content of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AnswerContent {
    /// The result of a client tool.
    Result {
        /// The result: a text, or another value that the model reads as JSON.
        value: Value,
        /// Whether the tool failed.
        is_error: bool,
    },
    /// The result of a client tool, as parts for the model.
    Parts {
        /// Texts, images and documents.
        content: Vec<ContentPart>,
        /// Whether the tool failed.
        is_error: bool,
    },
    /// The call may be executed.
    Approve {
        /// Whether the approval covers later calls.
        remember: bool,
    },
    /// The call may be executed with other arguments.
    Edit { arguments: Object },
    /// The call may not be executed.
    Deny {
        /// The reason, for the model.
        reason: Option<String>,
    },
}

/// Everything that a request says about open calls.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Answers {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Answer>,
    /// Whether the open calls without an answer are denied.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub deny_open: bool,
    /// Whether the calls may be answered although another run has answered them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_fork: bool,
    /// When the answers were accepted. Calls that expire later are answered in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted_at: Option<Timestamp>,
}

impl Answers {
    /// Returns whether the request says nothing about open calls.
    pub fn is_empty(&self) -> bool {
        self.answers.is_empty() && !self.deny_open
    }
}

/// The outcome of an open call.
#[derive(Debug, Clone, PartialEq)]
pub enum ResolvedAnswer {
    /// The call has a result.
    Result {
        /// The result.
        content: Vec<ContentPart>,
        /// Whether the tool failed.
        is_error: bool,
    },
    /// The call is executed.
    Approved,
    /// The call is executed with other arguments.
    Edited(Object),
    /// The call goes on with the input that its tool asked for.
    Input(Value),
    /// The call is not executed.
    Denied {
        /// The reason, for the model.
        reason: String,
        /// Who denies it.
        by: Blocker,
    },
}

/// A fault of the answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerFault {
    /// There are none, and open calls need them.
    Required,
    /// Some do not fit the open calls: JSON pointers into the request, each with the fault there.
    Invalid(Vec<(String, String)>),
}

/// The outcome of the answers for a waiting session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResolvedAnswers {
    /// The outcomes of the open calls, in their order.
    pub answers: Vec<ResolvedAnswer>,
    /// The approvals that cover later calls.
    pub remembered: Vec<RememberedApproval>,
    /// The changed definitions of tools that approvals have accepted.
    pub accepted: Vec<PinnedTool>,
}

/// Checks the answers against the open calls, and resolves them.
pub fn resolve_answers(
    waiting: &WaitingStep,
    answers: &Answers,
    now: Timestamp,
) -> Result<ResolvedAnswers, AnswerFault> {
    let now = answers.accepted_at.unwrap_or(now);
    let calls = &waiting.open_calls;
    let needs_answers = calls.iter().any(|call| !call.is_expired(now));
    if answers.is_empty() && needs_answers {
        return Err(AnswerFault::Required);
    }
    let mut faults = Vec::new();
    let mut answered = BTreeSet::new();
    for (index, answer) in answers.answers.iter().enumerate() {
        let at = |field: &str| format!("/answers/{index}/{field}");
        let call = calls.iter().find(|call| call.call_id == answer.call_id);
        let fault = match call {
            None => Some((at("call_id"), format!("no open call has the id {:?}", answer.call_id))),
            Some(_) if !answered.insert(&answer.call_id) => {
                Some((at("call_id"), "another answer is about the same call".to_owned()))
            }
            Some(call) if call.is_expired(now) => {
                let message = format!(
                    "the call expired at {} and counts as denied: leave its answer out",
                    call.expires_at
                );
                Some((at("call_id"), message))
            }
            Some(call) if call.arguments_hash != answer.arguments_hash => {
                let message = format!("the call has other arguments, whose hash is {}", call.arguments_hash);
                Some((at("arguments_hash"), message))
            }
            Some(call) => check(call, &answer.content)
                .err()
                .map(|(field, message)| (at(field), message)),
        };
        faults.extend(fault);
    }
    let missing = calls.iter().filter(|call| {
        let is_needed = !answers.deny_open && !call.is_expired(now);
        is_needed && !answered.contains(&call.call_id)
    });
    faults.extend(missing.map(|call| {
        let message = format!("the open call {:?} has no answer", call.call_id);
        ("/answers".to_owned(), message)
    }));
    if !faults.is_empty() {
        return Err(AnswerFault::Invalid(faults));
    }
    let answer_to = |call: &OpenCall| {
        let answer = answers.answers.iter().find(|answer| answer.call_id == call.call_id);
        answer.map(|answer| &answer.content)
    };
    let resolved = calls.iter().map(|call| resolved(call, answer_to(call), now));
    let remembered = calls.iter().filter_map(|call| match answer_to(call) {
        Some(AnswerContent::Approve { remember: true }) => Some(RememberedApproval {
            tool: call.tool.clone(),
            rule: call.remembers?,
        }),
        _ => None,
    });
    let accepted = calls.iter().filter_map(|call| match answer_to(call) {
        Some(AnswerContent::Approve { .. } | AnswerContent::Edit { .. }) => call.accepts.clone(),
        _ => None,
    });
    Ok(ResolvedAnswers {
        answers: resolved.collect(),
        remembered: remembered.collect(),
        accepted: accepted.collect(),
    })
}

/// Checks that an answer is of the kind that its call needs. The error has the field at fault.
fn check(call: &OpenCall, content: &AnswerContent) -> Result<(), (&'static str, String)> {
    let fitting = |field: &'static str, value: &Value| {
        let fault = |message: String| (field, message);
        let schema = JsonSchema::compile(&call.response_schema).map_err(|error| fault(error.to_string()))?;
        let checked = schema.check(value);
        checked.map_err(|violations| fault(format!("it does not fit the schema of {}: {violations}", call.tool)))
    };
    match (call.kind, content) {
        (
            OpenCallKind::Client,
            AnswerContent::Result { is_error: true, .. } | AnswerContent::Parts { is_error: true, .. },
        )
        | (OpenCallKind::Client | OpenCallKind::Approval | OpenCallKind::Input, AnswerContent::Deny { .. })
        | (OpenCallKind::Approval, AnswerContent::Approve { remember: false }) => Ok(()),
        (OpenCallKind::Client, AnswerContent::Result { value, .. })
        | (OpenCallKind::Input, AnswerContent::Result { value, is_error: false }) => fitting("result", value),
        (OpenCallKind::Client, AnswerContent::Parts { .. }) if call.response_schema == Value::Bool(true) => Ok(()),
        (OpenCallKind::Client | OpenCallKind::Input, AnswerContent::Parts { .. }) => Err((
            "content",
            format!("{} has a schema for its result: give a value as `result`", call.tool),
        )),
        (OpenCallKind::Approval, AnswerContent::Edit { arguments }) => {
            fitting("arguments", &Value::Object(arguments.clone()))
        }
        (OpenCallKind::Approval, AnswerContent::Approve { remember: true }) if call.remembers.is_some() => Ok(()),
        (OpenCallKind::Approval, AnswerContent::Approve { .. }) => Err((
            "remember",
            "the agent does not allow to remember this approval".to_owned(),
        )),
        (OpenCallKind::Approval, AnswerContent::Result { .. } | AnswerContent::Parts { .. }) => {
            let message = "the call needs a decision, and the service executes the tool";
            Err(("result", message.to_owned()))
        }
        (OpenCallKind::Client, AnswerContent::Approve { .. } | AnswerContent::Edit { .. }) => {
            let message = "the caller executes the tool, so the call needs a result or is denied";
            Err(("decision", message.to_owned()))
        }
        (OpenCallKind::Input, AnswerContent::Result { is_error: true, .. }) => Err((
            "is_error",
            "the call needs input for its tool: give it as `result`, or deny the call".to_owned(),
        )),
        (OpenCallKind::Input, AnswerContent::Approve { .. } | AnswerContent::Edit { .. }) => Err((
            "decision",
            "the call needs input for its tool, so it needs a `result` or is denied".to_owned(),
        )),
        (OpenCallKind::Unknown, _) => {
            let message = "a later version of the service has left this call open, and this version can't answer it";
            Err(("call_id", message.to_owned()))
        }
    }
}

fn resolved(call: &OpenCall, content: Option<&AnswerContent>, now: Timestamp) -> ResolvedAnswer {
    match content {
        Some(AnswerContent::Result { value, .. }) if call.kind == OpenCallKind::Input => {
            ResolvedAnswer::Input(value.clone())
        }
        Some(AnswerContent::Result { value, is_error }) => ResolvedAnswer::Result {
            content: vec![ContentPart::text(match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            })],
            is_error: *is_error,
        },
        Some(AnswerContent::Parts { content, is_error }) => ResolvedAnswer::Result {
            content: content.clone(),
            is_error: *is_error,
        },
        Some(AnswerContent::Approve { .. }) => ResolvedAnswer::Approved,
        Some(AnswerContent::Edit { arguments }) => ResolvedAnswer::Edited(arguments.clone()),
        Some(AnswerContent::Deny { reason: Some(reason) }) => ResolvedAnswer::Denied {
            reason: format!("The caller denied this call: {reason}"),
            by: Blocker::Caller,
        },
        None if call.is_expired(now) => ResolvedAnswer::Denied {
            reason: "This call was denied, because nobody answered it in time.".to_owned(),
            by: Blocker::Expiry,
        },
        Some(AnswerContent::Deny { reason: None }) | None => ResolvedAnswer::Denied {
            reason: "The caller denied this call.".to_owned(),
            by: Blocker::Caller,
        },
    }
}
