//! A service whose model waits at a gate if the input asks for it, and runs that outlive their
//! connection.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use values::json::Value;

use super::answer::{Answer, read, with_json};
use super::members::extended;
use super::mock_model::{MockModel, Reply, last_user_text};
use super::test_app::{TestApp, run_path, sse_data};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running service with an agent `echo`. A call whose last message of the user begins with `wait`
/// waits at the gate.
#[derive(Debug)]
pub(crate) struct GatedApp {
    app: TestApp,
    pub(crate) mock: MockModel,
    pub(crate) gate: Arc<Gate>,
}

impl Deref for GatedApp {
    type Target = TestApp;

    fn deref(&self) -> &TestApp {
        &self.app
    }
}

impl GatedApp {
    /// Starts the service with these settings.
    pub(crate) async fn start(database: &TestDatabase, settings: &[(&str, &str)]) -> Self {
        let gate = Gate::new();
        let behind = Arc::clone(&gate);
        let mock = MockModel::start(move |request| {
            let input = last_user_text(request);
            let text = format!("echo: {input}");
            if input.starts_with("wait") {
                return Reply::Held(Arc::clone(&behind), text);
            }
            Reply::text(&text)
        });
        let mock = mock.await;
        let app = TestApp::start(database.url(), &mock, settings).await;
        Self { app, mock, gate }
    }

    /// Stops the service and checks that nothing is left over.
    pub(crate) async fn finish(self) {
        self.app.finish().await;
    }
}

/// Requests about runs that outlive their connection.
impl TestApp {
    /// Begins a run of the agent `echo` in the background, and returns it as it was accepted.
    pub(crate) async fn begin(&self, text: &str, more: Value) -> Value {
        let answer = self.post("/v1/runs", &request("async", text, more)).await;
        assert_eq!(answer.status, StatusCode::ACCEPTED, "{}", answer.text());
        answer.json()
    }

    /// Sends a request with an idempotency key.
    pub(crate) async fn post_keyed(&self, path: &str, key: &str, body: &Value) -> Answer {
        let request = self.request(Method::POST, path).header("idempotency-key", key);
        read(with_json(request, body)).await
    }

    /// Sends a request without a body about a run, such as `stop`.
    pub(crate) async fn control(&self, run: &Value, action: &str) -> Answer {
        let path = format!("/v1/runs/{}/{action}", id(run));
        read(self.request(Method::POST, &path)).await
    }

    /// Sends a message to a run.
    pub(crate) async fn steer(&self, run: &Value, key: &str, text: &str) -> Answer {
        let body = json!({"id": key, "input": text});
        self.post(&run_path(run, "/steer"), &body).await
    }

    /// Shows a run as it stands.
    pub(crate) async fn shown(&self, run: &Value) -> Value {
        self.get(&run_path(run, "")).await
    }

    /// Waits until a run has ended, by waiting for one change of its status after the other.
    pub(crate) async fn ended(&self, run: &Value) -> Value {
        let path = run_path(run, "?wait=10s");
        let ending = async {
            loop {
                let run = self.get(&path).await;
                if !["queued", "running"].contains(&run["status"].as_str().unwrap()) {
                    return run;
                }
            }
        };
        tokio::time::timeout(PATIENCE, ending)
            .await
            .expect("the run did not end")
    }

    /// Reads the events of a run after the one of the number, up to its last one. A reader that has
    /// that one is not to come again.
    pub(crate) async fn events_after(&self, run: &Value, after: u64) -> Vec<Value> {
        let path = run_path(run, "/events");
        let request = self.request(Method::GET, &path).header("last-event-id", after);
        let answer = tokio::time::timeout(PATIENCE, read(request)).await;
        let answer = answer.expect("the stream did not end");
        if answer.status == StatusCode::NO_CONTENT {
            return Vec::new();
        }
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text());
        assert_eq!(answer.header("content-type"), "text/event-stream");
        sse_data(&answer.text())
    }
}

/// The id of a run.
pub(crate) fn id(run: &Value) -> &str {
    run["run_id"].as_str().unwrap()
}

/// Makes the body of a run of the agent `echo`.
#[expect(clippy::needless_pass_by_value, reason = "callers write the object down right there")]
pub(crate) fn request(mode: &str, text: &str, more: Value) -> Value {
    extended(json!({"agent": "echo", "input": text, "mode": mode}), &more)
}

/// The numbers of events.
pub(crate) fn numbers(events: &[Value]) -> Vec<u64> {
    events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect()
}

/// Asserts that the numbers of events begin with 1 and have no gap.
#[track_caller]
pub(crate) fn assert_without_gap(events: &[Value]) {
    let complete: Vec<_> = (1..=events.len() as u64).collect();
    assert_eq!(numbers(events), complete);
}
