//! The forms that a client fills in about an open call, and their meaning.
//!
//! A form is a flat object. Input for a tool has a form for each question of the tool. The result
//! of a client tool with another schema is asked for as one text.

use rmcp::ErrorData;
use rmcp::model::{ElicitResult, ElicitationAction, ElicitationSchema};
use serde_json::json;

use crate::http::problem::Problem;
use agent::answers::AnswerContent;
use values::json::{JsonSchema, Object, Value};
use values::session::{OpenCall, OpenCallKind};

/// The longest arguments or schema that a question shows, in bytes.
const MAX_SHOWN: usize = 32 << 10;
/// The longest reason of a denial, in bytes.
const MAX_REASON: usize = 4096;

/// A form about a call.
#[derive(Debug)]
pub(super) struct Form {
    pub(super) kind: FormKind,
    pub(super) schema: ElicitationSchema,
}

/// The answer that a form asks for.
#[derive(Debug)]
pub(super) enum FormKind {
    /// A decision about the call.
    Decision,
    /// The answer to the question of the tool with this key.
    Question(String),
    /// The result, which is the form itself.
    Object,
    /// The result as a text.
    Text,
}

/// Returns the forms of a call; `None` if this version can't ask about it.
pub(super) fn forms_of(call: &OpenCall) -> Result<Option<Vec<Form>>, ErrorData> {
    let forms = match call.kind {
        OpenCallKind::Approval => vec![decision_form(call)?],
        OpenCallKind::Client => vec![result_form(call)?],
        OpenCallKind::Input => match question_forms(call) {
            Some(forms) => forms,
            None => vec![result_form(call)?],
        },
        OpenCallKind::Unknown => return Ok(None),
    };
    Ok(Some(forms))
}

/// Returns the answer that the responses to all forms of a call give. A form that is declined
/// denies the call.
pub(super) fn content_of(
    call: &OpenCall,
    filled: impl IntoIterator<Item = (Form, Value)>,
) -> Result<AnswerContent, &'static str> {
    let mut answers = Object::new();
    for (form, response) in filled {
        let response: ElicitResult =
            serde_json::from_value(response).map_err(|_| "not the result of an elicitation")?;
        match response.action {
            ElicitationAction::Decline => return Ok(AnswerContent::Deny { reason: None }),
            ElicitationAction::Cancel => {
                let reason = Some("the user has dismissed the question".to_owned());
                return Ok(AnswerContent::Deny { reason });
            }
            _ => (),
        }
        let mut content = match response.content {
            Some(Value::Object(content)) => content,
            None => Object::new(),
            Some(_) => return Err("the content is not an object"),
        };
        match form.kind {
            FormKind::Decision => return decision(&content),
            FormKind::Object => return Ok(result(Value::Object(content))),
            FormKind::Text => {
                let Some(Value::String(text)) = content.remove("result") else {
                    return Err("the content has no text `result`");
                };
                return Ok(result(value_of(&call.response_schema, text)));
            }
            FormKind::Question(key) => answers.insert(key, Value::Object(content)),
        };
    }
    Ok(result(Value::Object(answers)))
}

/// Returns JSON as a question shows it, and whether it is complete.
pub(super) fn shown(value: &Value) -> (String, bool) {
    let mut text = value.to_string();
    let is_complete = text.len() <= MAX_SHOWN;
    if !is_complete {
        text.truncate(text.floor_char_boundary(MAX_SHOWN));
        text.push('…');
    }
    (text, is_complete)
}

fn result(value: Value) -> AnswerContent {
    AnswerContent::Result { value, is_error: false }
}

/// Returns the value that a text stands for: the text itself if the schema allows it, and otherwise
/// the value that it is the JSON of.
fn value_of(schema: &Value, text: String) -> Value {
    let as_text = Value::String(text);
    let is_allowed = |schema: &Value| JsonSchema::compile(schema).is_ok_and(|schema| schema.check(&as_text).is_ok());
    if takes(schema) == Takes::Text || is_allowed(schema) {
        return as_text;
    }
    let parsed = as_text.as_str().and_then(|text| serde_json::from_str(text).ok());
    parsed.unwrap_or(as_text)
}

