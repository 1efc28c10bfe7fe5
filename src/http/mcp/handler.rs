//! Answers the message of an HTTP request. rmcp checks versions, capabilities and headers before.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CustomRequest, CustomResult, ErrorCode, GetTaskParams,
    GetTaskResult, Implementation, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use super::errors::invalid;
use super::server::McpServer;
use super::{call, resources, tasks, tools};
use store::keys::Scope;

/// The instructions that clients may show to their models.
const INSTRUCTIONS: &str = "Each tool is an agent. It answers the text in `input`. To continue a conversation, pass the \
     `session_id` of an earlier result as `session`; the same session may be continued more than once. Sessions and their \
     files are resources.";

/// The methods that rmcp passes on as unknown ones if their parameters have another form.
const METHODS: [&str; 8] = [
    "tools/list",
    "tools/call",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "resources/list",
    "resources/read",
    "initialize",
];

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let mut capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_tasks()
            .build();
        let (may_run, may_read) = (self.may(Scope::RunsWrite), self.may(Scope::SessionsRead));
        capabilities.tools = capabilities.tools.filter(|_| may_run);
        capabilities.resources = capabilities.resources.filter(|_| may_read);
        capabilities.extensions = capabilities.extensions.filter(|_| may_run && may_read);
        ServerConfig::new(capabilities)
            .with_server_info(
                Implementation::new("agent-runtime", env!("CARGO_PKG_VERSION")).with_title("agent-runtime"),
            )
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        tools::list(self, cursor_of(request)).await
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let cancelled = context.ct.clone();
        let calling = Box::pin(call::call_tool(self, request, &context));
        tokio::select! {
            response = calling => response,
            // Nobody reads the response. Dropping the call counts as the caller's disconnection.
            () = cancelled.cancelled() => Err(ErrorData::internal_error("the request was cancelled", None)),
        }
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        tasks::get(self, &request.task_id, &context).await
    }

    async fn update_task(&self, request: UpdateTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        tasks::update(self, request).await
    }

    async fn cancel_task(&self, request: CancelTaskParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        tasks::cancel(self, &request.task_id).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        resources::list(self, cursor_of(request)).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        match cursor_of(request) {
            Some(_) => Err(invalid("not a cursor of this list")),
            None => Ok(resources::templates()),
        }
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(self, &request.uri).await.map(Into::into)
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if METHODS.contains(&request.method.as_str()) {
            let words = format!("the parameters do not have the form that {} demands", request.method);
            return Err(invalid(words));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }

    async fn on_initialized(&self, _: NotificationContext<RoleServer>) {}
}

/// Returns where a page begins. Some clients send an empty cursor for the first one.
fn cursor_of(request: Option<PaginatedRequestParams>) -> Option<String> {
    request?.cursor.filter(|cursor| !cursor.is_empty())
}
