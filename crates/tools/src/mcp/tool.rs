//! A tool of a server.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, InputRequiredResult, ServerResult,
};
use tokio::time::sleep;

use super::caller::{Caller, traced};
use super::connection::Reply;
use super::input::{Resumed, needed, needed_by_question};
use super::listing::ListedTool;
use super::observer::Observer;
use super::outcome::outcome;
use super::request_error::RequestError;
use super::server::McpServer;
use agent::ports::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use agent::state::NeededInput;
use tasks::off_thread::off_thread;
use values::json::{JsonSchema, Value};
use values::tenant::TenantId;

/// How often a server may put a call off without a question.
const MAX_ROUNDS: u32 = 10;
/// The pause before a call that was put off is made again. It grows with each time.
const PAUSE: Duration = Duration::from_millis(200);

/// A tool of a server, for one tenant.
#[derive(Debug)]
pub(super) struct McpTool {
    spec: ToolSpec,
    schema: Arc<JsonSchema>,
    output_schema: Option<Arc<JsonSchema>>,
    /// The name that the server gives it.
    name: String,
    caller: Caller,
}

impl McpTool {
    pub(super) fn new(server: &Arc<McpServer>, tenant: &TenantId, name: String, tool: &ListedTool) -> Self {
        let caller = Caller {
            server: Arc::clone(server),
            tenant: tenant.clone(),
        };
        Self {
            spec: ToolSpec {
                name,
                description: tool.description.clone(),
                parameters: tool.parameters.clone(),
                idempotent: tool.idempotent,
                read_only: tool.read_only,
                destructive: tool.destructive,
                timeout: Some(caller.timeout()),
            },
            schema: Arc::clone(&tool.schema),
            output_schema: tool.output_schema.clone(),
            name: tool.name.clone(),
            caller,
        }
    }

    async fn make(&self, arguments: Value, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let mut resumed = Resumed::of(context.continuation.as_deref());
        for round in 1..=MAX_ROUNDS {
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(self.params(&arguments, &resumed)));
            let request = traced(request, context.trace);
            let progress = context.output.clone().map(|sink| (sink, context.call_id.clone()));
            let observer = Observer::new(progress, resumed.answers.clone());
            let result = match self.caller.request(request, observer).await? {
                Reply::Result(result) => *result,
                Reply::Asked(question) => {
                    let needed = move || needed_by_question(&question, resumed.answers);
                    return self.asking(needed).await;
                }
            };
            match result {
                ServerResult::CallToolResult(result) => return self.ended(result).await,
                // A server of an older revision has nothing to say.
                ServerResult::EmptyResult(_) => return self.ended(CallToolResult::success(Vec::new())).await,
                ServerResult::InputRequiredResult(result) if is_put_off(&result) => {
                    resumed.responses = None;
                    resumed.request_state = result.request_state;
                    sleep(PAUSE * round).await;
                }
                ServerResult::InputRequiredResult(result) => return self.asking(move || needed(result)).await,
                _ => return Err(self.caller.failed(&RequestError::Unexpected)),
            }
        }
        Err(self.caller.error("it put the call off too often"))
    }

    fn params(&self, arguments: &Value, resumed: &Resumed) -> CallToolRequestParams {
        let mut params = CallToolRequestParams::new(self.name.clone());
        params.arguments = arguments.as_object().cloned();
        params.input_responses.clone_from(&resumed.responses);
        params.request_state.clone_from(&resumed.request_state);
        params
    }

    async fn asking(
        &self,
        needed: impl FnOnce() -> Result<NeededInput, &'static str> + Send + 'static,
    ) -> Result<ToolOutput, ToolError> {
        // Nobody knows yet how large the questions are.
        let needed = off_thread(&self.caller.tenant, needed).await;
        needed
            .map(ToolOutput::needing_input)
            .map_err(|words| self.caller.error(words))
    }

    async fn ended(&self, result: CallToolResult) -> Result<ToolOutput, ToolError> {
        outcome(&self.caller, result, self.output_schema.as_ref()).await
    }
}

/// Returns whether the server only wants the call to be made again.
fn is_put_off(result: &InputRequiredResult) -> bool {
    result.input_requests.as_ref().is_none_or(BTreeMap::is_empty)
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.make(arguments, context))
    }

    fn compiled_parameters(&self) -> Option<Arc<JsonSchema>> {
        Some(Arc::clone(&self.schema))
    }

    fn may_be_deferred(&self) -> bool {
        true
    }

    fn stores_long_output(&self) -> bool {
        true
    }
}
