//! An MCP server on this machine, made from the library's server side.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderMap, Method};
use axum::middleware::{self, Next};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ElicitRequest, ElicitRequestParams,
    ErrorData, GetPromptRequestParams, GetPromptResponse, GetPromptResult, InputRequest, InputRequiredResult,
    ListPromptsResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, Prompt,
    PromptMessage, ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource,
    ResourceContents, Role, ServerCapabilities, ServerConfig, ServerRequest, Tool, ToolAnnotations,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData as McpError, ServerHandler};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::time::sleep;
use values::json::Value;

/// A pixel.
pub(super) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The header of a GIF of 1 × 8001 pixels.
const TALL: &str = "R0lGODlhAQBBHwAAAAAAAAAAAAAAAAAAAAAA";

/// The revisions that a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// All of them.
    Modern,
    /// Those before 2026-07-28.
    Legacy,
    /// Those up to 2025-06-18.
    UpTo20250618,
    /// Those up to 2025-03-26.
    UpTo20250326,
    /// 2024-11-05.
    Oldest,
    /// 2026-07-28.
    ModernOnly,
}

impl Era {
    fn revisions(self) -> Cow<'static, [ProtocolVersion]> {
        let newest = match self {
            Self::Modern => return Cow::Borrowed(ProtocolVersion::KNOWN_VERSIONS),
            Self::ModernOnly => return Cow::Owned(vec![ProtocolVersion::V_2026_07_28]),
            Self::Legacy => &ProtocolVersion::V_2025_11_25,
            Self::UpTo20250618 => &ProtocolVersion::V_2025_06_18,
            Self::UpTo20250326 => &ProtocolVersion::V_2025_03_26,
            Self::Oldest => &ProtocolVersion::V_2024_11_05,
        };
        Cow::Borrowed(ProtocolVersion::known_up_to(newest))
    }
}

/// A running server; it stops when it is dropped.
#[derive(Debug)]
pub(super) struct McpServer {
    address: SocketAddr,
    box_: ToolBox,
    /// Has a thread of its own, so that its connections end with it.
    runtime: Option<Runtime>,
}

/// The tools of the server, and what has happened.
#[derive(Debug, Clone)]
struct ToolBox(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    era: Mutex<Era>,
    tools: Mutex<Vec<Tool>>,
    /// The `ttlMs` of the list of tools.
    ttl_ms: Mutex<Option<u64>>,
    log: Mutex<Vec<String>>,
    headers: Mutex<Vec<HeaderMap>>,
    /// The methods of all requests and notifications, and `GET` for each open stream.
    methods: Mutex<Vec<String>>,
    /// Who listed the tools last.
    lister: Mutex<Option<Peer<RoleServer>>>,
}

impl McpServer {
    /// Starts a server with the usual tools.
    pub(super) fn start(era: Era) -> Self {
        let box_ = ToolBox(Arc::new(Shared {
            era: Mutex::new(era),
            tools: Mutex::new(usual_tools()),
            ttl_ms: Mutex::new(Some(0)),
            log: Mutex::default(),
            headers: Mutex::default(),
            methods: Mutex::default(),
            lister: Mutex::default(),
        }));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let runtime = Some(serving(listener, box_.clone()));
        Self { address, box_, runtime }
    }

    /// Ends the server, which loses its sessions, and starts it again at its address.
    pub(super) async fn restart(&mut self) {
        self.end();
        let listener = loop {
            match std::net::TcpListener::bind(self.address) {
                Ok(listener) => break listener,
                // The connections of the server are still closing.
                Err(_) => sleep(Duration::from_millis(20)).await,
            }
        };
        self.runtime = Some(serving(listener, self.box_.clone()));
    }

    /// Does the same with other revisions.
    pub(super) async fn restart_as(&mut self, era: Era) {
        self.end();
        *self.box_.0.era.lock().unwrap() = era;
        self.restart().await;
    }

    /// Sets the `ttlMs` of the list of tools, which is 0 before.
    pub(super) fn set_ttl(&self, ttl_ms: Option<u64>) {
        *self.box_.0.ttl_ms.lock().unwrap() = ttl_ms;
    }

    /// Notifies the client that listed the tools last that they have changed.
    pub(super) async fn notify_of_change(&self) {
        let lister = self.box_.0.lister.lock().unwrap().clone();
        lister.unwrap().notify_tool_list_changed().await.unwrap();
    }

