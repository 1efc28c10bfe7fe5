//! A tool that stands in for servers and tools that can't be used, so that the model learns of
//! them.

use futures_util::future::BoxFuture;
use serde_json::json;

use super::definition::McpDefinition;
use super::naming::tool_name;
use super::request_error::RequestError;
use agent::ports::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use values::json::Value;

/// A tool whose calls fail.
#[derive(Debug)]
pub(super) struct UnavailableTool {
    spec: ToolSpec,
}

impl UnavailableTool {
    /// Stands for all tools of a server that can't be used.
    pub(super) fn of_server(definition: &McpDefinition, error: &RequestError) -> Self {
        let McpDefinition { name, .. } = definition;
        Self::new(
            tool_name(&definition.prefix(), "unavailable"),
            format!(
                "The tools of the server {name:?} are not available in this run: {error}. Do not call this tool. If you \
                 need the server, say so in your answer."
            ),
        )
    }

    /// Stands for a tool whose definition has changed.
    pub(super) fn changed(tool: &str, server: &str) -> Self {
        Self::new(
            tool.to_owned(),
            format!(
                "This tool is not available: the server {server:?} has changed its definition since this session first \
                 used the server, and the operator does not allow that."
            ),
        )
    }

    fn new(name: String, description: String) -> Self {
        Self {
            spec: ToolSpec {
                name,
                description,
                parameters: json!({"type": "object"}),
                idempotent: true,
                read_only: true,
                destructive: false,
                timeout: None,
            },
        }
    }
}

impl Tool for UnavailableTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, _: Value, _: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move { Err(ToolError::new(self.spec.description.clone())) })
    }
}
