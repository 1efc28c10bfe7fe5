//! The port to tools: their descriptions, the execution of calls, and the context of a call.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use crate::state::{NeededInput, ToolExecution, ToolTrace};
use values::clock::Deadline;
use values::ids::{AgentId, ExecutionId};
use values::json::{JsonSchema, Object, Value};
use values::limits::Pattern;
use values::message::{ContentPart, ToolCall};
use values::trace_context::TraceContext;
use workspace::environment::Environment;

/// The description of a tool for the model, and how its calls are treated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolSpec {
    /// The name that models call.
    pub name: String,
    /// The purpose of the tool, for the model.
    pub description: String,
    /// The JSON Schema (draft 2020-12) of its arguments: an object.
    pub parameters: Value,
    /// Whether a call may be repeated without a second effect.
    pub idempotent: bool,
    /// Whether a call changes nothing.
    pub read_only: bool,
    /// Whether a call may overwrite or delete existing data.
    pub destructive: bool,
    /// The timeout of a call, if it differs from the service's.
    pub timeout: Option<Duration>,
}

impl ToolSpec {
    /// The longest name that every provider takes, in bytes.
    pub const MAX_NAME_LENGTH: usize = 64;

    /// Returns whether every provider takes a tool, or a schema, of this name.
    pub fn is_valid_name(name: &str) -> bool {
        let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_');
        (1..=Self::MAX_NAME_LENGTH).contains(&name.len()) && name.bytes().all(allowed)
    }
}

/// The context of a call.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// The agent that the call belongs to.
    pub agent_id: AgentId,
    /// The execution that the call belongs to.
    pub execution_id: ExecutionId,
    /// The number of the step, from 1.
    pub step_number: usize,
    /// The variables, the resources and the files that the call may read and change.
    pub environment: Arc<Environment>,
    /// The tools that the model must find before it can call them.
    pub deferred_tools: Arc<[ToolSpec]>,
    /// The context's metadata.
    pub metadata: Arc<Object>,
    /// When the execution's time is spent. Calls are cut at this time.
    pub deadline: Option<Deadline>,
    /// Cancelled when the run is cancelled or stopped, which cuts calls.
    pub cancellation: CancellationToken,
    /// Receives the output of calls that run. `None` if hooks must see the result first.
    pub output: Option<Arc<dyn OutputSink>>,
    /// The id that the model gave the call.
    pub call_id: String,
    /// The idempotency key of the call. It is the same in every attempt, so that a tool can avoid a
    /// second effect.
    pub idempotency_key: String,
    /// The call that this one continues, if the tool has asked for input.
    pub continuation: Option<Box<Continuation>>,
    /// The span of the call, if the run is recorded.
    pub trace: Option<TraceContext>,
}

/// A call that goes on with the input of the caller.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Continuation {
    /// The state that the tool gave when it asked for the input.
    pub state: Value,
    /// The input, once the caller has given it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
}

impl ToolContext {
    /// Shows a piece of the output of the call, unless hooks must see the result first.
    pub fn show_output(&self, text: String) {
        if let Some(output) = &self.output {
            output.show(&self.call_id, text);
        }
    }
}

/// Receives the output of calls while they run. It never waits and never fails.
pub trait OutputSink: Send + Sync + fmt::Debug {
    /// Receives a piece of the output of a call.
    fn show(&self, call_id: &str, text: String);
}

/// The result of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutput {
    /// The result for the model: texts, images and documents.
    pub content: Vec<ContentPart>,
    /// The effects of the call besides its result.
    pub trace: ToolTrace,
}

impl ToolOutput {
    /// Makes a result with one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ContentPart::text(text)],
            trace: ToolTrace::default(),
        }
    }

    /// Leaves the call open until the caller has given the input. The call is then made again, with
    /// the input and the state.
    pub fn needing_input(input: NeededInput) -> Self {
        Self {
            content: Vec::new(),
            trace: ToolTrace {
                needs_input: Some(Box::new(input)),
                ..ToolTrace::default()
            },
        }
    }

    /// Stops the execution with the reason `stop_requested` once all calls of the step have ended.
    /// The result is stored like any other.
    #[must_use]
    pub fn ending_run(mut self) -> Self {
        self.trace.ends_run = true;
        self
    }
}

/// An error of a tool, with a message for the model. The loop continues unless the error ends the
/// run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// The message and, if known, advice for the model.
    pub message: String,
    /// The effects of the call before it failed.
    pub trace: Box<ToolTrace>,
}

