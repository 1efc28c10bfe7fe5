//! Open calls as elicitations, and the responses of a client as answers.
//!
//! An elicitation asks for a flat object. The result of a client tool with another schema is asked
//! for as one text of JSON.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    InputRequest, InputRequests, InputResponses,
};
use serde_json::json;

use super::errors::invalid;
use crate::agent::{Answer, AnswerContent, Answers};
use crate::clock::Timestamp;
use crate::http::problem::Problem;
use crate::ids::RunId;
use crate::json::{Object, Value};
use crate::record::RunRecord;
use crate::session::{OpenCall, OpenCallKind};

/// The longest arguments that a question shows, in bytes.
const MAX_SHOWN: usize = 32 << 10;
/// The longest reason of a denial, in bytes.
const MAX_REASON: usize = 4096;

/// Returns whether the client can ask its user for a form.
pub(super) fn can_ask(capabilities: Option<&ClientCapabilities>) -> bool {
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation.as_ref());
    elicitation.is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none())
}

/// Returns a question for each open call that has not expired; `None` if there is none, or one that
/// this version can't ask.
pub(super) fn requests(run: &RunRecord, now: Timestamp) -> Result<Option<InputRequests>, ErrorData> {
    let mut requests = BTreeMap::new();
    for call in open_calls(run, now) {
        let schema = match call.kind {
            OpenCallKind::Approval => decision_schema(call)?,
            OpenCallKind::Client | OpenCallKind::Input => result_schema(call)?,
            OpenCallKind::Unknown => return Ok(None),
        };
        let params = ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: message(run, call),
            requested_schema: schema,
        };
        let request = InputRequest::Elicitation(ElicitRequest::new(params));
        requests.insert(key_of(run.summary.run_id, call), request);
    }
    Ok((!requests.is_empty()).then_some(requests))
}

/// Makes the answers from all responses; `None` if some are missing.
pub(super) fn answers(
    run: &RunRecord,
    mut responses: InputResponses,
    now: Timestamp,
) -> Result<Option<Answers>, ErrorData> {
    let mut answers = Vec::new();
    for call in open_calls(run, now) {
        let key = key_of(run.summary.run_id, call);
        let Some(response) = responses.remove(&key) else {
            return Ok(None);
        };
        let content = content_of(call, response).map_err(|words| invalid(format!("the response to {key}: {words}")))?;
        answers.push(Answer {
            call_id: call.call_id.clone(),
            arguments_hash: call.arguments_hash,
            content,
        });
    }
    Ok(Some(Answers {
        answers,
        deny_open: false,
        accepted_at: None,
    }))
}

/// Returns the open calls that have not expired.
pub(super) fn open_calls(run: &RunRecord, now: Timestamp) -> impl Iterator<Item = &OpenCall> {
    run.open_calls.iter().filter(move |call| call.expires_at > now)
}

/// Names a question. A task may ask several times, so the id of the call is not enough.
fn key_of(run_id: RunId, call: &OpenCall) -> String {
    format!("{run_id}/{}", call.call_id)
}

fn message(run: &RunRecord, call: &OpenCall) -> String {
    let mut arguments = call.arguments.to_string();
    if arguments.len() > MAX_SHOWN {
        let length = arguments.len();
        arguments.truncate(arguments.floor_char_boundary(MAX_SHOWN));
        // Writing to a string can't fail.
        let _ = write!(arguments, "… ({length} bytes; the run {} has all)", run.summary.run_id);
    }
    let (agent, tool) = (&run.summary.agent, &call.tool);
    match call.kind {
        OpenCallKind::Client => format!("The agent {agent} asks you for the result of {tool}: {arguments}"),
        OpenCallKind::Input => {
            let question = call.reason.as_deref().unwrap_or("it needs input");
            format!("The tool {tool} of the agent {agent} asks: {question}")
        }
        OpenCallKind::Approval | OpenCallKind::Unknown => {
            let reason = call
                .reason
                .as_ref()
                .map(|reason| format!(" ({reason})"))
                .unwrap_or_default();
            format!("The agent {agent} asks for your approval to call {tool}{reason}: {arguments}")
        }
    }
}

