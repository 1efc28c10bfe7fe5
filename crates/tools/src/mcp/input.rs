//! Input that a server asks for during a call: as a result that requires input (since revision
//! 2026-07-28), or as a question of its own (`elicitation/create`, older revisions).
//!
//! The call ends, and the run waits for the caller. With the input, the call is made again. A
//! modern server goes on by the state that it gave. An older server asks its question
//! again, and is answered at once.

use std::collections::BTreeMap;

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequests, InputRequiredResult,
    InputResponses,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use agent::ports::Continuation;
use agent::state::NeededInput;
use values::json::{Object, Value};
use values::session::hash_tool_definition;

/// The most questions of one result.
const MAX_QUESTIONS: usize = 16;
/// The most bytes of a state that a server gives.
const MAX_STATE: usize = 64 << 10;
/// The most bytes of the questions.
const MAX_ASKED: usize = 64 << 10;
/// The key of the question of an older server in the input.
const QUESTION: &str = "answer";

/// The state that is stored with an open call.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct AskedState {
    /// The questions, by key.
    questions: BTreeMap<String, Value>,
    /// The state of a modern server.
    #[serde(skip_serializing_if = "Option::is_none")]
    request_state: Option<String>,
    /// Whether the questions come from an older server.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_legacy: bool,
    /// The answers to earlier questions of an older server, by the hash of the question.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    answers: BTreeMap<String, Value>,
}

/// The answers that a resumed call sends.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Resumed {
    /// The responses to the questions of a modern server.
    pub(super) responses: Option<InputResponses>,
    /// Its state.
    pub(super) request_state: Option<String>,
    /// The answers to the questions of an older server, by the hash of the question.
    pub(super) answers: BTreeMap<String, Value>,
}

impl Resumed {
    /// Reads the input of the caller. Without any, returns a call that begins.
    pub(super) fn of(continuation: Option<&Continuation>) -> Self {
        let Some(Continuation {
            state,
            input: Some(input),
        }) = continuation
        else {
            return Self::default();
        };
        let Ok(state) = AskedState::deserialize(state) else {
            return Self::default();
        };
        let answers = state.questions.iter().map(|(key, question)| {
            let content = input.get(key).cloned().unwrap_or_default();
            (key, question, with_defaults(question, content))
        });
        if state.is_legacy {
            let new = answers.map(|(_, question, content)| (hash_tool_definition(question).to_string(), content));
            return Self {
                answers: state
                    .answers
                    .iter()
                    .map(|(key, answer)| (key.clone(), answer.clone()))
                    .chain(new)
                    .collect(),
                ..Self::default()
            };
        }
        let responses = answers.map(|(key, _, content)| (key.clone(), json!({"action": "accept", "content": content})));
        Self {
            responses: Some(responses.collect()),
            request_state: state.request_state,
            answers: BTreeMap::new(),
        }
    }
}

/// Returns the input that a result of a modern server requires. The error says why no caller can
/// give it.
pub(super) fn needed(result: InputRequiredResult) -> Result<NeededInput, &'static str> {
    let requests: InputRequests = result.input_requests.unwrap_or_default();
    let questions = requests.into_iter().map(|(key, request)| match request {
        InputRequest::Elicitation(request) => Ok((key, question(&request.params)?)),
        InputRequest::CreateMessage(_) => Err("it asks for a completion of a model, which it does not get"),
        InputRequest::ListRoots(_) => Err("it asks for directories, which do not exist here"),
        _ => Err("it asks for something that this version of the service does not know"),
    });
    let state = AskedState {
        questions: questions.collect::<Result<_, _>>()?,
        request_state: result.request_state,
        ..AskedState::default()
    };
    if state
        .request_state
        .as_ref()
        .is_some_and(|state| state.len() > MAX_STATE)
    {
        return Err("its state is too large");
    }
    asked(&state)
}

/// Returns the input that a question of an older server needs.
pub(super) fn needed_by_question(
    asked_by: &ElicitRequestParams,
    answers: BTreeMap<String, Value>,
) -> Result<NeededInput, &'static str> {
    asked(&AskedState {
        questions: BTreeMap::from([(QUESTION.to_owned(), question(asked_by)?)]),
        is_legacy: true,
        answers,
        ..AskedState::default()
    })
}

fn asked(state: &AskedState) -> Result<NeededInput, &'static str> {
    let questions = &state.questions;
    if questions.len() > MAX_QUESTIONS {
        return Err("it asks too many questions");
    }
    let is_only = questions.len() == 1;
    let schemas: Object = questions
        .iter()
        .map(|(key, question)| (key.clone(), schema_of(question, is_only)))
        .collect();
    let messages = questions
        .values()
        .filter_map(|question| question.get("message")?.as_str());
    let messages: Vec<_> = messages.collect();
    let keys: Vec<_> = questions.keys().collect();
    let schema = json!({
        "type": "object", "properties": schemas, "required": keys, "additionalProperties": false,
    });
    let stored = serde_json::to_value(state).unwrap_or_default();
    if values::json::json_length(&stored) > MAX_ASKED + MAX_STATE {
        return Err("its questions are too large");
    }
    Ok(NeededInput {
        message: messages.join("\n"),
        schema,
        state: stored,
    })
}

/// Returns the schema of the answer to a question. Its description begins with the message, unless
/// the question is the only one.
fn schema_of(question: &Value, is_only: bool) -> Value {
    let mut schema = question.get("schema").cloned().unwrap_or_default();
    if let (false, Some(message), Some(object)) = (is_only, question.get("message"), schema.as_object_mut()) {
        let words = [Some(message), object.get("description")];
        let words: Vec<_> = words.into_iter().flatten().filter_map(Value::as_str).collect();
        object.insert("description".to_owned(), json!(words.join("\n")));
    }
    schema
}

/// Returns the message and the schema of a question.
fn question(asked: &ElicitRequestParams) -> Result<Value, &'static str> {
    match asked {
        ElicitRequestParams::FormElicitationParams {
            message,
            requested_schema,
            ..
        } => {
            let schema = serde_json::to_value(requested_schema).unwrap_or_default();
            Ok(json!({"message": message, "schema": schema}))
        }
        _ => Err("it sends the user to an address, which needs a browser"),
    }
}

/// Returns the hash by which the answer to a question is found again.
pub(super) fn question_hash(asked: &ElicitRequestParams) -> String {
    question(asked).map_or_else(
        |_| String::new(),
        |question| hash_tool_definition(&question).to_string(),
    )
}

/// Returns the response to a question of an older server.
pub(super) fn accepted(asked: &ElicitRequestParams, answer: &Value) -> ElicitResult {
    let question = question(asked).unwrap_or_default();
    let mut result = ElicitResult::new(ElicitationAction::Accept);
    result.content = Some(with_defaults(&question, answer.clone()));
    result
}

/// Fills in the defaults of the schema for fields that the caller left out.
fn with_defaults(question: &Value, content: Value) -> Value {
    let Value::Object(mut content) = content else {
        return content;
    };
    let properties = question.pointer("/schema/properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        if let Some(default) = schema.get("default")
            && !content.contains_key(name)
        {
            content.insert(name.clone(), default.clone());
        }
    }
    Value::Object(content)
}
