//! `/mcp`: raw messages of both eras of the protocol over real HTTP.

mod library;
mod limits;
mod protocol;
mod resources;
mod tasks;
mod tools;
mod waiting;

use std::ops::Deref;
use std::sync::Arc;

use reqwest::{Method, RequestBuilder, header};
use serde_json::json;
use test_support::databases::{Engine, TestDatabase};
use test_support::fake_tool::{Behaviour, FakeTool};
use test_support::gate::Gate;
use values::json::Value;

use crate::support::answer::{Answer, read};
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, last_user_text, listed_calls, new_results};
use crate::support::test_app::TestApp;

/// The revision whose requests are complete in themselves.
const MODERN: &str = "2026-07-28";
/// A revision with a handshake.
const LEGACY: &str = "2025-11-25";

/// A service with the agents `asker` and `echo`, beside the configured `demo`.
///
/// The model calls the tools that a text of JSON lists, and repeats their results. It holds the
/// response to `wait` at a gate.
struct McpApp {
    app: TestApp,
    _mock: MockModel,
    gate: Arc<Gate>,
    deploy: Arc<FakeTool>,
}

/// A client of the endpoint.
#[derive(Clone)]
pub(crate) struct Client<'a> {
    app: &'a TestApp,
    key: Option<String>,
    version: &'static str,
    capabilities: Value,
}

impl Deref for McpApp {
    type Target = TestApp;

    fn deref(&self) -> &TestApp {
        &self.app
    }
}

impl McpApp {
    async fn start(database: &TestDatabase, settings: &[(&str, &str)]) -> Self {
        let gate = Gate::new();
        let at_gate = Arc::clone(&gate);
        let mock = MockModel::start(move |request| model(request, &at_gate)).await;
        let deploy = FakeTool::new("deploy", Behaviour::EchoArguments);
        let app = TestApp::start_with_tools(database.url(), &mock, settings, [&deploy]).await;
        Self {
            app,
            _mock: mock,
            gate,
            deploy,
        }
    }

    /// Starts a service with its agents on SQLite.
    async fn with_agents(settings: &[(&str, &str)]) -> (Self, TestDatabase) {
        let database = TestDatabase::new(Engine::Sqlite).await.unwrap();
        let app = Self::start(&database, settings).await;
        app.put_agents().await;
        (app, database)
    }

    async fn put_agents(&self) {
        self.put_agent("echo", json!({"model": "mock/m", "description": "Repeats."}))
            .await;
        self.put_agent("asker", asker()).await;
    }

    /// A client of the newest revision that can do nothing else.
    fn client(&self) -> Client<'_> {
        Client {
            app: &self.app,
            key: None,
            version: MODERN,
            capabilities: json!({}),
        }
    }

    /// A client whose user answers questions.
    fn asking(&self) -> Client<'_> {
        Client::asking(&self.app)
    }

    /// A client that polls tasks, and whose user answers questions.
    fn polling(&self) -> Client<'_> {
        let capabilities = json!({
            "elicitation": {"form": {}},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        });
        Client {
            capabilities,
            ..self.client()
        }
    }

    async fn finish(self) {
        self.app.finish().await;
    }
}

impl<'a> Client<'a> {
    /// A client of the newest revision whose user answers questions.
    pub(crate) fn asking(app: &'a TestApp) -> Self {
        Self {
            app,
            key: None,
            version: MODERN,
            capabilities: json!({"elicitation": {"form": {}}}),
        }
    }
}

impl Client<'_> {
    /// Makes a request with a key.
    fn with_key(self, key: &str) -> Self {
        Self {
            key: Some(key.to_owned()),
            ..self
        }
    }

    /// Speaks a revision with a handshake.
    fn legacy(self) -> Self {
        Self {
            version: LEGACY,
            ..self
        }
    }

    /// Begins a request with the headers that a message needs.
    fn request(&self, method: &str, params: &Value) -> RequestBuilder {
        let request = self
            .app
            .request(Method::POST, "/mcp")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, "application/json, text/event-stream")
            .header("mcp-protocol-version", self.version)
            .header("mcp-method", method);
        let name = ["name", "uri", "taskId"].iter().find_map(|key| params[key].as_str());
        let request = match name {
            Some(name) => request.header("mcp-name", name),
            None => request,
        };
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    /// Returns the message.
    fn message(&self, method: &str, params: &Value) -> Value {
        let mut params = params.clone();
        if self.version == MODERN {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(self.version);
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
    }

    /// Sends a message and reads the response.
    async fn send(&self, method: &str, params: Value) -> Answer {
        let message = self.message(method, &params);
        read(self.request(method, &params).body(message.to_string())).await
    }

    /// Sends a message and returns the messages of the response.
    async fn messages(&self, method: &str, params: Value) -> Vec<Value> {
        let answer = self.send(method, params).await;
        if answer.header("content-type") == "application/json" {
            return vec![answer.json()];
        }
        assert_eq!(answer.header("content-type"), "text/event-stream", "{}", answer.text());
        let text = answer.text();
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        let data = data.map(str::trim).filter(|data| !data.is_empty());
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    /// Makes a request that succeeds, and returns its result.
    pub(crate) async fn ok(&self, method: &str, params: Value) -> Value {
        let message = self.messages(method, params).await.pop().unwrap();
        assert_members!(message, {"id": 7, "error": null});
        message["result"].clone()
    }

    /// Makes a request that fails, and returns the error.
    async fn error(&self, method: &str, params: Value) -> Value {
        let message = self.messages(method, params).await.pop().unwrap();
        assert!(message["error"].is_object(), "{message:#}");
        message["error"].clone()
    }

    /// Calls a tool.
    async fn tool(&self, name: &str, arguments: Value) -> Value {
        self.ok("tools/call", json!({"name": name, "arguments": arguments}))
            .await
    }
}

/// The definition of the agent with calls that need answers.
fn asker() -> Value {
    json!({
        "model": "mock/m", "description": "Asks.", "tools": ["deploy"],
        "client_tools": [
            {
                "name": "ask", "description": "Asks the user.", "parameters": {"type": "object"},
                "response_schema": {"type": "object", "properties": {"choice": {"type": "string"}}, "required": ["choice"]},
            },
            {"name": "fetch", "description": "Fetches.", "parameters": {"type": "object"}},
            {"name": "say", "parameters": {"type": "object"}, "response_schema": {"type": "string"}},
            {"name": "count", "parameters": {"type": "object"}, "response_schema": {"type": "integer"}},
            {
                "name": "list", "parameters": {"type": "object"},
                "response_schema": {"type": "array", "items": {"type": "object", "required": ["id"]}},
            },
        ],
        "approvals": [{"tools": ["deploy"], "approval": "always", "remember": true}],
    })
}

fn model(request: &Value, gate: &Arc<Gate>) -> Reply {
    let results = new_results(request);
    if !results.is_empty() {
        return Reply::text(&format!("read: {}", results.join(" | ")));
    }
    let text = last_user_text(request);
    if text == "wait" {
        return Reply::Held(Arc::clone(gate), "waited".to_owned());
    }
    if text == "fail" {
        return Reply::Status(400, r#"{"error": {"message": "no"}}"#.to_owned());
    }
    listed_calls(&text).unwrap_or_else(|| Reply::text(&format!("echo: {text}")))
}
