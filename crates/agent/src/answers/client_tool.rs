//! Tools that the caller executes. The service shows them to the model and never calls them.

use futures_util::future::{BoxFuture, ready};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::approval::check_expiry;
use crate::ports::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use values::json::{JsonSchema, Value};

/// The most client tools of an agent.
const MAX_CLIENT_TOOLS: usize = 128;

/// A tool that the caller executes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientTool {
    /// The name that models call: 1 to 64 letters, digits, `-` and `_`. No other tool of the agent
    /// has it.
    #[schema(pattern = "^[A-Za-z0-9_-]{1,64}$")]
    pub name: String,
    /// The description of the tool, for the model.
    #[serde(default)]
    pub description: String,
    /// The JSON Schema of the arguments: an object. By default the tool has no arguments.
    #[serde(default = "no_arguments")]
    #[schema(value_type = Object)]
    pub parameters: Value,
    /// The JSON Schema of the result; by default any result fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub response_schema: Option<Value>,
    /// How long a call waits, in seconds; by default `runs.answer_expiry`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1, maximum = 31_536_000)]
    pub expires_after_seconds: Option<u32>,
}

/// A fault of a list of client tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientToolFault {
    /// The index and the field of the tool at fault; `None` if the list is too long.
    pub at: Option<(usize, &'static str)>,
    /// What is wrong.
    pub message: String,
}

fn no_arguments() -> Value {
    json!({"type": "object", "additionalProperties": false})
}

impl ClientTool {
    /// Checks the client tools of an agent that has the named other tools.
    pub fn check_all(tools: &[Self], others: &[String]) -> Result<(), ClientToolFault> {
        if tools.len() > MAX_CLIENT_TOOLS {
            let message = format!("the most are {MAX_CLIENT_TOOLS}");
            return Err(ClientToolFault { at: None, message });
        }
        for (index, tool) in tools.iter().enumerate() {
            let name = &tool.name;
            let fault = |field, message| {
                let at = Some((index, field));
                ClientToolFault { at, message }
            };
            if !ToolSpec::is_valid_name(name) {
                let rule = "a tool is named by 1 to 64 letters, digits, `-` and `_`";
                return Err(fault("name", format!("{rule}, not {name:?}")));
            }
            if others.contains(name) || tools[..index].iter().any(|other| other.name == *name) {
                return Err(fault("name", format!("two tools would be named {name:?}")));
            }
            let checked = tool.check();
            checked.map_err(|(field, message)| fault(field, format!("the tool {name:?}: {message}")))?;
        }
        Ok(())
    }

    /// Checks all but the name. The error has the field at fault.
    fn check(&self) -> Result<(), (&'static str, String)> {
        JsonSchema::compile_object(&self.parameters)
            .map_err(|error| ("parameters", format!("its parameters: {error}")))?;
        if let Some(schema) = &self.response_schema {
            JsonSchema::compile(schema)
                .map_err(|error| ("response_schema", format!("its response_schema: {error}")))?;
        }
        check_expiry(self.expires_after_seconds).map_err(|message| ("expires_after_seconds", message))
    }

    /// Returns the tool as executors know it.
    pub fn to_tool(&self) -> impl Tool + 'static {
        let spec = ToolSpec {
            name: self.name.clone(),
            description: self.description.clone(),
            parameters: self.parameters.clone(),
            ..ToolSpec::default()
        };
        Shown { spec }
    }
}

/// A client tool as the model sees it.
#[derive(Debug)]
struct Shown {
    spec: ToolSpec,
}

impl Tool for Shown {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Fails: the driver leaves the call open before it gets here.
    fn call<'a>(&'a self, _: Value, _: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let name = &self.spec.name;
        Box::pin(ready(Err(ToolError::new(format!(
            "{name} is executed by the caller, and this call can't wait for it"
        )))))
    }
}
