//! The binary as a service, and a client of it.

use std::collections::VecDeque;
use std::time::Duration;

use agent_runtime::http::ProblemCode;
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use test_support::wait::{until, until_found};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::binary::{Ended, Home, PATIENCE, Process};
use crate::support::test_app::{plain_client, run_path, session_path, sse_data};

/// A service that listens.
#[derive(Debug)]
pub(super) struct Service {
    process: Process,
    /// `HOST:PORT`.
    pub(super) address: String,
    client: Client,
    key: Option<String>,
}

/// The events of a run while it streams.
#[derive(Debug)]
pub(super) struct Events {
    response: Response,
    text: String,
    waiting: VecDeque<Value>,
}

impl Service {
    /// Starts a service and waits until it listens.
    pub(super) async fn start(home: &Home) -> Self {
        Self::start_with(home, &[]).await
    }

    /// Starts a service with arguments and waits until it listens.
    pub(super) async fn start_with(home: &Home, arguments: &[&str]) -> Self {
        Self::listening(home.start(&[&["serve"], arguments].concat())).await
    }

    /// Waits until a process that was started as a service listens.
    pub(super) async fn listening(mut process: Process) -> Self {
        let address = until_found("the service does not listen", async || {
            let is_at_work = process.status().is_none();
            assert!(is_at_work, "the service did not start: {}", process.stderr());
            let banner = process.stdout();
            let (_, rest) = banner.split_once("listening on  http")?;
            let (_, rest) = rest.split_once("://")?;
            rest.split_once("  ").map(|(address, _)| address.to_owned())
        });
        let address = address.await;
        Self {
            process,
            address,
            client: plain_client(),
            key: None,
        }
    }

    /// Uses an API key from now on.
    pub(super) fn with_key(mut self, key: &str) -> Self {
        self.key = Some(key.to_owned());
        self
    }