/// The values that a schema takes, as its type says.
#[derive(Debug, PartialEq, Eq)]
enum Takes {
    Text,
    Both,
    Json,
}

fn takes(schema: &Value) -> Takes {
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "string" => Takes::Text,
        Some(Value::Array(kinds)) if kinds.iter().any(|kind| kind == "string") => Takes::Both,
        None => Takes::Both,
        Some(_) => Takes::Json,
    }
}

fn decision_form(call: &OpenCall) -> Result<Form, ErrorData> {
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
    form(FormKind::Decision, &properties, "decision")
}

/// Returns the form of a result: its own schema if it is flat, and otherwise a text.
fn result_form(call: &OpenCall) -> Result<Form, ErrorData> {
    let schema = &call.response_schema;
    if is_flat(schema)
        && let Some(form) = own_form(FormKind::Object, schema)
    {
        return Ok(form);
    }
    let allows_all = [json!(true), json!({}), json!({"type": "string"})].contains(schema);
    let (shown, _) = shown(schema);
    let description = match takes(schema) {
        _ if allows_all => "The result, as text".to_owned(),
        Takes::Text => format!("The result, as text that fits the schema {shown}"),
        Takes::Both => format!("The result, as text or as JSON that fits the schema {shown}"),
        Takes::Json => format!("The result, as JSON that fits the schema {shown}"),
    };
    let result = json!({"type": "string", "title": "Result", "description": description});
    form(FormKind::Text, &json!({"result": result}), "result")
}

/// Returns a form for each question of a tool; `None` if a form can't have one of them.
fn question_forms(call: &OpenCall) -> Option<Vec<Form>> {
    let questions = call.response_schema.get("properties")?.as_object()?;
    if questions.is_empty() {
        // A caller that accepts the empty form lets the call continue.
        return Some(vec![own_form(FormKind::Object, &call.response_schema)?]);
    }
    let forms = questions.iter();
    let forms = forms.map(|(key, schema)| own_form(FormKind::Question(key.clone()), schema));
    forms.collect()
}

/// Returns a form with this schema; `None` if no form can have it.
fn own_form(kind: FormKind, schema: &Value) -> Option<Form> {
    let schema = ElicitationSchema::from_json_schema(schema.as_object()?.clone()).ok()?;
    Some(Form { kind, schema })
}

fn is_flat(schema: &Value) -> bool {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return false;
    };
    // An object as a property would otherwise pass for a text.
    let is_simple = |property: &Value| {
        let kind = property.get("type").and_then(Value::as_str);
        matches!(kind, Some("string" | "number" | "integer" | "boolean"))
    };
    !properties.is_empty() && properties.values().all(is_simple)
}

fn form(kind: FormKind, properties: &Value, required: &str) -> Result<Form, ErrorData> {
    let schema = json!({"type": "object", "properties": properties, "required": [required]});
    let schema = serde_json::from_value(schema).map_err(|error| ErrorData::from(Problem::internal(error)))?;
    Ok(Form { kind, schema })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stands_for_itself_if_the_schema_allows_it() {
        for (schema, text, value) in [
            (json!(true), "1", json!("1")),
            (json!({}), "[]", json!("[]")),
            (json!({"type": "string"}), "true", json!("true")),
            (json!({"type": "string", "maxLength": 1}), "12", json!("12")),
            (json!({"type": ["string", "null"]}), "null", json!("null")),
            (json!({"type": ["string", "integer"], "maxLength": 1}), "12", json!(12)),
            (json!({"enum": ["a", 1]}), "a", json!("a")),
            (json!({"enum": ["a", 1]}), "1", json!(1)),
            (
                json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
                "1",
                json!("1"),
            ),
            (json!({"anyOf": [{"type": "integer"}, {"type": "null"}]}), "1", json!(1)),
            (json!({"type": "boolean"}), "true", json!(true)),
            (json!({"type": "boolean"}), "yes", json!("yes")),
            (json!({"type": "array"}), " [1] ", json!([1])),
        ] {
            assert_eq!(value_of(&schema, text.to_owned()), value, "{schema} {text}");
        }
    }
}
