//! Tools for the resources and the prompts of a server.
//!
//! The service describes them itself, so that their definitions are not pinned.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use rmcp::model::{
    ClientRequest, ErrorCode, GetPromptRequest, GetPromptRequestParams, ListPromptsRequest,
    ListResourceTemplatesRequest, ListResourceTemplatesResult, ListResourcesRequest, PaginatedRequestParams,
    ReadResourceRequest, ReadResourceRequestParams, ResourceTemplate, ServerResult,
};
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use super::caller::{Caller, traced};
use super::connection::Reply;
use super::incoming::left_out;
use super::listing::Listing;
use super::naming::tool_name;
use super::observer::Observer;
use super::outcome::{output, parts, resource};
use super::request_error::RequestError;
use super::server::McpServer;
use agent::ports::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use tasks::off_thread::off_thread;
use values::json::Value;
use values::message::ContentPart;
use values::tenant::TenantId;
use values::trace_context::TraceContext;

/// The most pages of templates.
const MAX_TEMPLATE_PAGES: usize = 16;

/// The kind of an added tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extra {
    ListResources,
    ReadResource,
    ListPrompts,
    GetPrompt,
}

/// A tool that the service adds for a server.
#[derive(Debug)]
struct ExtraTool {
    spec: ToolSpec,
    extra: Extra,
    caller: Caller,
}

/// Returns the tools for resources and prompts of a server. The patterns of the definition apply to
/// them, and a tool of the server itself has precedence.
pub(super) fn extras(server: &Arc<McpServer>, listing: &Listing, tenant: &TenantId) -> Vec<Arc<dyn Tool>> {
    let resources = [Extra::ListResources, Extra::ReadResource].map(|extra| (extra, listing.has_resources));
    let prompts = [Extra::ListPrompts, Extra::GetPrompt].map(|extra| (extra, listing.has_prompts));
    let is_taken = |name: &str| listing.tools.iter().any(|tool| tool.name == name);
    let offered = resources.into_iter().chain(prompts).filter(|(extra, has)| {
        let name = extra.name();
        *has && server.definition.allows(name) && !is_taken(name)
    });
    offered
        .map(|(extra, _)| {
            let caller = Caller {
                server: Arc::clone(server),
                tenant: tenant.clone(),
            };
            let spec = extra.spec(&caller);
            Arc::new(ExtraTool { spec, extra, caller }) as Arc<dyn Tool>
        })
        .collect()
}

impl Extra {
    fn name(self) -> &'static str {
        match self {
            Self::ListResources => "list_resources",
            Self::ReadResource => "read_resource",
            Self::ListPrompts => "list_prompts",
            Self::GetPrompt => "get_prompt",
        }
    }

    fn spec(self, caller: &Caller) -> ToolSpec {
        let definition = &caller.server.definition;
        let server = &definition.name;
        let cursor = json!({
            "type": "object", "additionalProperties": false,
            "properties": {"cursor": {"type": "string", "description": "Where the next page begins, from the page before."}},
        });
        let (description, parameters) = match self {
            Self::ListResources => (
                format!(
                    "Lists the resources of the server {server:?}, and the templates of their addresses, by pages."
                ),
                cursor,
            ),
            Self::ReadResource => (
                format!("Reads a resource of the server {server:?}."),
                json!({
                    "type": "object", "required": ["uri"], "additionalProperties": false,
                    "properties": {"uri": {"type": "string", "minLength": 1, "description": "The address of the resource."}},
                }),
            ),
            Self::ListPrompts => (
                format!("Lists the prompts of the server {server:?} with their arguments, by pages."),
                cursor,
            ),
            Self::GetPrompt => (
                format!("Reads a prompt of the server {server:?}: instructions for a task, made with arguments."),
                json!({
                    "type": "object", "required": ["name"], "additionalProperties": false,
                    "properties": {
                        "name": {"type": "string", "minLength": 1, "description": "The name of the prompt."},
                        "arguments": {
                            "type": "object", "additionalProperties": {"type": "string"},
                            "description": "The arguments of the prompt.",
                        },
                    },
                }),
            ),
        };
        ToolSpec {
            name: tool_name(&definition.prefix(), self.name()),
            description,
            parameters,
            idempotent: true,
            read_only: true,
            destructive: false,
            timeout: Some(caller.timeout()),
        }
    }
}