impl ToolError {
    /// Makes an error.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            trace: Box::default(),
        }
    }

    /// Stops the execution like [`ToolOutput::ending_run`]. The error policy may still fail it.
    #[must_use]
    pub fn ending_run(mut self) -> Self {
        self.trace.ends_run = true;
        self
    }
}

/// A tool.
pub trait Tool: Send + Sync + fmt::Debug {
    /// Returns its description for models.
    fn spec(&self) -> &ToolSpec;

    /// Runs a call whose arguments fit the schema. Dropping the future cuts the call.
    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;

    /// Returns whether a call may be repeated if it has begun and its outcome is unknown.
    fn is_repeatable(&self) -> bool {
        self.spec().idempotent
    }

    /// Returns the compiled schema of the arguments, if the tool has one already.
    fn compiled_parameters(&self) -> Option<Arc<JsonSchema>> {
        None
    }

    /// Returns whether an agent may defer the tool, so that the model must find it first. This is
    /// about tools that exist for one execution only.
    fn may_be_deferred(&self) -> bool {
        false
    }

    /// Returns whether the text of a result that is too long for the model is stored in a file of
    /// the workspace, which the result then names. Otherwise the text is cut.
    fn stores_long_output(&self) -> bool {
        false
    }

    /// Returns whether a call ends soon by itself when the run is cancelled or its time is spent.
    /// Such a call is never cut, so that its usage is counted.
    fn ends_by_itself(&self) -> bool {
        false
    }
}

/// No tool has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no tool is named {name:?}; known are {known}")]
pub struct UnknownTool {
    pub name: String,
    /// The names that exist, joined.
    pub known: String,
}

/// The error of tools that no executor can be made of.
#[derive(Debug, thiserror::Error)]
pub enum ToolSetError {
    /// No tool has the name.
    #[error(transparent)]
    Unknown(#[from] UnknownTool),
    /// A tool that exists for one execution only is invalid.
    #[error("the tool {name:?} can't be used")]
    Unusable {
        /// The tool.
        name: String,
        /// The fault.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

/// Makes executors of chosen tools.
pub trait ToolCatalog: Send + Sync + fmt::Debug {
    /// Lists the names of all tools, in their order.
    fn names(&self) -> Vec<String>;

    /// Returns an executor of the named tools, in the order of the names.
    fn executor(&self, names: &[String]) -> Result<Arc<dyn ToolExecutor>, UnknownTool>;

    /// Returns an executor of the named tools and of `own`: tools that exist for one execution only
    /// and follow them. A tool of `own` hides a tool of the catalog with the same name.
    ///
    /// `deferred` defers named tools. It defers nothing if `search_tools` is not among the names.
    fn executor_with(
        &self,
        names: &[String],
        deferred: &[Pattern],
        own: Vec<Arc<dyn Tool>>,
    ) -> Result<Arc<dyn ToolExecutor>, ToolSetError>;
}

/// Executes the calls of a step.
pub trait ToolExecutor: Send + Sync + fmt::Debug {
    /// Returns all tools in a stable order, also deferred ones.
    fn specs(&self) -> Arc<[ToolSpec]>;

    /// Returns the tools that a request offers. The tools that are not deferred come first, then
    /// the deferred ones in the order in which the model has found them.
    fn offered(&self, environment: &Environment) -> Arc<[ToolSpec]>;

    /// Returns the deferred tools, found or not, in a stable order.
    fn deferred(&self) -> Arc<[ToolSpec]>;

    /// Returns how many calls may run concurrently; at least 1.
    fn concurrency(&self) -> usize;

    /// Returns how many calls of one completion are executed; at least 1.
    fn max_calls(&self) -> usize;

    /// Returns whether a call of the tool may be repeated if it has begun and its outcome is
    /// unknown.
    fn is_repeatable(&self, tool: &str) -> bool;

    /// Returns whether calls of the tool have no effect.
    fn is_read_only(&self, tool: &str) -> bool;

    /// Returns the arguments of a call, unless its tool is unknown or they do not fit the schema.
    fn arguments(&self, call: &ToolCall, context: &ToolContext) -> Option<Value>;

    /// Executes a call within its timeout. Returns an execution with an error if the tool is
    /// unknown or not found yet, the arguments do not fit the schema, or the call fails, panics,
    /// times out or is cut by the end of the run.
    fn execute<'a>(&'a self, call: ToolCall, context: &'a ToolContext) -> BoxFuture<'a, ToolExecution>;
}
