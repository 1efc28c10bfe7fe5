//! Calls that wait for the page, as interrupts, and its answers to them.
//!
//! All approvals of a step are one interrupt, as Agent Chat UI shows them. Each call of a tool of
//! the page, and each input that a tool asks for, is one of its own.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::http::codes::ProblemCode;
use crate::http::faces::chat::tool_call_id;
use crate::http::problem::Problem;
use agent::answers::{Answer, AnswerContent};
use values::ids::StepId;
use values::json::{Object, Value};
use values::session::{OpenCall, OpenCallKind};

/// The digits of the id of an interrupt.
const ID_DIGITS: usize = 32;

/// Something that waits for an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(in crate::http) struct Interrupt {
    /// 32 hexadecimal digits: clients take other keys of an answer for a value.
    pub(super) id: String,
    value: Value,
}

/// The calls of a step that wait.
#[derive(Debug, Clone)]
pub(in crate::http) struct OpenStep {
    /// The step.
    pub(in crate::http) id: StepId,
    /// Its open calls.
    pub(in crate::http) calls: Vec<OpenCall>,
}

/// The calls of an interrupt, by its id.
type CallsById<'a> = Vec<(String, Vec<&'a OpenCall>)>;

impl OpenStep {
    /// Returns what waits.
    pub(in crate::http) fn interrupts(&self) -> Vec<Interrupt> {
        let interrupts = self.calls_by_id().into_iter();
        let interrupts = interrupts.map(|(id, calls)| Interrupt {
            id,
            value: self.value_of(&calls),
        });
        interrupts.collect()
    }

    /// Returns the step without calls that are answered.
    pub(in crate::http) fn without(mut self, answers: &[Answer]) -> Self {
        let is_open = |call: &OpenCall| !answers.iter().any(|answer| answer.call_id == call.call_id);
        self.calls.retain(is_open);
        self
    }

    fn calls_by_id(&self) -> CallsById<'_> {
        let (approvals, others): (Vec<_>, Vec<_>) =
            self.calls.iter().partition(|call| call.kind == OpenCallKind::Approval);
        let approvals = Some(approvals).filter(|approvals| !approvals.is_empty());
        let approvals = approvals.map(|calls| (self.id.as_uuid().simple().to_string(), calls));
        let others = others.into_iter().map(|call| (self.id_of(call), vec![call]));
        approvals.into_iter().chain(others).collect()
    }

    /// Returns the id of the interrupt of a call that has one of its own.
    fn id_of(&self, call: &OpenCall) -> String {
        let hash = blake3::hash(tool_call_id(self.id, &call.call_id).as_bytes());
        hash.to_hex()[..ID_DIGITS].to_owned()
    }

    fn value_of(&self, calls: &[&OpenCall]) -> Value {
        let Some(first) = calls.first() else { return Value::Null };
        match first.kind {
            OpenCallKind::Approval => {
                let requests = calls.iter().map(|call| {
                    let words = call.reason.as_deref().unwrap_or("This call needs an approval.");
                    json!({"name": call.tool, "args": object(&call.arguments), "description": words})
                });
                let configs = calls
                    .iter()
                    .map(|call| json!({"action_name": call.tool, "allowed_decisions": ["approve", "edit", "reject"]}));
                json!({
                    "action_requests": requests.collect::<Vec<_>>(),
                    "review_configs": configs.collect::<Vec<_>>(),
                })
            }
            OpenCallKind::Client => json!({"type": "tool", "toolCall": {
                "id": tool_call_id(self.id, &first.call_id), "name": first.tool, "args": object(&first.arguments),
            }}),
            OpenCallKind::Input | OpenCallKind::Unknown => json!({
                "type": "input",
                "tool": first.tool,
                "description": first.reason,
                "response_schema": first.response_schema,
            }),
        }
    }

    /// Returns the new answers in the value of `resume`: an answer to the only interrupt that is
    /// open, or an object with those of several, by their ids or by the ids of calls. Answers to
    /// calls in `known` come again without an effect.
    pub(in crate::http) fn answers_in(&self, resume: &Value, known: &[Answer]) -> Result<Vec<Answer>, Problem> {
        let interrupts = self.calls_by_id();
        let is_known = |calls: &[&OpenCall]| {
            let mut calls = calls.iter();
            calls.all(|call| known.iter().any(|answer| answer.call_id == call.call_id))
        };
        let mut answers = Vec::new();
        let keys = resume.as_object().map(|fields| fields.keys()).into_iter().flatten();
        let keys: Vec<&String> = keys.filter(|key| is_interrupt_id(key) || names_call(key)).collect();
        if keys.is_empty() {
            let is_decision = resume.get("decisions").is_some();
            let is_approval = |calls: &[&OpenCall]| calls.iter().any(|call| call.kind == OpenCallKind::Approval);
            let open = interrupts.iter().filter(|(_, calls)| !is_known(calls));
            let meant: Vec<_> = open.filter(|(_, calls)| is_decision == is_approval(calls)).collect();
            return match meant.as_slice() {
                [(_, calls)] => self.answers_to(calls, resume),
                [] => Err(refused(
                    "nothing waits for such an answer: an approval takes `decisions`, and a tool of the page its result",
                )),
                _ => Err(refused(
                    "several interrupts are open: `resume` has their answers by their ids",
                )),
            };
        }
        for key in keys {
            let is_of_key = |calls: &&(String, Vec<&OpenCall>)| {
                calls.0 == *key || calls.1.iter().any(|call| tool_call_id(self.id, &call.call_id) == *key)
            };
            let Some((_, calls)) = interrupts.iter().find(is_of_key) else {
                return Err(refused(&format!("no interrupt {key:?} is open")));
            };
            if !is_known(calls) {
                answers.extend(self.answers_to(calls, &resume[key.as_str()])?);
            }
        }
        Ok(answers)
    }

    /// Returns the value for a call in an object by the ids of calls.
    fn value_by_call<'v>(&self, call: &OpenCall, value: &'v Value) -> Option<&'v Value> {
        value.get(tool_call_id(self.id, &call.call_id))
    }

    fn answers_to(&self, calls: &[&OpenCall], value: &Value) -> Result<Vec<Answer>, Problem> {
        let contents = match calls {
            [call] if call.kind != OpenCallKind::Approval => {
                let value = self.value_by_call(call, value).unwrap_or(value);
                vec![result_of(value)]
            }
            calls => decisions_of(calls, value)?,
        };
        let answers = calls.iter().zip(contents).map(|(call, content)| Answer {
            call_id: call.call_id.clone(),
            arguments_hash: call.arguments_hash,
            content,
        });
        Ok(answers.collect())
    }
}

