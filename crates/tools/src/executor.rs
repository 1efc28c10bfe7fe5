//! Executes calls: checks each one, measures it, bounds its time and caps its output. Knows no tool
//! by name.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::arguments::parse_arguments;
use super::call_limits::CallLimits;
use super::long_output::stored_if_long;
use super::output::capped;
use agent::deferred_tools::{SEARCH_TOOLS, found_tools};
use agent::ports::{Tool, ToolContext, ToolError, ToolExecutor, ToolOutput, ToolSpec};
use agent::state::{AgentError, ErrorKind, ToolExecution, ToolTrace, ToolVerdict};
use values::clock::{Clock, Deadline};
use values::ids::{IdSource, ToolExecutionId};
use values::json::{JsonSchema, Value};
use values::message::{ContentPart, ToolCall, joined_text};
use workspace::environment::Environment;

/// The longest message of a recorded error, in bytes.
const MAX_RECORDED_BYTES: usize = 2_000;

/// A tool with the schema of its arguments.
#[derive(Debug)]
pub(super) struct RegisteredTool {
    pub(super) tool: Arc<dyn Tool>,
    pub(super) schema: Arc<JsonSchema>,
}

/// Executes calls of chosen tools.
#[derive(Debug)]
pub(super) struct CheckedExecutor {
    /// The tools, the deferred ones last.
    tools: Vec<Arc<RegisteredTool>>,
    specs: Arc<[ToolSpec]>,
    /// The tools that are not deferred.
    shown: Arc<[ToolSpec]>,
    deferred: Arc<[ToolSpec]>,
    limits: CallLimits,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

impl CheckedExecutor {
    pub(super) fn new(
        mut tools: Vec<Arc<RegisteredTool>>,
        deferred: Vec<Arc<RegisteredTool>>,
        limits: CallLimits,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        let specs_of = |tools: &[Arc<RegisteredTool>]| -> Arc<[ToolSpec]> {
            tools.iter().map(|registered| registered.tool.spec().clone()).collect()
        };
        let (shown, deferred_specs) = (specs_of(&tools), specs_of(&deferred));
        let specs = if deferred.is_empty() {
            Arc::clone(&shown)
        } else {
            tools.extend(deferred);
            specs_of(&tools)
        };
        Self {
            tools,
            specs,
            shown,
            deferred: deferred_specs,
            limits,
            clock,
            ids,
        }
    }

    async fn execute_call(&self, call: ToolCall, context: &ToolContext) -> ToolExecution {
        let started_at = self.clock.now();
        let Outcome { content, error, trace } = match self.prepare(&call, context) {
            Ok((registered, arguments)) => self.run(registered, &call, arguments, context).await,
            Err(error) => Outcome::failed(error),
        };
        ToolExecution {
            id: ToolExecutionId::generate(&*self.ids),
            is_foreign: self.named(&call.name).is_none(),
            call,
            content: capped(content, self.limits.max_output_bytes),
            error: error.map(shortened),
            started_at,
            // A clock that is set back must not give a negative duration.
            completed_at: self.clock.now().max(started_at),
            verdict: ToolVerdict::Executed,
            trace,
        }
    }

    /// Finds the tool and checks the arguments.
    fn prepare(&self, call: &ToolCall, context: &ToolContext) -> Result<(&RegisteredTool, Value), AgentError> {
        let registered = self.find(call)?;
        self.check_found(call, context)?;
        let invalid = |message| error(call, ErrorKind::Validation, "tool_arguments_invalid", message);
        let arguments = parse_arguments(&call.arguments).map_err(invalid)?;
        registered.schema.check(&arguments).map_err(|violations| {
            let name = &call.name;
            invalid(format!("the arguments do not fit the schema of {name}: {violations}"))
        })?;
        Ok((registered, arguments))
    }

    fn named(&self, name: &str) -> Option<&RegisteredTool> {
        let mut tools = self.tools.iter().map(Arc::as_ref);
        tools.find(|registered| registered.tool.spec().name == name)
    }

    fn find(&self, call: &ToolCall) -> Result<&RegisteredTool, AgentError> {
        self.named(&call.name).ok_or_else(|| {
            let names: Vec<_> = self.shown.iter().map(|spec| spec.name.as_str()).collect();
            let known = match names.as_slice() {
                [] => "there are no tools".to_owned(),
                names if self.deferred.is_empty() => format!("the tools are {}", names.join(", ")),
                names => format!(
                    "the tools are {}, and those that {SEARCH_TOOLS} finds",
                    names.join(", ")
                ),
            };
            let message = format!("no tool is named {:?}; {known}", call.name);
            error(call, ErrorKind::Validation, "tool_unknown", message)
        })
    }

    /// Refuses a call whose parameters the model has not read.
    fn check_found(&self, call: &ToolCall, context: &ToolContext) -> Result<(), AgentError> {
        let is_deferred = self.deferred.iter().any(|spec| spec.name == call.name);
        if !is_deferred || found_tools(&context.environment).contains(&call.name) {
            return Ok(());
        }
        let message = format!(
            "{0} was not executed, since you have not read its parameters: find it with {SEARCH_TOOLS} and the query \
             {0:?}, then call it again",
            call.name
        );
        Err(error(call, ErrorKind::Validation, "tool_not_found_yet", message))
    }