    /// Begins a request.
    pub(super) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("http://{}{path}", self.address));
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    /// Makes a request and returns its status and body.
    pub(super) async fn call(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        read(self.request(method, path), body).await
    }

    /// Gets a document that must be there.
    pub(super) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.call(Method::GET, path, None).await;
        assert_eq!(status, StatusCode::OK, "{path}: {body:#}");
        body
    }

    /// Makes a request that must succeed, and returns the response.
    pub(super) async fn ok(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let (status, answer) = self.call(method, path, body).await;
        assert!(status.is_success(), "{path}: {status} {answer:#}");
        answer
    }

    /// Posts a document, which must succeed, and returns the response.
    pub(super) async fn post(&self, path: &str, body: Value) -> Value {
        self.ok(Method::POST, path, Some(body)).await
    }

    /// Makes a request that must end in this problem, and returns the problem.
    pub(super) async fn refused(&self, method: Method, path: &str, body: Option<Value>, code: &str) -> Value {
        let (status, problem) = self.call(method, path, body).await;
        let known = ProblemCode::find(code).unwrap().status();
        assert_eq!(problem["code"], code, "{path}: {status} {problem:#}");
        assert_eq!(status.as_u16(), known.as_u16(), "{problem:#}");
        problem
    }

    /// Checks that a run has made no session, and returns the problem.
    pub(super) async fn uncommitted(&self, run: &Value) -> Value {
        let session = session_path(run, "");
        self.refused(Method::GET, &session, None, "session_not_committed").await
    }

    /// Makes an agent.
    pub(super) async fn put_agent(&self, name: &str, definition: Value) -> Value {
        self.ok(Method::PUT, &format!("/v1/agents/{name}"), Some(definition))
            .await
    }

    /// Sends a request without a body about a run, such as `stop`.
    pub(super) async fn control(&self, run: &Value, action: &str) -> Value {
        self.ok(Method::POST, &run_path(run, &format!("/{action}")), None).await
    }

    /// Makes a run that must complete, and returns its result.
    pub(super) async fn run(&self, agent: &str, base: Option<&str>, text: &str) -> Value {
        let mut body = json!({"agent": agent, "input": text});
        if let Some(base) = base {
            body["base_session_id"] = json!(base);
        }
        let result = self.post("/v1/runs", body).await;
        assert_eq!(result["status"], "completed", "{result:#}");
        result
    }

    /// Starts a streamed run of the agent `echo` and returns its events as they come.
    pub(super) async fn stream(&self, body: Value) -> Events {
        self.stream_by(self.request(Method::POST, "/v1/runs"), body).await
    }

    /// Starts such a run with an idempotency key, so that it outlives its connection and its
    /// process.
    pub(super) async fn stream_keyed(&self, body: Value, key: &str) -> Events {
        let request = self.request(Method::POST, "/v1/runs").header("idempotency-key", key);
        self.stream_by(request, body).await
    }

    async fn stream_by(&self, request: RequestBuilder, mut body: Value) -> Events {
        body["agent"] = json!("echo");
        body["mode"] = json!("stream");
        let request = request.header("content-type", "application/json");
        let response = request.body(body.to_string()).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        Events {
            response,
            text: String::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Follows the events of a run after the one of the number.
    pub(super) async fn follow(&self, run: &Value, after: u64) -> Events {
        let path = run_path(run, "/events");
        let request = self.request(Method::GET, &path).header("last-event-id", after);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        Events {
            response,
            text: String::new(),
            waiting: VecDeque::new(),
        }
    }

    /// Waits until a run has ended, and returns it.
    pub(super) async fn ended(&self, run: &Value) -> Value {
        let path = run_path(run, "?wait=10s");
        let ending = async {
            loop {
                let run = self.get(&path).await;
                if !["queued", "running"].contains(&run["status"].as_str().unwrap()) {
                    return run;
                }
            }
        };
        timeout(PATIENCE, ending).await.expect("the run does not end")
    }

    /// Begins a run in the background, and returns it as it was accepted.
    pub(super) async fn begin(&self, agent: &str, text: &str) -> Value {
        let body = json!({"agent": agent, "input": text, "mode": "async"});
        let (status, run) = self.call(Method::POST, "/v1/runs", Some(body)).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{run:#}");
        run
    }

    /// Waits until new connections are refused.
    pub(super) async fn until_closed(&self) {
        until("the service still listens", async || {
            TcpStream::connect(&self.address).await.is_err()
        })
        .await;
    }

    /// Sends a signal, such as `TERM`.
    pub(super) fn signal(&self, signal: &str) {
        self.process.signal(signal);
    }

    /// Returns the number of its process.
    pub(super) fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Returns what it has written to standard output so far.
    pub(super) fn banner(&self) -> String {
        self.process.stdout()
    }

    /// Returns what it has logged so far.
    pub(super) fn log(&self) -> String {
        self.process.stderr()
    }

    /// Waits for the end of the process.
    pub(super) async fn end_within(self, limit: Duration) -> Ended {
        self.process.end_within(limit).await
    }

    /// Asks it to stop; it must do so in order.
    pub(super) async fn stop(self) -> Ended {
        self.signal("TERM");
        // Connections that the client would use again are closed with it.
        drop(self.client);
        let ended = self.process.end().await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        ended
    }

    /// Ends it without a warning.
    pub(super) fn kill(self) {
        self.process.kill();
    }
}

impl Events {
    /// Returns the next event; none when the stream has ended or was cut.
    pub(super) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            let chunk = timeout(PATIENCE, self.response.chunk()).await.expect("no event comes");
            self.text.push_str(std::str::from_utf8(&chunk.ok()??).unwrap());
            if let Some(end) = self.text.rfind("\n\n") {
                let rest = self.text.split_off(end + 2);
                let whole = std::mem::replace(&mut self.text, rest);
                self.waiting.extend(sse_data(&whole));
            }
        }
    }

    /// Reads up to the first event of this type, and returns that one.
    pub(super) async fn until(&mut self, event_type: &str) -> Value {
        self.up_to(event_type).await.pop().unwrap()
    }

    /// Reads up to the first event of this type, and returns all of them.
    pub(super) async fn up_to(&mut self, event_type: &str) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            let is_wanted = event["type"] == event_type;
            events.push(event);
            if is_wanted {
                return events;
            }
        }
        panic!("the stream ended without {event_type}: {events:#?}");
    }

    /// Reads to the end.
    pub(super) async fn rest(mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}

/// Sends a request and returns the status and body of the response.
pub(super) async fn read(request: RequestBuilder, body: Option<Value>) -> (StatusCode, Value) {
    let request = match body {
        Some(body) => request
            .header("content-type", "application/json")
            .body(body.to_string()),
        None => request,
    };
    let response = timeout(PATIENCE, request.send()).await.expect("no answer").unwrap();
    let status = response.status();
    let text = response.text().await.unwrap();
    (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
}
