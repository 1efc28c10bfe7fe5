//! The whole service in this process, on a free port, with a store of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use agent_runtime::api_key;
use agent_runtime::app::{App, Extensions};
use agent_runtime::config::{self, Config, Sources};
use agent_runtime::http;
use agent_runtime::run::process;
use net::http_client::client_builder;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use secrecy::ExposeSecret as _;
use serde_json::json;
use store::keys::{ApiKeyRecord, Scope};
use test_support::clock::MovableClock;
use test_support::drafts::requester;
use test_support::fake_tool::FakeTool;
use test_support::wait::until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use values::clock::Clock as _;
use values::ids::{ApiKeyId, UuidV7Source};
use values::json::Value;
use values::limits::RunLimits;
use values::tenant::TenantId;

use super::answer::{Answer, read, with_json};
use super::mock_model::MockModel;

/// How long a stopped service lets requests and runs end.
const GRACE: Duration = Duration::from_secs(3);
/// Half of the service's `header_timeout`.
const IDLE_LIMIT: Duration = Duration::from_secs(5);

/// A running service.
#[derive(Debug)]
pub(crate) struct TestApp {
    pub(crate) app: App,
    pub(crate) address: SocketAddr,
    /// The clock of the requests and of the runs.
    pub(crate) clock: Arc<MovableClock>,
    client: Client,
    stop: CancellationToken,
    stopped: CancellationToken,
    server: JoinHandle<()>,
}

impl TestApp {
    /// Starts the service on the store with a mock model as the provider `mock`, these settings on
    /// top and an agent `echo`.
    pub(crate) async fn start(store_url: &str, mock: &MockModel, settings: &[(&str, &str)]) -> Self {
        let test_app = Self::start_bare(store_url, mock, settings).await;
        test_app.put_agent("echo", json!({"model": "mock/m"})).await;
        test_app
    }

    /// Does the same without the agent, so that nothing is stored.
    pub(crate) async fn start_bare(store_url: &str, mock: &MockModel, settings: &[(&str, &str)]) -> Self {
        Self::start_extended(store_url, mock, settings, Extensions::default()).await
    }

    /// Starts the service with further tools, without the agent.
    pub(crate) async fn start_with_tools<const N: usize>(
        store_url: &str,
        mock: &MockModel,
        settings: &[(&str, &str)],
        tools: [&Arc<FakeTool>; N],
    ) -> Self {
        let extensions = Extensions {
            tools: tools.map(|tool| Arc::clone(tool) as _).into(),
            ..Extensions::default()
        };
        Self::start_extended(store_url, mock, settings, extensions).await
    }

    /// Starts the service with extensions.
    pub(crate) async fn start_extended(
        store_url: &str,
        mock: &MockModel,
        settings: &[(&str, &str)],
        mut extensions: Extensions,
    ) -> Self {
        extensions
            .sandbox_helper
            .get_or_insert(env!("CARGO_BIN_EXE_agent-runtime").into());
        let config = config_for(store_url, mock, settings);
        let mut app = App::build(&config, extensions).await.unwrap();
        let clock = Arc::new(MovableClock::default());
        Arc::get_mut(&mut app.runs).unwrap().clock = Arc::clone(&clock) as _;
        app.begin();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = config.http.clone();
        let (tokens, mcp, openai) = (app.tokens.clone(), app.mcp.clone(), Arc::clone(&app.openai));
        let interface = http::interface(Arc::clone(&app.runs), tokens, mcp, openai, &config.console, &limits);
        let (stop, stopped) = (CancellationToken::new(), CancellationToken::new());
        let (stopping, at_end) = (stop.clone(), stopped.clone().drop_guard());
        let server = tokio::spawn(async move {
            let _at_end = at_end;
            tokio::select! {
                () = http::serve(listener, interface, stopping.clone()) => (),
                () = async {
                    stopping.cancelled().await;
                    sleep(GRACE).await;
                } => (),
            }
        });
        Self {
            app,
            address,
            clock,
            client: plain_client(),
            stop,
            stopped,
            server,
        }
    }

    /// Makes an agent.
    pub(crate) async fn put_agent(&self, name: &str, definition: Value) {
        let (status, body) = self
            .call(Method::PUT, &format!("/v1/agents/{name}"), Some(definition))
            .await;
        assert!(status.is_success(), "{status}: {body:#}");
    }