    /// Runs the tool until it ends, panics, times out or is cut by the end of the run.
    async fn run(
        &self,
        registered: &RegisteredTool,
        call: &ToolCall,
        arguments: Value,
        context: &ToolContext,
    ) -> Outcome {
        let spec = registered.tool.spec();
        let allowed = spec.timeout.unwrap_or(self.limits.timeout);
        let until_deadline = context.deadline.as_ref().map(Deadline::time_left);
        if until_deadline == Some(Duration::ZERO) {
            return Outcome::failed(out_of_time(call));
        }
        // This applies even to tools that end by themselves: they need not begin if the run has
        // ended.
        if context.cancellation.is_cancelled() {
            return Outcome::failed(cancelled(call));
        }
        // The tool is called inside the block, so that a panic before the first await is also
        // caught.
        let answer = AssertUnwindSafe(async { self.call(registered, arguments, context).await }).catch_unwind();
        let answer = answer.map(|answer| match answer {
            Ok(Ok(output)) => Outcome::of_tool(output),
            Ok(Err(failure)) => Outcome {
                trace: *failure.trace,
                ..Outcome::failed(error(call, ErrorKind::Tool, "tool_failed", failure.message))
            },
            Err(payload) => Outcome::failed(panicked(call, &*payload)),
        });
        if registered.tool.ends_by_itself() {
            return answer.await;
        }
        tokio::select! {
            biased;
            () = context.cancellation.cancelled() => Outcome::failed(cancelled(call)),
            answer = answer => answer,
            () = tokio::time::sleep(until_deadline.unwrap_or(Duration::MAX)) => Outcome::failed(out_of_time(call)),
            () = tokio::time::sleep(allowed) => Outcome::failed(timed_out(call, allowed)),
        }
    }

    /// Calls the tool. Stores a long text, also of an error, if the tool wants that.
    async fn call(
        &self,
        RegisteredTool { tool, .. }: &RegisteredTool,
        arguments: Value,
        context: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let answer = tool.call(arguments, context).await;
        if !tool.stores_long_output() {
            return answer;
        }
        let (name, max_bytes) = (&tool.spec().name, self.limits.max_output_bytes);
        match answer {
            Ok(output) => Ok(stored_if_long(name, output, max_bytes, context).await),
            Err(error) => {
                let output = ToolOutput::text(error.message);
                let stored = stored_if_long(name, output, max_bytes, context).await;
                Err(ToolError {
                    message: joined_text(&stored.content),
                    ..error
                })
            }
        }
    }
}

impl ToolExecutor for CheckedExecutor {
    fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    fn offered(&self, environment: &Environment) -> Arc<[ToolSpec]> {
        if self.deferred.is_empty() {
            return Arc::clone(&self.shown);
        }
        let found = found_tools(environment);
        let found: Vec<_> = found
            .iter()
            .filter_map(|name| self.deferred.iter().find(|spec| spec.name == *name))
            .collect();
        if found.is_empty() {
            return Arc::clone(&self.shown);
        }
        self.shown.iter().chain(found).cloned().collect()
    }

    fn deferred(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.deferred)
    }

    fn concurrency(&self) -> usize {
        self.limits.concurrency.max(1)
    }

    fn max_calls(&self) -> usize {
        self.limits.max_calls.max(1)
    }

    /// Returns whether a call may be repeated. A call of an unknown tool may, since it has no
    /// effect.
    fn is_repeatable(&self, tool: &str) -> bool {
        self.named(tool)
            .is_none_or(|registered| registered.tool.is_repeatable())
    }

    /// Returns whether calls of the tool have no effect. Calls of an unknown tool have none.
    fn is_read_only(&self, tool: &str) -> bool {
        self.named(tool)
            .is_none_or(|registered| registered.tool.spec().read_only)
    }

    fn arguments(&self, call: &ToolCall, context: &ToolContext) -> Option<Value> {
        self.prepare(call, context).ok().map(|(_, arguments)| arguments)
    }

    fn execute<'a>(&'a self, call: ToolCall, context: &'a ToolContext) -> BoxFuture<'a, ToolExecution> {
        Box::pin(self.execute_call(call, context))
    }
}

/// The outcome of a call.
struct Outcome {
    content: Vec<ContentPart>,
    error: Option<AgentError>,
    trace: ToolTrace,
}

impl Outcome {
    fn of_tool(output: ToolOutput) -> Self {
        Self {
            content: output.content,
            error: None,
            trace: output.trace,
        }
    }

    /// Makes the outcome of an error, which the model reads.
    fn failed(error: AgentError) -> Self {
        Self {
            content: vec![ContentPart::text(error.message.clone())],
            error: Some(error),
            trace: ToolTrace::default(),
        }
    }
}

fn error(call: &ToolCall, kind: ErrorKind, code: &str, message: impl Into<String>) -> AgentError {
    AgentError {
        kind,
        code: code.to_owned(),
        message: message.into(),
        source_name: Some(call.name.clone()),
    }
}

fn cancelled(call: &ToolCall) -> AgentError {
    let message = "the run was cancelled or stopped before the tool answered";
    error(call, ErrorKind::Tool, "tool_cancelled", message)
}

fn out_of_time(call: &ToolCall) -> AgentError {
    let message = "the run's time was spent before the tool answered";
    error(call, ErrorKind::Timeout, "tool_timeout", message)
}

fn timed_out(call: &ToolCall, allowed: Duration) -> AgentError {
    let message = format!("the tool did not answer within {allowed:?} and was cut");
    error(call, ErrorKind::Timeout, "tool_timeout", message)
}

/// Makes the error of a panic. The panic message goes only to the log.
fn panicked(call: &ToolCall, payload: &(dyn std::any::Any + Send)) -> AgentError {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    tracing::error!(tool = %call.name, panic = text.unwrap_or("no text"), "tool panicked");
    error(
        call,
        ErrorKind::Tool,
        "tool_panicked",
        "the tool failed with an internal error",
    )
}

/// Truncates the message for the record of the error. The model reads the whole message.
fn shortened(error: AgentError) -> AgentError {
    let end = error.message.floor_char_boundary(MAX_RECORDED_BYTES);
    AgentError {
        message: error.message[..end].to_owned(),
        ..error
    }
}