fn decision_schema(call: &OpenCall) -> Result<ElicitationSchema, ErrorData> {
    let mut properties = json!({
        "decision": {
            "type": "string",
            "title": "Decision",
            "description": "Whether the call is executed",
            "enum": ["approve", "deny"],
        },
        "reason": {
            "type": "string",
            "title": "Reason",
            "description": "Why the call is denied, for the agent",
            "maxLength": MAX_REASON,
        },
    });
    if let Some(properties) = properties.as_object_mut().filter(|_| call.remembers.is_some()) {
        let remember = json!({
            "type": "boolean",
            "title": "Remember",
            "description": "Whether the approval covers later calls of the tool in this conversation",
            "default": false,
        });
        properties.insert("remember".to_owned(), remember);
    }
    schema(json!({"type": "object", "properties": properties, "required": ["decision"]}))
}

/// Returns the schema of a result: its own if a form can have it.
fn result_schema(call: &OpenCall) -> Result<ElicitationSchema, ErrorData> {
    if let Some(flat) = flat_schema(call) {
        return Ok(flat);
    }
    let description = "The result, as text or as JSON";
    let result = json!({"type": "string", "title": "Result", "description": description});
    schema(json!({"type": "object", "properties": {"result": result}, "required": ["result"]}))
}

fn flat_schema(call: &OpenCall) -> Option<ElicitationSchema> {
    let object = call.response_schema.as_object()?;
    let properties = object.get("properties")?.as_object()?;
    // An object as a property would otherwise pass for a text.
    let is_simple = |property: &Value| {
        let kind = property.get("type").and_then(Value::as_str);
        matches!(kind, Some("string" | "number" | "integer" | "boolean"))
    };
    if properties.is_empty() || !properties.values().all(is_simple) {
        return None;
    }
    ElicitationSchema::from_json_schema(object.clone()).ok()
}

fn schema(value: Value) -> Result<ElicitationSchema, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::from(Problem::internal(error)))
}

/// Returns what a response says about a call.
fn content_of(call: &OpenCall, response: Value) -> Result<AnswerContent, &'static str> {
    let result: ElicitResult = serde_json::from_value(response).map_err(|_| "not the result of an elicitation")?;
    if result.action == ElicitationAction::Decline {
        return Ok(AnswerContent::Deny { reason: None });
    }
    if result.action == ElicitationAction::Cancel {
        let reason = Some("the user has dismissed the question".to_owned());
        return Ok(AnswerContent::Deny { reason });
    }
    let content = match result.content {
        Some(Value::Object(content)) => content,
        None => Object::new(),
        Some(_) => return Err("the content is not an object"),
    };
    match call.kind {
        OpenCallKind::Client | OpenCallKind::Input => client_result(call, content),
        OpenCallKind::Approval | OpenCallKind::Unknown => decision(&content),
    }
}

fn client_result(call: &OpenCall, mut content: Object) -> Result<AnswerContent, &'static str> {
    if flat_schema(call).is_some() {
        let value = Value::Object(content);
        return Ok(AnswerContent::Result { value, is_error: false });
    }
    let Some(Value::String(text)) = content.remove("result") else {
        return Err("the content has no text `result`");
    };
    let value = serde_json::from_str(&text).unwrap_or(Value::String(text));
    Ok(AnswerContent::Result { value, is_error: false })
}

fn decision(content: &Object) -> Result<AnswerContent, &'static str> {
    let reason = match content.get("reason") {
        None | Some(Value::Null) => None,
        Some(Value::String(reason)) if reason.len() <= MAX_REASON => Some(reason.clone()),
        Some(_) => return Err("`reason` is a text of at most 4096 bytes"),
    };
    let remember = match content.get("remember") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(remember)) => *remember,
        Some(_) => return Err("`remember` is true or false"),
    };
    match content.get("decision").and_then(Value::as_str) {
        Some("approve") => Ok(AnswerContent::Approve { remember }),
        Some("deny") => Ok(AnswerContent::Deny { reason }),
        _ => Err("`decision` is `approve` or `deny`"),
    }
}
