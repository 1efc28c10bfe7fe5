//! MCP servers whose tools agents call. The servers are real ones: made from the library's server
//! side, or raw sockets that misbehave.

mod agents;
mod caching;
mod calls;
mod changes;
mod conformance;
mod credentials;
mod hanging;
mod hostile;
mod input;
mod loose;
mod parts;
pub(crate) mod raw;
mod redaction;
mod server;
mod servers_by_others;
mod sessions;
mod stdio;
mod streams;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use net::outgoing::{ClientSettings, NameResolver, OutgoingClient};
use sandbox::{SandboxLimits, SandboxSettings};
use serde_json::json;
use test_support::databases::TestDatabase;
use tools::mcp::{McpDefinition, McpServers};
use tools::{CommandSettings, Commands, DefinitionFault, MaxJobs, ToolSecrets};
use values::json::Value;
use values::path_patterns::PathPatterns;

use self::server::{Era, McpServer};
use crate::support::mock_model::{MockModel, Reply, last_user_text, listed_calls, new_results};
use crate::support::test_app::{TestApp, session_path};

/// A service with MCP servers on this machine, and an agent `user` that lists all of them.
struct McpApp {
    app: TestApp,
    mock: MockModel,
    /// The folder of the servers, and the store unless several services share it.
    _held: (tempfile::TempDir, Option<TestDatabase>),
}

impl Deref for McpApp {
    type Target = TestApp;

    fn deref(&self) -> &TestApp {
        &self.app
    }
}

impl McpApp {
    /// Starts the service with servers by name, each with its address and further lines of its
    /// file.
    async fn start(database: &TestDatabase, servers: &[(&str, &str, &str)]) -> Self {
        Box::pin(Self::start_on(database.url(), None, servers, &[])).await
    }

    /// Does the same with a store of its own.
    async fn alone(servers: &[(&str, &str, &str)]) -> Self {
        Self::alone_with(servers, &[]).await
    }

    /// Does the same with settings on top.
    async fn alone_with(servers: &[(&str, &str, &str)], settings: &[(&str, &str)]) -> Self {
        let database = TestDatabase::sqlite();
        let url = database.url().to_owned();
        Box::pin(Self::start_on(&url, Some(database), servers, settings)).await
    }

    async fn start_on(
        store_url: &str,
        own: Option<TestDatabase>,
        servers: &[(&str, &str, &str)],
        settings: &[(&str, &str)],
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, url, more) in servers {
            let over_http = format!("url = {url:?}\nallow_http = true\nallow_networks = [\"127.0.0.1\"]\n{more}\n");
            // A server without an address is a program, which its lines describe.
            let text = if url.is_empty() { more } else { over_http.as_str() };
            std::fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
        }
        let directory = folder.path().display().to_string();
        let settings: Vec<_> = settings
            .iter()
            .copied()
            .chain([("mcp.directory", directory.as_str())])
            .collect();
        let mock = MockModel::start(model).await;
        let app = TestApp::start(store_url, &mock, &settings).await;
        let names: Vec<_> = servers.iter().map(|(name, ..)| *name).collect();
        app.put_agent("user", json!({"model": "mock/m", "mcp": names})).await;
        Self {
            app,
            mock,
            _held: (folder, own),
        }
    }

    /// Starts the service with one server.
    async fn with(server: &McpServer, more: &str) -> Self {
        Self::alone(&[("box", &server.url(), more)]).await
    }

    /// Has the agent call a tool, and returns what the model has read.
    async fn use_tool(&self, tool: &str, arguments: Value) -> String {
        let run = self.call_tool(None, tool, arguments).await;
        assert_eq!(run["status"], "completed", "{run:#}");
        run["output_text"].as_str().unwrap().to_owned()
    }

    /// Has the agent call a tool in a session, and returns the run.
    async fn call_tool(&self, base: Option<&Value>, tool: &str, arguments: Value) -> Value {
        let calls = json!([["c1", tool, arguments]]);
        let mut body = json!({"agent": "user", "input": calls.to_string()});
        if let Some(base) = base {
            body["base_session_id"] = base["session_id"].clone();
        }
        self.run_with(body).await
    }

    /// The names of the tools that the last request to the model offered.
    fn offered(&self) -> Vec<String> {
        let request = self.mock.requests().pop().unwrap();
        let tools = request["tools"].as_array().cloned().unwrap_or_default();
        let names = tools
            .iter()
            .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
        names.collect()
    }

    /// The context of the session of a run.
    async fn context(&self, run: &Value) -> Value {
        self.get(&session_path(run, "")).await["context_state"].clone()
    }

    async fn finish(self) {
        self.app.finish().await;
    }
}

/// Makes a server over HTTP without a service, whose names the resolver resolves.
fn servers_with(
    definition: &str,
    secrets: &ToolSecrets,
    resolver: Arc<dyn NameResolver>,
) -> Result<McpServers, DefinitionFault> {
    let definition: McpDefinition = toml::from_str(definition).unwrap();
    let settings = ClientSettings {
        connect_timeout: Duration::from_secs(30),
        decompress: true,
    };
    let client = OutgoingClient::new(definition.rules(), settings, resolver).unwrap();
    let commands = Commands::new(CommandSettings {
        sandbox: SandboxSettings::default(),
        limits: SandboxLimits::default(),
        directory: "/nonexistent".into(),
        retained_directories: 0,
        ephemeral: PathPatterns::default(),
        read_only: Vec::new(),
        is_required: false,
        network: None,
        max_commands: 4,
        max_jobs: MaxJobs::default(),
    });
    let mut servers = McpServers::default();
    servers.add(definition, secrets, &client, &commands)?;
    Ok(servers)
}

/// Calls the tools that the user's last message lists: `[[id, tool, arguments], …]`. Once it has
/// their results, it repeats them.
fn model(request: &Value) -> Reply {
    let results = new_results(request);
    if !results.is_empty() {
        return Reply::text(&results.join(" | "));
    }
    listed_calls(&last_user_text(request)).unwrap_or_else(|| Reply::text("no calls"))
}

/// Both kinds of revisions, for tests about what they have in common.
const ERAS: [Era; 2] = [Era::Modern, Era::Legacy];
