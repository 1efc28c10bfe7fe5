//! The items of an input, read for their form.
//!
//! Clients send back the items of earlier responses, often without some of their fields, so only
//! what the service needs is required.

use serde::Deserialize;

use super::content::{read_content, read_output};
use crate::http::codes::ProblemCode;
use crate::http::faces::fields::{decode, missing, unsupported, wrong_type};
use crate::http::faces::openai::executed_calls::executed_id;
use crate::http::faces::openai::reasoning::Marks;
use crate::http::openai_settings::Seal;
use crate::http::problem::Problem;
use values::json::Value;
use values::message::{ContentPart, Role, ToolCall};
use values::tenant::TenantId;

/// An item of an input.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::http) enum Item {
    /// A message.
    Message { role: Role, content: Vec<ContentPart> },
    /// Reasoning of the model: its words, which may be none, and the marks of its message.
    Reasoning { text: String, marks: Option<Marks> },
    /// A call that the model has asked for.
    Call(ToolCall),
    /// A call of a tool of the agent, with its result.
    ExecutedCall {
        call: ToolCall,
        content: Vec<ContentPart>,
        is_error: bool,
    },
    /// The result of a call.
    Output { call_id: String, content: Vec<ContentPart> },
    /// A request for a decision about a call.
    ApprovalRequest,
    /// A decision about a call.
    Decision {
        /// The id of the item that asks for the approval.
        request_id: String,
        approves: bool,
        reason: Option<String>,
    },
    /// An item of an earlier response, by its id.
    Reference { id: String },
}

impl Item {
    /// Returns whether the item comes from the model. Clients name the items of responses by ids.
    pub(super) fn is_of_model(&self) -> bool {
        match self {
            Self::Message { role, .. } => *role == Role::Assistant,
            Self::Output { .. } | Self::Decision { .. } => false,
            Self::Reasoning { .. }
            | Self::Call(_)
            | Self::ExecutedCall { .. }
            | Self::ApprovalRequest
            | Self::Reference { .. } => true,
        }
    }
}

/// Opens sealed reasoning of a tenant.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Opener<'a> {
    pub(in crate::http) seal: Option<&'a Seal>,
    pub(in crate::http) tenant: &'a TenantId,
}

#[derive(Debug, Deserialize)]
struct FunctionCall {
    call_id: String,
    name: String,
    #[serde(default)]
    arguments: String,
}

#[derive(Debug, Deserialize)]
struct FunctionOutput {
    call_id: String,
    output: Value,
}

