//! The common part of the tools that touch nothing but the environment of their run: the files, the
//! variables and the resources.
//!
//! Every such tool is idempotent, also if it edits: the environment is persisted together with
//! the end of the call that changed it. So a call whose end is not persisted has left no trace in
//! the environment that a takeover restores, and can be repeated. This holds only if a call ends
//! right after its change: there must be no `await` after `WorkspaceEdit::finish`. Otherwise the
//! journal entry of another call could contain the change, but not the end of the call.

use futures_util::future::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::json;

use agent::ports::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use values::json::{Object, Value};
use workspace::environment::EnvironmentError;

/// A tool that is one function.
#[derive(Debug)]
pub(super) struct FunctionTool {
    pub(super) spec: ToolSpec,
    pub(super) run: Run,
    pub(super) stores_long_output: bool,
}

pub(super) type Run = for<'a> fn(Value, &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;

impl FunctionTool {
    /// Makes a tool with short results.
    pub(super) fn new(spec: ToolSpec, run: Run) -> Self {
        Self {
            spec,
            run,
            stores_long_output: false,
        }
    }
}

impl Tool for FunctionTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        (self.run)(arguments, context)
    }

    fn stores_long_output(&self) -> bool {
        self.stores_long_output
    }
}

/// The effect of a call on the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Changes nothing.
    Reads,
    /// Changes only data that the tool itself has stored.
    Notes,
    /// May overwrite or delete data of the caller or of other tools.
    Overwrites,
}

/// Makes the spec of a tool that touches nothing but the environment.
pub(super) fn environment_tool(
    name: &str,
    effect: Effect,
    description: &str,
    properties: Value,
    required: &[&str],
) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: arguments_schema(properties, required),
        idempotent: true,
        read_only: effect == Effect::Reads,
        destructive: effect == Effect::Overwrites,
        timeout: None,
    }
}

/// Makes the schema of arguments: these properties and no others.
pub(super) fn arguments_schema(properties: Value, required: &[&str]) -> Value {
    let mut schema = Object::from_iter([
        ("type".to_owned(), json!("object")),
        ("properties".to_owned(), properties),
        ("additionalProperties".to_owned(), json!(false)),
    ]);
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    Value::Object(schema)
}

/// Reads the arguments of a call, which fit the schema.
pub(super) fn read_arguments<T: DeserializeOwned>(arguments: Value) -> Result<T, ToolError> {
    serde_path_to_error::deserialize(arguments)
        .map_err(|error| ToolError::new(format!("the arguments can't be read: {error}")))
}

/// Makes the error of a change of variables or resources that was refused.
pub(super) fn refused(what: &str, error: &EnvironmentError) -> ToolError {
    ToolError::new(format!("{what} could not be set: {error}"))
}

/// Returns the number of names that are not listed.
pub(super) fn and_more(more: usize) -> String {
    if more == 0 {
        return String::new();
    }
    format!(" and {more} more")
}