    /// Begins a request.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.address))
    }

    /// Makes a request and returns its status and body.
    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let request = self.request(method, path);
        let answer = read(match &body {
            Some(body) => with_json(request, body),
            None => request,
        })
        .await;
        let body = serde_json::from_slice(&answer.body);
        (answer.status, body.unwrap_or_else(|_| Value::String(answer.text())))
    }

    /// Gets a document that must be there.
    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call(Method::GET, path, None).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body:#}");
        body
    }

    /// Gets all pages of a list, whose path ends with a query, by their cursors.
    pub(crate) async fn pages(&self, path: &str) -> Vec<Value> {
        let mut pages = vec![self.get(path).await];
        while let Some(cursor) = pages[pages.len() - 1]["next_cursor"].as_str() {
            let next = self.get(&format!("{path}&cursor={cursor}")).await;
            pages.push(next);
        }
        pages
    }

    /// Gets all rows of a list, page by page.
    pub(crate) async fn rows(&self, path: &str) -> Vec<Value> {
        let pages = self.pages(path).await.into_iter();
        pages
            .flat_map(|page| page["data"].as_array().unwrap().clone())
            .collect()
    }

    /// Gets a resource.
    pub(crate) async fn try_get(&self, path: &str) -> Answer {
        read(self.request(Method::GET, path)).await
    }

    /// Posts a JSON document.
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        read(with_json(self.request(Method::POST, path), body)).await
    }

    /// Puts a JSON document.
    pub(crate) async fn put(&self, path: &str, body: &Value) -> Answer {
        read(with_json(self.request(Method::PUT, path), body)).await
    }

    /// Sends bytes over a connection of its own and reads until the service closes it.
    pub(crate) async fn send_raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // The service may respond and close before it has read everything.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Makes a key and returns its secret.
    pub(crate) async fn make_key(&self, tenant: &str, scopes: &[Scope]) -> (ApiKeyId, String) {
        self.make_key_with(tenant, scopes, RunLimits::default()).await
    }

    /// Makes a key with limits and returns its secret.
    pub(crate) async fn make_key_with(&self, tenant: &str, scopes: &[Scope], limits: RunLimits) -> (ApiKeyId, String) {
        let (secret, secret_hash) = api_key::generate().unwrap();
        let key_id = ApiKeyId::generate(&UuidV7Source);
        let key = ApiKeyRecord {
            key_id,
            secret_hash,
            tenant: tenant.parse().unwrap(),
            scopes: scopes.to_vec(),
            label: String::new(),
            limits,
            created_at: self.clock.now(),
            revoked_at: None,
        };
        self.app.runs.store.key_insert(&key, &requester()).await.unwrap();
        (key_id, secret.expose_secret().to_owned())
    }

    /// Runs the agent `echo` on the text and returns the result.
    pub(crate) async fn run(&self, base: Option<&str>, text: &str) -> Value {
        let mut body = json!({"agent": "echo", "input": text});
        if let Some(base) = base {
            body["base_session_id"] = json!(base);
        }
        self.run_with(body).await
    }

    /// Starts a run that must be accepted and returns its result.
    pub(crate) async fn run_with(&self, body: Value) -> Value {
        let (status, result) = self.call(Method::POST, "/v1/runs", Some(body)).await;
        assert_eq!(status, StatusCode::OK, "{result:#}");
        result
    }

    /// Starts a streamed run and returns its events once it has ended.
    pub(crate) async fn stream(&self, mut body: Value) -> Vec<Value> {
        body["mode"] = json!("stream");
        let answer = self.post("/v1/runs", &body).await;
        assert_eq!(answer.status, StatusCode::OK);
        sse_data(&answer.text())
    }

    /// Waits until no run is in progress.
    pub(crate) async fn until_idle(&self) {
        until("runs go on", async || process::active_runs(&self.app.runs) == 0).await;
    }

    /// Waits until the store has the run's record.
    pub(crate) async fn until_stored(&self, run_id: &str) {
        let (tenant, run_id) = (TenantId::anonymous(), run_id.parse().unwrap());
        let lookup = async || self.app.runs.store.run_lookup(&tenant, run_id).await;
        until("the record is not stored", async || {
            lookup().await.is_ok_and(|run| run.is_some())
        })
        .await;
    }

    /// Asks the service to take no more connections and to end.
    pub(crate) fn stop(&self) {
        self.stop.cancel();
    }

    /// Waits until the service has ended.
    pub(crate) async fn until_stopped(&self) {
        self.stopped.cancelled().await;
    }

    /// Stops the service and checks that nothing is left over.
    pub(crate) async fn finish(self) {
        self.stop();
        self.server.await.unwrap();
        process::shut_down(&self.app.runs, GRACE).await;
        self.app.disconnect().await;
        assert_eq!(process::active_runs(&self.app.runs), 0);
    }
}

/// Makes a client that follows nothing. It gives up an idle connection before the service does, so
/// that no request meets the end of its connection.
pub(crate) fn plain_client() -> Client {
    let builder = client_builder().unwrap().pool_idle_timeout(IDLE_LIMIT);
    builder.build().unwrap()
}

/// The configuration of a test: nothing of this machine's files or environment counts. A setting
/// with an upper-case name is a variable of the environment.
pub(crate) fn config_for(store_url: &str, mock: &MockModel, settings: &[(&str, &str)]) -> Config {
    let base_url = mock.base_url();
    let fixed = [
        ("store.url", store_url),
        ("store.max_connections", "8"),
        // Longer than a test machine stands still.
        ("store.acquire_timeout", "20s"),
        ("agents.directory", "/nonexistent"),
        ("tools.directory", "/nonexistent"),
        ("mcp.directory", "/nonexistent"),
        ("providers.mock.kind", "openai_chat"),
        ("providers.mock.base_url", &base_url),
        // Tests look at single messages, which other servers get joined.
        ("capabilities.\"mock/*\".roles", "any"),
        ("models.max_retries", "0"),
    ];
    let (environment, overrides) = fixed
        .iter()
        .chain(settings)
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .partition::<Vec<_>, _>(|(key, _)| key.starts_with(|first: char| first.is_ascii_uppercase()));
    config::load(&Sources {
        environment: environment.into_iter().collect(),
        overrides,
        ..Sources::default()
    })
    .unwrap()
    .config
}

/// Returns the path of what belongs to a run: `run_path(&run, "/steps")`.
pub(crate) fn run_path(run: &Value, rest: &str) -> String {
    format!("/v1/runs/{}{rest}", run["run_id"].as_str().unwrap())
}

/// Returns the path of what belongs to the session of a run, or to a session.
pub(crate) fn session_path(of: &Value, rest: &str) -> String {
    format!("/v1/sessions/{}{rest}", of["session_id"].as_str().unwrap())
}

/// Returns the data of every event of a stream.
pub(crate) fn sse_data(text: &str) -> Vec<Value> {
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}
