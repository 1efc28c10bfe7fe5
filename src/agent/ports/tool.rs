//! The port to tools: what one is, how calls are executed, and what a call may know of its run.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::agent::events::EventSink;
use crate::agent::state::ToolExecution;
use crate::clock::Timestamp;
use crate::ids::ExecutionId;
use crate::json::{Object, Value};
use crate::message::{ContentPart, ToolCall};

/// What a model is told of a tool, and how calls of it are treated.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name that models call.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// The JSON Schema (draft 2020-12) of its arguments: an object.
    pub parameters: Value,
    /// Whether a call may be repeated without a second effect.
    pub idempotent: bool,
    /// The most time that a call may take, where it differs from the service's.
    pub timeout: Option<Duration>,
}

/// What a call may know of its run.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The execution that the call belongs to.
    pub execution_id: ExecutionId,
    /// The number of the step, from 1.
    pub step_number: usize,
    /// The environment's variables.
    pub variables: Arc<BTreeMap<String, Value>>,
    /// The context's metadata.
    pub metadata: Object,
    /// When the execution's time is spent; calls are cut then.
    pub deadline: Option<Timestamp>,
    /// Cancelled when the run is; calls are cut then.
    pub cancellation: CancellationToken,
}

/// What a tool answers.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// What the model reads: texts, images and documents.
    pub content: Vec<ContentPart>,
}

impl ToolOutput {
    /// Makes an answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ContentPart::text(text)],
        }
    }
}

/// A tool that failed, in words for the model. The loop goes on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// What happened and, if it can, what the model should do instead.
    pub message: String,
}

impl ToolError {
    /// Makes an error.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
        }
    }
}

/// A tool.
pub trait Tool: Send + Sync + fmt::Debug {
    /// Returns what models are told of it.
    fn spec(&self) -> &ToolSpec;

    /// Runs a call whose arguments fit the schema. Dropping the future cuts the call.
    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// No tool has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no tool is named {name:?}; known are {known}")]
pub struct UnknownTool {
    /// The name.
    pub name: String,
    /// The names that exist, joined.
    pub known: String,
}

/// Makes executors of chosen tools.
pub trait ToolCatalog: Send + Sync + fmt::Debug {
    /// Returns an executor of the named tools, in the order of the names.
    fn executor(&self, names: &[String]) -> Result<Arc<dyn ToolExecutor>, UnknownTool>;
}

/// Executes the calls of a step.
pub trait ToolExecutor: Send + Sync + fmt::Debug {
    /// Returns the tools that may be called, in a stable order.
    fn specs(&self) -> Arc<[ToolSpec]>;

    /// Executes calls, several at once, and tells the sink of each that ends.
    ///
    /// Returns exactly one execution for every call, in the order of the calls, and in time: a call that is unknown, does not
    /// fit its schema, fails, panics, takes too long or is cut by the run's end is an execution with an error.
    fn execute<'a>(
        &'a self,
        calls: Vec<ToolCall>,
        context: ToolContext,
        events: &'a dyn EventSink,
    ) -> BoxFuture<'a, Vec<ToolExecution>>;
}