    fn end(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Replaces a tool, or adds it.
    pub(super) fn put(&self, tool: Tool) {
        let mut tools = self.box_.0.tools.lock().unwrap();
        tools.retain(|other| other.name != tool.name);
        tools.push(tool);
    }

    /// Removes a tool.
    pub(super) fn remove(&self, name: &str) {
        self.box_.0.tools.lock().unwrap().retain(|tool| tool.name != name);
    }

    /// The events of the server, in order.
    pub(super) fn log(&self) -> Vec<String> {
        self.box_.0.log.lock().unwrap().clone()
    }

    /// How many times something has happened.
    pub(super) fn count(&self, what: &str) -> usize {
        self.log().iter().filter(|line| *line == what).count()
    }

    /// How many requests there were of a method.
    pub(super) fn requested(&self, method: &str) -> usize {
        let methods = self.box_.0.methods.lock().unwrap();
        methods.iter().filter(|other| *other == method).count()
    }

    /// How many requests there were to discover the revisions, to begin a session and to list the
    /// tools.
    pub(super) fn openings(&self) -> [usize; 3] {
        ["server/discover", "initialize", "tools/list"].map(|method| self.requested(method))
    }

    /// The values of a header in all requests.
    pub(super) fn header(&self, name: &str) -> Vec<Option<String>> {
        let headers = self.box_.0.headers.lock().unwrap();
        let value = |headers: &HeaderMap| Some(headers.get(name)?.to_str().unwrap().to_owned());
        headers.iter().map(value).collect()
    }
}

impl Drop for McpServer {
    fn drop(&mut self) {
        self.end();
    }
}

/// Serves on a thread.
fn serving(listener: std::net::TcpListener, box_: ToolBox) -> Runtime {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(1).enable_all().build().unwrap();
    runtime.spawn(async move {
        listener.set_nonblocking(true).unwrap();
        serve(TcpListener::from_std(listener).unwrap(), box_).await;
    });
    runtime
}

async fn serve(listener: TcpListener, box_: ToolBox) {
    let seen = box_.clone();
    let service = StreamableHttpService::new(
        move || Ok(box_.clone()),
        Arc::new(LocalSessionManager::default()),
        StreamableHttpServerConfig::default(),
    );
    let router = axum::Router::new().fallback_service(service).layer(middleware::from_fn(
        move |request: Request, next: Next| {
            let shared = Arc::clone(&seen.0);
            async move {
                let (head, body) = request.into_parts();
                let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
                shared.headers.lock().unwrap().push(head.headers.clone());
                let message = serde_json::from_slice::<Value>(&body).unwrap_or_default();
                if let Some(method) = message["method"].as_str() {
                    shared.methods.lock().unwrap().push(method.to_owned());
                }
                let opens_stream = head.method == Method::GET;
                let response = next.run(Request::from_parts(head, body.into())).await;
                if opens_stream {
                    shared.methods.lock().unwrap().push("GET".to_owned());
                }
                response
            }
        },
    ));
    axum::serve(listener, router).await.unwrap();
}

/// Makes a tool.
pub(super) fn tool(name: &'static str, description: &'static str, properties: Value) -> Tool {
    let mut schema = json!({"type": "object"});
    schema["properties"] = properties;
    Tool::new(name, description, schema.as_object().unwrap().clone())
}

fn usual_tools() -> Vec<Tool> {
    let output = json!({"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]});
    let output = Arc::new(output.as_object().unwrap().clone());
    vec![
        tool("echo", "Repeats a text.", json!({"text": {"type": "string"}}))
            .annotate(ToolAnnotations::new().read_only(true)),
        tool("fail", "Fails.", json!({})),
        tool(
            "sum",
            "Adds.",
            json!({"a": {"type": "integer"}, "lie": {"type": "boolean"}}),
        )
        .with_raw_output_schema(output),
        tool("show", "Shows.", json!({})),
        tool("slow", "Takes its time.", json!({})),
        tool("ask", "Asks.", json!({"what": {"type": "string"}})),
        tool("dots.and/slashes", "Has an odd name.", json!({})),
    ]
}

impl ToolBox {
    fn note(&self, what: impl Into<String>) {
        self.0.log.lock().unwrap().push(what.into());
    }

    async fn slow(&self, context: &RequestContext<RoleServer>) -> CallToolResult {
        self.note("slow began");
        if let Some(token) = context.meta.get_progress_token() {
            for step in 1..=2 {
                let progress = ProgressNotificationParam::new(token.clone(), f64::from(step));
                let progress = progress.with_total(2.0).with_message(format!("step {step}"));
                context.peer.notify_progress(progress).await.unwrap();
            }
        }
        tokio::select! {
            () = context.ct.cancelled() => self.note("slow was cancelled"),
            () = sleep(Duration::from_secs(30)) => self.note("slow ended"),
        }
        CallToolResult::success(vec![ContentBlock::text("late")])
    }

    /// Asks for a name, and for a town as well if it is to ask for both: by a result that requires
    /// input, or by a question.
    async fn ask(
        &self,
        request: CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, McpError> {
        let form = |message: &str, required: &str, properties: Value| -> ElicitRequestParams {
            let schema = json!({"type": "object", "required": [required], "properties": properties});
            serde_json::from_value(json!({"mode": "form", "message": message, "requestedSchema": schema})).unwrap()
        };
        let name = json!({"name": {"type": "string"}, "title": {"type": "string", "default": "Dr."}});
        let question = form("What is your name?", "name", name);
        let mut town = String::new();
        let answer = if context.protocol_version() >= Some(ProtocolVersion::V_2026_07_28) {
            let asks_for_both = request
                .arguments
                .is_some_and(|arguments| arguments.get("what") == Some(&json!("both")));
            let Some(responses) = request.input_responses else {
                self.note("ask asked");
                let ask =
                    |key: &str, question| (key.to_owned(), InputRequest::Elicitation(ElicitRequest::new(question)));
                let mut requests = BTreeMap::from([ask("who", question)]);
                if asks_for_both {
                    let town =
                        json!({"town": {"type": "string", "enum": ["Bern", "Chur"]}, "since": {"type": "integer"}});
                    requests.extend([ask("where", form("Where do you live?", "town", town))]);
                }
                let result = InputRequiredResult::new(Some(requests), Some("state 1".to_owned()));
                return Ok(CallToolResponse::InputRequired(result));
            };
            assert_eq!(request.request_state.as_deref(), Some("state 1"));
            if asks_for_both {
                let answer = &responses["where"]["content"];
                town = format!(" of {} since {}", answer["town"].as_str().unwrap(), answer["since"]);
            }
            responses["who"].clone()
        } else {
            self.note("ask asked");
            let request = ServerRequest::ElicitRequest(ElicitRequest::new(question));
            let answer = context.peer.send_request(request).await;
            let answer = answer.map_err(|error| McpError::internal_error(error.to_string(), None))?;
            serde_json::to_value(answer).unwrap()
        };
        self.note(format!("ask read {answer}"));
        let text = format!(
            "Hello {} {}{town}!",
            text_of(&answer, "title"),
            text_of(&answer, "name")
        );
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

fn text_of(answer: &Value, field: &str) -> String {
    answer["content"][field].as_str().unwrap_or("?").to_owned()
}

impl ServerHandler for ToolBox {
    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.0.era.lock().unwrap().revisions()
    }

    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_prompts()
            .build();
        ServerConfig::new(capabilities)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, McpError> {
        let version = context.protocol_version().unwrap();
        self.note(format!("listed by {version}"));
        *self.0.lister.lock().unwrap() = Some(context.peer.clone());
        let tools = self.0.tools.lock().unwrap().clone();
        Ok(ListToolsResult {
            ttl_ms: *self.0.ttl_ms.lock().unwrap(),
            ..ListToolsResult::with_all_items(tools)
        })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, McpError> {
        let arguments = Value::Object(request.arguments.clone().unwrap_or_default());
        let result = match &*request.name {
            "echo" => {
                let text = arguments["text"].as_str().unwrap_or_default();
                CallToolResult::success(vec![ContentBlock::text(format!("echo: {text}"))])
            }
            "fail" => CallToolResult::error(vec![ContentBlock::text("out of order")]),
            "sum" => {
                let mut result = CallToolResult::success(Vec::new());
                let sum = if arguments["lie"] == true {
                    json!("many")
                } else {
                    arguments["a"].clone()
                };
                result.structured_content = Some(json!({"sum": sum}));
                result
            }
            "show" => CallToolResult::success(vec![
                ContentBlock::text("Here:"),
                ContentBlock::image(PNG, "image/jpeg"),
                ContentBlock::image("AAAA", "image/png"),
                ContentBlock::image("not base64", "image/png"),
                ContentBlock::image(format!("{}\r\n{}\n", &PNG[..60], &PNG[60..]), "image/png"),
                ContentBlock::image(format!("data:image/png;base64,{PNG}"), "image/png"),
                ContentBlock::image(TALL, "image/gif"),
                ContentBlock::embedded_text("file:///a.txt", "the text"),
                ContentBlock::resource_link(Resource::new("file:///b.txt", "b")),
            ]),
            "slow" => self.slow(&context).await,
            "ask" => return self.ask(request, &context).await,
            other => return Err(ErrorData::invalid_params(format!("there is no {other}"), None)),
        };
        Ok(result.into())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, McpError> {
        Ok(ListResourcesResult::with_all_items(vec![Resource::new(
            "file:///b.txt",
            "b",
        )]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, McpError> {
        let contents = vec![ResourceContents::text("the contents", request.uri)];
        Ok(ReadResourceResult::new(contents).into())
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, McpError> {
        Ok(ListPromptsResult::with_all_items(vec![Prompt::new(
            "greet",
            Some("Greets."),
            None,
        )]))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, McpError> {
        let text = format!("Greet {}.", json!(request.arguments));
        Ok(GetPromptResult::new(vec![PromptMessage::new_text(Role::User, text)]).into())
    }
}
