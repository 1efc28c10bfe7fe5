//! Calls that the agent has executed, as items of the type `mcp_call`.

use serde::Serialize;

use super::ids::ItemId;
use super::parts::ItemStatus;
use values::json::Object;
use values::message::{ToolCall, is_plain_id};

/// The name of the server that has the agent's tools.
pub(super) const SERVER: &str = "agent";

/// The beginning of the ids of calls that come from items of the type `mcp_call`.
pub(super) const EXECUTED: &str = "mcp_";

/// Returns the id of the call of an item of the type `mcp_call`. Providers refuse long ids.
pub(super) fn executed_id(item_id: &str) -> String {
    if item_id.starts_with(EXECUTED) && is_plain_id(item_id, ToolCall::PLAIN_ID) {
        return item_id.to_owned();
    }
    format!("{EXECUTED}{}", &blake3::hash(item_id.as_bytes()).to_hex()[..24])
}

/// A call that the agent has executed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct McpCallItem {
    pub(super) id: ItemId,
    pub(super) server_label: &'static str,
    pub(super) name: String,
    pub(super) arguments: String,
    pub(super) output: Option<String>,
    pub(super) error: Option<McpError>,
    pub(super) approval_request_id: Option<ItemId>,
    pub(super) status: ItemStatus,
}

/// The error of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct McpError {
    #[serde(rename = "type")]
    kind: &'static str,
    content: [McpErrorText; 1],
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct McpErrorText {
    #[serde(rename = "type")]
    kind: &'static str,
    text: String,
}

impl McpCallItem {
    /// Makes a call that has ended with a text.
    pub(super) fn ended(id: ItemId, name: String, arguments: String, text: String, is_error: bool) -> Self {
        let (output, error, status) = if is_error {
            (None, Some(McpError::new(text)), ItemStatus::Failed)
        } else {
            (Some(text), None, ItemStatus::Completed)
        };
        Self {
            id,
            server_label: SERVER,
            name,
            arguments: shown_arguments(arguments),
            output,
            error,
            approval_request_id: None,
            status,
        }
    }
}

impl McpError {
    fn new(text: String) -> Self {
        Self {
            kind: "mcp_tool_execution_error",
            content: [McpErrorText { kind: "text", text }],
        }
    }
}

/// Returns the arguments of a call that the service has executed: `{}` if they are no JSON object.
/// The model may have written anything, and clients parse them.
fn shown_arguments(arguments: String) -> String {
    match serde_json::from_str::<Object>(&arguments) {
        Ok(_) => arguments,
        Err(_) => "{}".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_of_executed_calls_are_always_a_json_object() {
        let object = r#"{"a": [1]}"#;
        assert_eq!(shown_arguments(object.to_owned()), object);
        for written in [r#"{"exp"#, "", "[1]", "null", "{} {}"] {
            assert_eq!(shown_arguments(written.to_owned()), "{}", "{written}");
        }
    }
}
