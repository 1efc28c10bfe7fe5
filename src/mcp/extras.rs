//! Tools for the resources and the prompts of a server.
//!
//! The service describes them itself, so that their definitions are not pinned.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, ListPromptsRequest, ListResourceTemplatesRequest,
    ListResourcesRequest, PaginatedRequestParams, ReadResourceRequest, ReadResourceRequestParams, ServerResult,
};
use serde_json::json;

use super::caller::Caller;
use super::connection::Reply;
use super::in_flight::Interest;
use super::incoming::left_out;
use super::listing::Listing;
use super::naming::tool_name;
use super::outcome::{output, parts, resource};
use super::request_error::RequestError;
use super::server::McpServer;
use crate::agent::ports::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use crate::json::Value;
use crate::message::ContentPart;
use crate::off_thread::off_thread;
use crate::tenant::TenantId;

/// What a tool does.
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

/// Returns the tools for what a server has besides tools. The patterns of the definition apply to
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
    async fn make(&self, arguments: Value) -> Result<ToolOutput, ToolError> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).map(str::to_owned);
        match self.extra {
            Extra::ListResources => self.list_resources(text("cursor")).await,
            Extra::ReadResource => {
                let params = ReadResourceRequestParams::new(text("uri").unwrap_or_default());
                let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
                match self.request(request).await? {
                    ServerResult::ReadResourceResult(result) => {
                        let contents = result.contents.into_iter();
                        self.output(move || contents.map(resource).collect()).await
                    }
                    other => Err(self.unexpected(&other)),
                }
            }
            Extra::ListPrompts => {
                let request = ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(page(text("cursor"))));
                match self.request(request).await? {
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
                match self.request(request).await? {
                    ServerResult::GetPromptResult(prompt) => {
                        let content = prompt.messages.into_iter().map(|message| message.content);
                        self.output(move || parts(content.collect())).await
                    }
                    other => Err(self.unexpected(&other)),
                }
            }
        }
    }

    /// Lists a page of resources. The first page also has the templates, which not every server
    /// knows.
    async fn list_resources(&self, cursor: Option<String>) -> Result<ToolOutput, ToolError> {
        let is_first = cursor.is_none();
        let request = ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page(cursor)));
        let resources = match self.request(request).await? {
            ServerResult::ListResourcesResult(list) => list,
            other => return Err(self.unexpected(&other)),
        };
        let request = ClientRequest::ListResourceTemplatesRequest(ListResourceTemplatesRequest::with_param(page(None)));
        let templates = if is_first {
            self.request(request).await.ok()
        } else {
            None
        };
        let listed = move || {
            let mut listed = json!({"resources": resources.resources, "next_cursor": resources.next_cursor});
            let mut problems = left_out(resources.meta.as_ref());
            if let Some(ServerResult::ListResourceTemplatesResult(list)) = templates {
                listed["templates"] = json!(list.resource_templates);
                problems.extend(left_out(list.meta.as_ref()));
            }
            with_left_out(listed, &problems).to_string()
        };
        self.output(move || vec![ContentPart::text(listed())]).await
    }

    async fn request(&self, request: ClientRequest) -> Result<ServerResult, ToolError> {
        match self.caller.request(request, Interest::default()).await? {
            Reply::Result(result) => Ok(*result),
            Reply::Asked(_) => Err(self.caller.failed(&RequestError::Unexpected)),
        }
    }

    /// Returns what models read. Nobody knows yet how large it is.
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

/// Adds what the model can't use, if there is something.
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

    fn call<'a>(&'a self, arguments: Value, _: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(self.make(arguments))
    }

    fn may_be_deferred(&self) -> bool {
        true
    }

    fn stores_long_output(&self) -> bool {
        true
    }
}
