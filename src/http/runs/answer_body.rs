//! The answers in the body of a run, checked for form. The run checks later whether they fit the
//! open calls.

use serde::Deserialize;
use utoipa::ToSchema;

use crate::http::input::{InputPart, decode_result};
use crate::http::problem::Problem;
use agent::answers::{Answer, AnswerContent, Answers};
use values::json::{Object, Value};
use values::message::ContentPart;
use values::session::Hash;

/// The most answers of a request.
const MAX_ANSWERS: usize = 1024;
/// The longest reason, in bytes.
const MAX_REASON: usize = 4096;

/// An answer to an open call: a `result`, `content` or a `decision`.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = Answer)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct AnswerBody {
    /// The id of the call.
    call_id: String,
    /// The hash of the arguments that the author of the answer has seen.
    arguments_hash: Hash,
    /// Of a client call, a text, or another value that the model reads as JSON; of a call that
    /// needs input, the input. It must fit the `response_schema`.
    #[schema(value_type = Object)]
    result: Option<Value>,
    /// Of a client call whose tool has no `response_schema`: the result as texts, images and
    /// documents.
    #[schema(min_items = 1)]
    content: Option<Vec<InputPart>>,
    /// Whether the client tool has failed. Its result then need not fit the `response_schema`.
    is_error: Option<bool>,
    /// The decision about the call. A client call can be denied, too.
    decision: Option<Decision>,
    /// Why the call is denied, for the model; at most 4096 bytes.
    #[schema(max_length = 4096)]
    reason: Option<String>,
    /// The arguments to use instead, with `edit`. They must fit the schema of the tool, and the
    /// model reads them with the result.
    arguments: Option<Object>,
    /// With `approve`, and only if `may_remember` is true: whether the approval covers later calls.
    remember: Option<bool>,
}

/// A decision about an open call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Decision {
    /// The service executes the call.
    Approve,
    /// The call is not executed, and the model reads why.
    Deny,
    /// The service executes the call with other arguments, and the model reads them.
    Edit,
}

/// Turns the answers of a body into answers of a request.
pub(super) fn into_answers(bodies: Vec<AnswerBody>, deny_open: bool) -> Result<Answers, Problem> {
    if bodies.len() > MAX_ANSWERS {
        let message = format!("at most {MAX_ANSWERS} answers are allowed");
        return Err(Problem::invalid_field("/answers", message));
    }
    let numbered = bodies.into_iter().enumerate();
    let answers = numbered.map(|(index, mut body)| {
        let parts = body.content.take();
        let content = parts.map(|parts| decode_result(parts, &format!("/answers/{index}/content")));
        let read = body.into_answer(content.transpose()?);
        read.map_err(|(field, message)| Problem::invalid_field(format!("/answers/{index}{field}"), message))
    });
    Ok(Answers {
        answers: answers.collect::<Result<_, _>>()?,
        deny_open,
        ..Answers::default()
    })
}

