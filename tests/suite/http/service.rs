//! The service of these tests: models that echo at once or behind a gate, an agent on them, and a
//! provider without a key.

use std::ops::Deref;
use std::sync::Arc;

use reqwest::{Body, Method, RequestBuilder, header};
use serde_json::{Value, json};
use tempfile::TempDir;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use test_support::wait::until;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::support::answer::SECRET_VARIABLE;
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::TestApp;

/// The most runs at once of a service in a test.
pub(super) const MAX_RUNS: usize = 4;

/// The bytes of the answer to the word `much`.
pub(super) const MUCH: usize = 2_000_000;

/// An id that nothing has.
pub(super) const NOWHERE: &str = "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11";

/// The configured agent.
const DEMO: &str = r#"
name = "demo"
model = "mock/echo"
tools = ["calculator"]
"#;

/// A running service with all that it works on.
#[derive(Debug)]
pub(super) struct Service {
    http: TestApp,
    pub(super) database: TestDatabase,
    /// Where calls of `mock/gated` wait.
    pub(super) gate: Arc<Gate>,
    /// The provider behind all models.
    pub(super) models: MockModel,
    /// The folder of the files of agents.
    pub(super) agents: TempDir,
}

impl Deref for Service {
    type Target = TestApp;

    fn deref(&self) -> &TestApp {
        &self.http
    }
}

impl Service {
    /// Starts a service on a file.
    pub(super) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// Starts a service on a file, with settings.
    pub(super) async fn start_with(settings: &[(&str, &str)]) -> Self {
        Self::start_on(TestDatabase::sqlite(), settings).await
    }

    /// Starts a service on a database, with settings.
    pub(super) async fn start_on(database: TestDatabase, settings: &[(&str, &str)]) -> Self {
        let gate = Gate::new();
        let behind = Arc::clone(&gate);
        let models = MockModel::start(move |request| {
            let text = format!("echo: {}", last_user_text(request));
            let last = request["messages"].as_array().and_then(|messages| messages.last());
            let is_called = last.is_some_and(|message| message["role"] == "tool");
            if let Some(expression) = last_user_text(request)
                .strip_prefix("calculate ")
                .filter(|_| !is_called)
            {
                return Reply::call("call-1", "calculator", &json!({"expression": expression}));
            }
            if last_user_text(request) == "much" {
                return Reply::Text(vec!["x".repeat(MUCH / 4); 4]);
            }
            if request["model"] == "gated" {
                return Reply::Held(Arc::clone(&behind), text);
            }
            // No event of a stream may be larger than what the client takes.
            let characters: Vec<char> = text.chars().collect();
            Reply::Text(characters.chunks(1_000_000).map(String::from_iter).collect())
        });
        let models = models.await;
        let agents = tempfile::tempdir().unwrap();
        std::fs::write(agents.path().join("demo.toml"), DEMO).unwrap();
        let fixed = [
            ("agents.directory", agents.path().to_str().unwrap()),
            ("providers.mock.models", r#"["echo", "gated"]"#),
            ("providers.keyless.kind", "openai_chat"),
            ("providers.keyless.base_url", "https://keyless.invalid/v1"),
            ("providers.keyless.api_key_env", SECRET_VARIABLE),
            ("runs.max_concurrent", &MAX_RUNS.to_string()),
            ("runs.commit_patience", "1s"),
        ];
        let settings: Vec<_> = fixed.iter().chain(settings).copied().collect();
        Self {
            http: TestApp::start_bare(database.url(), &models, &settings).await,
            database,
            gate,
            models,
            agents,
        }
    }

    /// Asks for a run over a connection of its own, and returns that.
    pub(super) async fn open_run(&self, body: &Value) -> TcpStream {
        let body = body.to_string();
        let head = "POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json";
        let request = format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    /// Returns the numbers of stored sessions and runs.
    pub(super) async fn counts(&self) -> (usize, usize) {
        let count = async |sql| usize::try_from(self.database.number(sql).await).unwrap();
        (
            count("select count(*) from sessions").await,
            count("select count(*) from runs").await,
        )
    }

    /// Waits until so many sessions and runs are stored.
    pub(super) async fn until_counts(&self, counts: (usize, usize)) {
        until("so many sessions and runs were never stored", async || {
            self.counts().await == counts
        })
        .await;
    }

    /// Waits until the service has a connection for one more request.
    pub(super) async fn until_free(&self) {
        until("no connection becomes free", async || {
            let request = b"GET /v1/runs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
            self.send_raw(request).await.starts_with("HTTP/1.1 200 OK")
        })
        .await;
    }

    /// Makes a request whose content type is JSON, with any body.
    pub(super) fn send_json(&self, method: Method, path: &str, body: impl Into<Body>) -> RequestBuilder {
        let request = self.request(method, path);
        request.header(header::CONTENT_TYPE, "application/json").body(body)
    }

    /// Asserts that there is no run and no session.
    pub(super) async fn assert_nothing_was_written(&self) {
        for path in ["/v1/runs", "/v1/sessions"] {
            assert_eq!(self.get(path).await["data"], json!([]), "{path}");
        }
    }

    /// Stops the service and checks that nothing is left over.
    pub(super) async fn finish(self) {
        self.http.finish().await;
    }
}
