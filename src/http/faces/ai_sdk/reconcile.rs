//! What is new on a page: messages of the user, or answers to open calls.
//!
//! A page sends all of its messages, and may have changed any of them. So only ids count: the last
//! message of the agent names the session to continue, and what comes after it is new. An edit or a
//! regeneration needs no rule of its own, since the page has cut its list.
//!
//! | last message | base | new |
//! |---|---|---|
//! | of the user, after one of the agent | the session of that turn | all messages of the user after it |
//! | of the user, after none of the agent | none | all messages of the user |
//! | of the user, sent alone | the thread's session, or the one before an earlier message of this id | it |
//! | of the agent | the session that waits | answers to its open calls |
//!
//! A turn that has failed has no session, so the messages before it are new again.

use serde::Deserialize;

use super::request::PageMessage;
use crate::http::codes::ProblemCode;
use crate::http::faces::chat::tool_call_id;
use crate::http::problem::Problem;
use crate::run::InputMessage;
use agent::answers::{Answer, AnswerContent};
use values::ids::StepId;
use values::json::Value;
use values::session::{OpenCall, OpenCallKind};

/// Returns the messages of the user that come after the one with an index, or all of them.
pub(in crate::http) fn new_messages(
    messages: &[PageMessage],
    base: Option<usize>,
    max: usize,
) -> Result<Vec<InputMessage>, Problem> {
    let first = base.map_or(0, |index| index + 1);
    let new: Vec<_> = messages
        .iter()
        .skip(first)
        .filter(|message| message.is_of_user())
        .collect();
    if new.len() > max {
        let words = format!("{} new messages, and at most {max} are allowed", new.len());
        return Err(Problem::of_field(ProblemCode::TooManyMessages, "/messages", words));
    }
    new.into_iter().map(PageMessage::input).collect()
}

/// Returns whether a message of the agent comes before all of the user's, such as a greeting that
/// the page shows. No run has made it, and the agent never reads it.
pub(in crate::http) fn is_greeting(messages: &[PageMessage], index: usize) -> bool {
    !messages.iter().take(index).any(PageMessage::is_of_user)
}

/// A call of a tool on the page.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolPart {
    tool_call_id: String,
    state: String,
    #[serde(default)]
    output: Value,
    error_text: Option<String>,
    approval: Option<Approval>,
}

#[derive(Debug, Deserialize)]
struct Approval {
    approved: Option<bool>,
    reason: Option<String>,
}

/// Returns the answers in a message of the agent to open calls. Everything else in it is ignored:
/// the calls and their arguments are those of the session.
pub(in crate::http) fn answers_to(
    message: &PageMessage,
    (step_id, open_calls): (StepId, &[OpenCall]),
) -> Result<Vec<Answer>, Problem> {
    let parts = message.parts.iter().rev();
    // Other parts have no such fields.
    let parts: Vec<ToolPart> = parts.filter_map(|part| ToolPart::deserialize(part).ok()).collect();
    let answers = open_calls.iter().filter_map(|open| {
        let id = tool_call_id(step_id, &open.call_id);
        let part = parts.iter().find(|part| part.tool_call_id == id)?;
        Some(Answer {
            call_id: open.call_id.clone(),
            arguments_hash: open.arguments_hash,
            content: part.answer(open.kind)?,
        })
    });
    let answers: Vec<_> = answers.collect();
    if answers.is_empty() {
        return Err(nothing_new(message));
    }
    Ok(answers)
}

/// Makes the problem of a message of the agent without new answers.
pub(in crate::http) fn nothing_new(message: &PageMessage) -> Problem {
    Problem::of_field(
        ProblemCode::InvalidAnswers,
        format!("{}/parts", message.pointer),
        "nothing on the page is new: it answers no call that waits",
    )
}

impl ToolPart {
    /// Returns the answer to a call of a kind, if the part has one.
    fn answer(&self, kind: OpenCallKind) -> Option<AnswerContent> {
        let approval = self.approval.as_ref().filter(|_| self.state == "approval-responded");
        match (approval.and_then(|approval| approval.approved), self.state.as_str()) {
            (Some(false), _) => Some(AnswerContent::Deny {
                reason: approval.and_then(|approval| approval.reason.clone()),
            }),
            (Some(true), _) if kind == OpenCallKind::Approval => Some(AnswerContent::Approve { remember: false }),
            (None, "output-available") if kind != OpenCallKind::Approval => Some(AnswerContent::Result {
                value: self.output.clone(),
                is_error: false,
            }),
            (None, "output-error") if kind != OpenCallKind::Approval => Some(AnswerContent::Result {
                value: Value::from(self.error_text.clone().unwrap_or_default()),
                is_error: true,
            }),
            _ => None,
        }
    }
}