impl ExtraTool {
    async fn make(&self, arguments: Value, trace: Option<TraceContext>) -> Result<ToolOutput, ToolError> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        match self.extra {
            Extra::ListResources => self.list_resources(text("cursor"), trace).await,
            Extra::ReadResource => {
                let params = ReadResourceRequestParams::new(text("uri").unwrap_or_default());
                let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
                match self.request(request, trace).await? {
                    ServerResult::ReadResourceResult(result) => {
                        let contents = result.contents.into_iter();
                        self.output(move || contents.map(resource).collect()).await
                    }
                    other => Err(self.unexpected(&other)),
                }
            }
            Extra::ListPrompts => {
                let request = ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(page(text("cursor"))));
                match self.request(request, trace).await? {
                    ServerResult::ListPromptsResult(list) => {
                        let listed = move || {
                            let listed = json!({"prompts": list.prompts, "next_cursor": list.next_cursor});
                            with_left_out(listed, &left_out(list.meta.as_ref()))
                        };
                        self.output(move || vec![ContentPart::text(listed().to_string())]).await
                    }
                    other => Err(self.unexpected(&other)),
                }
            }
            Extra::GetPrompt => {
                let mut params = GetPromptRequestParams::new(text("name").unwrap_or_default());
                params.arguments = arguments.get("arguments").and_then(Value::as_object).cloned();
                let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
                match self.request(request, trace).await? {
                    ServerResult::GetPromptResult(prompt) => {
                        let content = prompt.messages.into_iter().map(|message| message.content);
                        self.output(move || parts(content.collect())).await
                    }
                    other => Err(self.unexpected(&other)),
                }
            }
        }
    }

    /// Lists a page of resources. The first page also has the templates.
    async fn list_resources(
        &self,
        cursor: Option<String>,
        trace: Option<TraceContext>,
    ) -> Result<ToolOutput, ToolError> {
        let is_first = cursor.is_none();
        let until = Instant::now() + self.caller.server.definition.timeout;
        let request = ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page(cursor)));
        let resources = match self.request(request, trace).await {
            Ok(ServerResult::ListResourcesResult(list)) => Ok(list),
            Ok(other) => Err(self.unexpected(&other)),
            Err(error) => Err(error),
        };
        let (templates, mut problems) = if is_first {
            self.templates(until, trace).await
        } else {
            (Vec::new(), Vec::new())
        };
        let resources = match resources {
            Err(error) if !templates.is_empty() => {
                problems.push(format!("the resources can't be listed: {error}"));
                None
            }
            resources => Some(resources?),
        };
        let listed = move || {
            let mut listed = json!({"resources": [], "next_cursor": null});
            if let Some(list) = resources {
                problems.extend(left_out(list.meta.as_ref()));
                listed = json!({"resources": list.resources, "next_cursor": list.next_cursor});
            }
            if is_first {
                listed["templates"] = json!(templates);
            }
            with_left_out(listed, &problems).to_string()
        };
        self.output(move || vec![ContentPart::text(listed())]).await
    }

    /// Lists the templates of all pages, and the parts that are left out.
    async fn templates(&self, until: Instant, trace: Option<TraceContext>) -> (Vec<ResourceTemplate>, Vec<String>) {
        let (mut templates, mut problems, mut cursor) = (Vec::new(), Vec::new(), None);
        for number in 1..=MAX_TEMPLATE_PAGES {
            let list = match self.page_of_templates(until, cursor, trace).await {
                Ok(list) => list,
                // Not every server knows templates.
                Err(RequestError::Refused { code, .. }) if number == 1 && code == ErrorCode::METHOD_NOT_FOUND.0 => {
                    return (templates, problems);
                }
                Err(error) => {
                    problems.push(format!("page {number} of the templates can't be read: {error}"));
                    return (templates, problems);
                }
            };
            problems.extend(left_out(list.meta.as_ref()));
            templates.extend(list.resource_templates);
            cursor = list.next_cursor;
            if cursor.is_none() {
                return (templates, problems);
            }
        }
        problems.push(format!("the templates after page {MAX_TEMPLATE_PAGES} are left out"));
        (templates, problems)
    }

    async fn page_of_templates(
        &self,
        until: Instant,
        cursor: Option<String>,
        trace: Option<TraceContext>,
    ) -> Result<ListResourceTemplatesResult, RequestError> {
        let Caller { server, tenant } = &self.caller;
        let params = ListResourceTemplatesRequest::with_param(page(cursor));
        let request = traced(ClientRequest::ListResourceTemplatesRequest(params), trace);
        let reply = timeout_at(until, server.request(tenant, request, Observer::default())).await;
        let late = RequestError::Timeout(server.definition.timeout);
        match reply.unwrap_or(Err(late))? {
            Reply::Result(result) => match *result {
                ServerResult::ListResourceTemplatesResult(list) => Ok(list),
                _ => Err(RequestError::Unexpected),
            },
            Reply::Asked(_) => Err(RequestError::Unexpected),
        }
    }

    async fn request(&self, request: ClientRequest, trace: Option<TraceContext>) -> Result<ServerResult, ToolError> {
        match self.caller.request(traced(request, trace), Observer::default()).await? {
            Reply::Result(result) => Ok(*result),
            Reply::Asked(_) => Err(self.caller.failed(&RequestError::Unexpected)),
        }
    }

    /// Returns the text for the model. It may still be too large.
    async fn output(
        &self,
        content: impl FnOnce() -> Vec<ContentPart> + Send + 'static,
    ) -> Result<ToolOutput, ToolError> {
        let content = off_thread(&self.caller.tenant, content).await;
        if content.is_empty() {
            return Err(self.caller.error("its response is empty"));
        }
        Ok(output(content))
    }

    fn unexpected(&self, result: &ServerResult) -> ToolError {
        match result {
            ServerResult::InputRequiredResult(_) => self
                .caller
                .error("it asks for input, which only calls of its tools can give"),
            _ => self.caller.failed(&RequestError::Unexpected),
        }
    }
}

/// Adds the list of parts that the model can't use, if there are any.
fn with_left_out(mut listed: Value, left_out: &[String]) -> Value {
    if !left_out.is_empty() {
        listed["left_out"] = json!(left_out);
    }
    listed
}

fn page(cursor: Option<String>) -> PaginatedRequestParams {
    PaginatedRequestParams::default().with_cursor(cursor)
}

impl Tool for ExtraTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.make(arguments, context.trace))
    }

    fn may_be_deferred(&self) -> bool {
        true
    }

    fn stores_long_output(&self) -> bool {
        true
    }
}