/// Returns whether a key has the form of the id of an interrupt.
fn is_interrupt_id(key: &str) -> bool {
    key.len() == ID_DIGITS && key.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Returns whether a key has the form of the id of a call, of this step or of another one.
fn names_call(key: &str) -> bool {
    key.split_once(':')
        .is_some_and(|(step, _)| step.parse::<StepId>().is_ok())
}

/// A decision about a call.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Decision {
    Approve,
    Reject { message: Option<String> },
    Edit { edited_action: EditedAction },
}

#[derive(Debug, Deserialize)]
struct EditedAction {
    name: String,
    args: Object,
}

#[derive(Debug, Deserialize)]
struct Decisions {
    decisions: Vec<Decision>,
}

fn decisions_of(calls: &[&OpenCall], value: &Value) -> Result<Vec<AnswerContent>, Problem> {
    let read = Decisions::deserialize(value).map_err(|error| refused(&format!("the decisions: {error}")))?;
    if read.decisions.len() != calls.len() {
        let words = format!("{} decisions about {} calls", read.decisions.len(), calls.len());
        return Err(refused(&words));
    }
    let contents = read
        .decisions
        .into_iter()
        .zip(calls)
        .map(|(decision, call)| match decision {
            Decision::Approve => Ok(AnswerContent::Approve { remember: false }),
            Decision::Reject { message } => Ok(AnswerContent::Deny { reason: message }),
            Decision::Edit { edited_action } if edited_action.name != call.tool => Err(refused(&format!(
                "a decision changes the tool of a call: from {} to {}",
                call.tool, edited_action.name
            ))),
            Decision::Edit { edited_action } => Ok(AnswerContent::Edit {
                arguments: edited_action.args,
            }),
        });
    contents.collect()
}

/// Returns the result of a tool of the page. One that has failed has the error alone.
fn result_of(value: &Value) -> AnswerContent {
    let fields = value.as_object().filter(|fields| fields.len() == 1);
    let error = fields
        .and_then(|fields| fields.get("error"))
        .filter(|error| error.is_string());
    AnswerContent::Result {
        value: error.unwrap_or(value).clone(),
        is_error: error.is_some(),
    }
}

/// Returns arguments as clients read them: an object.
pub(super) fn object(arguments: &Value) -> Value {
    if arguments.is_object() {
        return arguments.clone();
    }
    json!({"arguments": arguments})
}

fn refused(words: &str) -> Problem {
    Problem::new(ProblemCode::InvalidAnswers, words)
}