#[derive(Debug, Deserialize)]
struct McpCall {
    id: String,
    name: String,
    #[serde(default)]
    arguments: String,
    output: Option<String>,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct ApprovalResponse {
    approval_request_id: String,
    approve: bool,
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Reasoning {
    #[serde(default)]
    summary: Vec<ReasoningText>,
    content: Option<Vec<ReasoningText>>,
    encrypted_content: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ReasoningText {
    #[serde(default)]
    text: String,
}

#[derive(Debug, Deserialize)]
struct Reference {
    id: String,
}

/// Reads the input: a text, or items.
pub(in crate::http) fn read_input(value: Value, opener: Opener<'_>, max: usize) -> Result<Vec<(usize, Item)>, Problem> {
    let items = match value {
        Value::String(_) => vec![serde_json::json!({"role": "user", "content": value})],
        Value::Array(items) => items,
        _ => return Err(wrong_type("/input", "neither a string nor a list of items")),
    };
    read_list(items, opener, max, "input")
}

/// Reads a list of items, which is the named field. Each item has its index, for messages about it.
pub(super) fn read_list(
    items: Vec<Value>,
    opener: Opener<'_>,
    max: usize,
    field: &str,
) -> Result<Vec<(usize, Item)>, Problem> {
    if items.len() > max {
        let words = format!("{} items, and at most {max} are allowed", items.len());
        return Err(Problem::of_field(
            ProblemCode::TooManyMessages,
            format!("/{field}"),
            words,
        ));
    }
    let items = items.into_iter().enumerate();
    let items = items.filter_map(|(index, item)| {
        let read = read_item(item, opener, &format!("/{field}/{index}"));
        read.map(|item| item.map(|item| (index, item))).transpose()
    });
    items.collect()
}

/// Reads an item; `None` for one that says nothing to the model.
fn read_item(mut item: Value, opener: Opener<'_>, pointer: &str) -> Result<Option<Item>, Problem> {
    let Value::Object(fields) = &mut item else {
        return Err(wrong_type(pointer, "not an item: an object"));
    };
    let kind = match fields.get("type") {
        Some(Value::String(kind)) => kind.clone(),
        Some(kind) if !kind.is_null() => return Err(wrong_type(format!("{pointer}/type"), "not a string")),
        _ if fields.contains_key("role") => "message".to_owned(),
        _ if fields.contains_key("id") => "item_reference".to_owned(),
        _ => return Err(missing(pointer, "type")),
    };
    Ok(Some(match kind.as_str() {
        "message" => {
            let role = fields.remove("role").ok_or_else(|| missing(pointer, "role"))?;
            let role = read_role(&role, &format!("{pointer}/role"))?;
            let content = fields.remove("content").unwrap_or_default();
            let content = read_content(content, role, &format!("{pointer}/content"))?;
            if content.is_empty() && role != Role::Assistant {
                return Ok(None);
            }
            Item::Message { role, content }
        }
        "function_call" => {
            let FunctionCall {
                call_id,
                name,
                arguments,
            } = decode(item, pointer)?;
            Item::Call(call(call_id, name, arguments))
        }
        "function_call_output" => {
            let FunctionOutput { call_id, output } = decode(item, pointer)?;
            let content = read_output(output, &format!("{pointer}/output"))?;
            Item::Output { call_id, content }
        }
        "mcp_call" => executed_call(decode(item, pointer)?),
        "mcp_approval_response" => {
            let response: ApprovalResponse = decode(item, pointer)?;
            Item::Decision {
                request_id: response.approval_request_id,
                approves: response.approve,
                reason: response.reason.filter(|reason| !reason.is_empty()),
            }
        }
        "reasoning" => return Ok(read_reasoning(decode(item, pointer)?, opener)),
        "item_reference" => {
            let Reference { id } = decode(item, pointer)?;
            Item::Reference { id }
        }
        "mcp_approval_request" => Item::ApprovalRequest,
        // The agent has its own tools.
        "mcp_list_tools" => return Ok(None),
        kind => {
            let words = format!("items of the type {kind:?} are not supported");
            return Err(unsupported(format!("{pointer}/type"), words));
        }
    }))
}

fn read_role(role: &Value, pointer: &str) -> Result<Role, Problem> {
    match role.as_str() {
        None => Err(wrong_type(pointer, "not a string")),
        Some("user") => Ok(Role::User),
        Some("assistant") => Ok(Role::Assistant),
        Some("system" | "developer") => Ok(Role::System),
        Some(_) => Err(Problem::invalid_field(
            pointer,
            "not one of `user`, `assistant`, `system` and `developer`",
        )),
    }
}

fn executed_call(item: McpCall) -> Item {
    let is_error = item.error.is_some();
    let text = item.output.or_else(|| item.error.as_ref().map(error_text));
    Item::ExecutedCall {
        call: call(executed_id(&item.id), item.name, item.arguments),
        content: vec![ContentPart::text(text.unwrap_or_default())],
        is_error,
    }
}

/// Returns the text of the error of a call: a string, or an object with texts.
fn error_text(error: &Value) -> String {
    let text = error.as_str().or_else(|| error.pointer("/content/0/text")?.as_str());
    text.map_or_else(|| error.to_string(), str::to_owned)
}

fn call(id: String, name: String, arguments: String) -> ToolCall {
    ToolCall {
        id,
        name,
        arguments,
        signature: None,
    }
}

/// Reads reasoning; `None` if it has neither words nor marks. Marks that do not open are left out.
fn read_reasoning(item: Reasoning, opener: Opener<'_>) -> Option<Item> {
    let sealed = item.encrypted_content;
    let marks = sealed.and_then(|sealed| Marks::open(opener.seal?, opener.tenant, &sealed));
    let texts = item.summary.into_iter().chain(item.content.into_iter().flatten());
    let texts: Vec<String> = texts.map(|part| part.text).filter(|text| !text.is_empty()).collect();
    let text = texts.join("\n\n");
    (!text.is_empty() || marks.is_some()).then_some(Item::Reasoning { text, marks })
}