impl AnswerBody {
    /// Checks the form, with the checked parts of the result. The error has a pointer into the
    /// answer.
    fn into_answer(self, parts: Option<Vec<ContentPart>>) -> Result<Answer, (&'static str, String)> {
        let Self {
            call_id,
            arguments_hash,
            result,
            content: _,
            is_error,
            decision,
            reason,
            arguments,
            remember,
        } = self;
        let only_with = |has: bool, field: &'static str, whom: &str| {
            if has {
                Err((field, format!("only {whom} has it")))
            } else {
                Ok(())
            }
        };
        let is = |wanted| decision == Some(wanted);
        only_with(
            is_error.is_some() && result.is_none() && parts.is_none(),
            "/is_error",
            "an answer with a `result` or `content`",
        )?;
        only_with(
            reason.is_some() && !is(Decision::Deny),
            "/reason",
            "the decision `deny`",
        )?;
        only_with(
            arguments.is_some() && !is(Decision::Edit),
            "/arguments",
            "the decision `edit`",
        )?;
        only_with(
            remember.is_some() && !is(Decision::Approve),
            "/remember",
            "the decision `approve`",
        )?;
        if reason.as_ref().is_some_and(|reason| reason.len() > MAX_REASON) {
            return Err(("/reason", format!("at most {MAX_REASON} bytes are allowed")));
        }
        let is_error = is_error.unwrap_or_default();
        let content = match (result, parts, decision) {
            (Some(value), None, None) => AnswerContent::Result { value, is_error },
            (None, Some(content), None) => AnswerContent::Parts { content, is_error },
            (None, None, Some(Decision::Approve)) => AnswerContent::Approve {
                remember: remember.unwrap_or_default(),
            },
            (None, None, Some(Decision::Deny)) => AnswerContent::Deny { reason },
            (None, None, Some(Decision::Edit)) => AnswerContent::Edit {
                arguments: arguments
                    .ok_or_else(|| ("/arguments", "the decision `edit` needs the new arguments".to_owned()))?,
            },
            _ => {
                let rule = "an answer has one of `result`, `content` and `decision`";
                return Err(("", rule.to_owned()));
            }
        };
        Ok(Answer {
            call_id,
            arguments_hash,
            content,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(fields: &Value) -> Result<AnswerContent, String> {
        let mut body = json!({"call_id": "c1", "arguments_hash": "0".repeat(64)});
        body.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        let mut body: AnswerBody = serde_json::from_value(body).map_err(|error| error.to_string())?;
        let parts = body.content.take();
        let parts = parts.map(|parts| decode_result(parts, "/content").unwrap());
        let answer = body
            .into_answer(parts)
            .map_err(|(field, message)| format!("{field}: {message}"))?;
        Ok(answer.content)
    }

    #[test]
    fn an_answer_is_a_result_or_a_decision() {
        let result = |value: Value, is_error| Ok(AnswerContent::Result { value, is_error });
        assert_eq!(read(&json!({"result": "x"})), result(json!("x"), false));
        assert_eq!(
            read(&json!({"result": {"a": 1}, "is_error": true})),
            result(json!({"a": 1}), true)
        );
        let content = vec![ContentPart::text("x")];
        assert_eq!(
            read(&json!({"content": [{"type": "text", "text": "x"}]})),
            Ok(AnswerContent::Parts {
                content,
                is_error: false
            })
        );
        assert_eq!(
            read(&json!({"decision": "approve", "remember": true})),
            Ok(AnswerContent::Approve { remember: true })
        );
        let reason = Some("no".to_owned());
        assert_eq!(
            read(&json!({"decision": "deny", "reason": "no"})),
            Ok(AnswerContent::Deny { reason })
        );
        assert_eq!(
            read(&json!({"decision": "edit", "arguments": {}})),
            Ok(AnswerContent::Edit {
                arguments: Object::new()
            })
        );
    }

    #[test]
    fn other_forms_are_refused() {
        for (fields, words) in [
            (json!({}), "one of `result`, `content` and `decision`"),
            // A stub that was not filled in.
            (json!({"result": null}), "one of `result`, `content` and `decision`"),
            (json!({"decision": null}), "one of `result`, `content` and `decision`"),
            (
                json!({"result": 1, "decision": "deny"}),
                "one of `result`, `content` and `decision`",
            ),
            (
                json!({"result": 1, "content": [{"type": "text", "text": "x"}]}),
                "one of `result`, `content` and `decision`",
            ),
            (json!({"decision": "edit"}), "needs the new arguments"),
            (json!({"decision": "approve", "arguments": {}}), "/arguments: only"),
            (json!({"decision": "approve", "reason": "x"}), "/reason: only"),
            (json!({"decision": "deny", "remember": true}), "/remember: only"),
            (json!({"decision": "deny", "is_error": true}), "/is_error: only"),
            (json!({"decision": "deny", "reason": "x".repeat(4_097)}), "4096 bytes"),
            (json!({"decision": "perhaps"}), "unknown variant"),
            (json!({"approve": true}), "unknown field"),
        ] {
            let fault = read(&fields).unwrap_err();
            assert!(fault.contains(words), "{fields}: {fault}");
        }
    }
}
