//! A caller of the service: starts runs and reads their responses or events. Every response is
//! checked; a run that fails is an error.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use bytes::Bytes;
use chrono::{DateTime, Utc};
use futures_util::{Stream, StreamExt as _};
use net::http_client::client_builder;
use reqwest::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

/// The agent that all runs use.
const AGENT: &str = "load";
const INPUT: &str = "What is the weather like?";

/// Calls one service. Cloning shares the connections.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    base_url: String,
    /// Empty where none is needed.
    key: String,
}

/// The needed part of the result of a run.
#[derive(Debug, Deserialize)]
pub(crate) struct RunAnswer {
    /// The session that was published.
    pub(crate) session_id: uuid::Uuid,
    pub(crate) step_count: u64,
    created_at: DateTime<Utc>,
    started_at: Option<DateTime<Utc>>,
    status: String,
    error: Value,
}

/// A run whose events are being read.
pub(crate) struct EventReader<S> {
    bytes: S,
    buffer: Vec<u8>,
}

/// The request for a run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask<'a> {
    /// The session to continue.
    pub(crate) base: Option<uuid::Uuid>,
    /// The words of the user.
    pub(crate) input: &'a str,
    /// The provider of the model.
    pub(crate) provider: &'a str,
    /// Whether each step is persisted.
    pub(crate) durable: bool,
}

impl Client {
    /// Makes a caller of the service at an address such as `http://127.0.0.1:8080`.
    pub(crate) fn new(http: reqwest::Client, base_url: &str) -> Self {
        Self {
            http,
            base_url: base_url.to_owned(),
            key: String::new(),
        }
    }

    /// Returns the same caller with connections of its own.
    pub(crate) fn apart(&self) -> Result<Self> {
        let http = client_builder()?.build()?;
        Ok(Self { http, ..self.clone() })
    }

    /// Returns the same caller with an API key.
    pub(crate) fn with_key(&self, key: &str) -> Self {
        Self {
            key: key.to_owned(),
            ..self.clone()
        }
    }

    /// Returns the API key.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Returns the address, such as `http://127.0.0.1:8080`.
    pub(crate) fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Returns whether the service is ready.
    pub(crate) async fn is_ready(&self) -> bool {
        let answer = self.http.get(format!("{}/readyz", self.base_url)).send().await;
        answer.is_ok_and(|answer| answer.status() == StatusCode::OK)
    }

    /// Defines the agent that the runs use, with these built-in tools.
    pub(crate) async fn put_agent(&self, tools: &[&str]) -> Result<()> {
        let definition = json!({"system_prompt": "You answer in a few words.", "model": "mock/fast", "tools": tools});
        self.call(Method::PUT, &format!("/v1/agents/{AGENT}"), Some(&definition))
            .await?;
        Ok(())
    }

    /// Defines the agent with a prompt that has to be rendered for each request.
    pub(crate) async fn put_templated_agent(&self) -> Result<()> {
        let prompt = "You answer {{ variables.how | default('in a few words') }}.";
        let definition = json!({"system_prompt": prompt, "model": "mock/fast", "tools": []});
        self.call(Method::PUT, &format!("/v1/agents/{AGENT}"), Some(&definition))
            .await?;
        Ok(())
    }

    /// Runs to the end and returns the result.
    pub(crate) async fn run(&self, ask: Ask<'_>) -> Result<RunAnswer> {
        let answer = self.call(Method::POST, "/v1/runs", Some(&ask.body("sync"))).await?;
        let answer: RunAnswer = serde_json::from_slice(&answer).context("the result of a run")?;
        answer.completed()
    }

    /// Asks the common question as a client of OpenAI does, in a new session.
    pub(crate) async fn respond(&self) -> Result<()> {
        #[derive(Deserialize)]
        struct Responded {
            status: String,
        }
        let body = json!({"model": AGENT, "input": INPUT});
        let answer = self.call(Method::POST, "/v1/responses", Some(&body)).await?;
        let Responded { status } = serde_json::from_slice(&answer).context("a response")?;
        ensure!(status == "completed", "a response ended as {status}");
        Ok(())
    }

    /// Returns the result of a run that has completed.
    pub(crate) async fn result(&self, run_id: uuid::Uuid) -> Result<RunAnswer> {
        let answer = self.call(Method::GET, &format!("/v1/runs/{run_id}"), None).await?;
        let answer: RunAnswer = serde_json::from_slice(&answer).context("a run")?;
        answer.completed()
    }

    /// Starts an asynchronous run, and returns its id.
    pub(crate) async fn enqueue(&self, ask: Ask<'_>) -> Result<uuid::Uuid> {
        #[derive(Deserialize)]
        struct Accepted {
            run_id: uuid::Uuid,
        }
        let answer = self.call(Method::POST, "/v1/runs", Some(&ask.body("async"))).await?;
        let accepted: Accepted = serde_json::from_slice(&answer).context("the answer to an asynchronous run")?;
        Ok(accepted.run_id)
    }

    /// Waits for the end of a run, which must have completed.
    pub(crate) async fn ended(&self, run_id: uuid::Uuid) -> Result<()> {
        loop {
            let answer = self
                .call(Method::GET, &format!("/v1/runs/{run_id}?wait=30"), None)
                .await?;
            let run: RunAnswer = serde_json::from_slice(&answer).context("a run")?;
            match run.status.as_str() {
                "queued" | "running" => (),
                "completed" => return Ok(()),
                ended => bail!("a run ended as {ended}: {}", run.error),
            }
        }
    }

    /// Reads the events of a run from the first on.
    pub(crate) async fn events(
        &self,
        run_id: uuid::Uuid,
    ) -> Result<impl Stream<Item = reqwest::Result<Bytes>> + Unpin> {
        let path = format!("/v1/runs/{run_id}/events");
        let response = self.request(Method::GET, &path, None).send().await?;
        Ok(response
            .error_for_status()
            .context("read the events of a run")?
            .bytes_stream())
    }

    /// Starts a run whose events are read one by one.
    pub(crate) async fn stream(
        &self,
        ask: Ask<'_>,
    ) -> Result<EventReader<impl Stream<Item = reqwest::Result<Bytes>> + use<>>> {
        let response = self
            .request(Method::POST, "/v1/runs", Some(&ask.body("stream")))
            .send()
            .await?;
        let response = response.error_for_status().context("start a streaming run")?;
        Ok(EventReader {
            bytes: response.bytes_stream(),
            buffer: Vec::new(),
        })
    }

    /// Reads one page of the messages of a session; returns how long it took.
    pub(crate) async fn first_message(&self, session_id: uuid::Uuid) -> Result<Duration> {
        let began = Instant::now();
        let path = format!("/v1/sessions/{session_id}/messages?limit=1");
        let page = self.call(Method::GET, &path, None).await?;
        let took = began.elapsed();
        ensure!(page.len() > 2, "an empty page");
        Ok(took)
    }

    /// Makes a request that must succeed, and returns the body of the response.
    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Bytes> {
        let response = self
            .request(method, path, body)
            .send()
            .await
            .with_context(|| path.to_owned())?;
        let status = response.status();
        let body = response.bytes().await?;
        if !status.is_success() {
            bail!("{path} answered {status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(body)
    }

    fn request(&self, method: Method, path: &str, body: Option<&Value>) -> reqwest::RequestBuilder {
        let mut request = self.http.request(method, format!("{}{path}", self.base_url));
        if !self.key.is_empty() {
            request = request.bearer_auth(&self.key);
        }
        match body {
            Some(body) => request
                .header("content-type", "application/json")
                .body(body.to_string()),
            None => request,
        }
    }
}

impl RunAnswer {
    /// Returns how long the run waited until it was begun.
    pub(crate) fn waited(&self) -> Result<Duration> {
        let started_at = self.started_at.context("a run that was never started")?;
        // The clocks of two processes are read: the later time may be the smaller one by a little.
        Ok((started_at - self.created_at).to_std().unwrap_or_default())
    }

    fn completed(self) -> Result<Self> {
        let Self { status, error, .. } = &self;
        ensure!(status == "completed", "a run ended as {status}: {error}");
        Ok(self)
    }
}

impl<'a> Ask<'a> {
    /// Asks a provider a common question, in a new session.
    pub(crate) const fn of(provider: &'a str) -> Self {
        Self {
            base: None,
            input: INPUT,
            provider,
            durable: false,
        }
    }

    /// Returns the body of the request for it.
    pub(crate) fn body(&self, mode: &str) -> Value {
        let mut body = json!({
            "agent": AGENT,
            "input": self.input,
            "mode": mode,
            "model": format!("{}/fast", self.provider),
        });
        if let Some(base) = self.base {
            body["base_session_id"] = json!(base);
        }
        if self.durable {
            body["durability"] = json!("step");
        }
        body
    }
}

impl<S: Stream<Item = reqwest::Result<Bytes>> + Unpin> EventReader<S> {
    /// Reads until an event of this name has begun.
    pub(crate) async fn until(&mut self, name: &str) -> Result<()> {
        let line = format!("event: {name}\n");
        loop {
            if let Some(at) = find(&self.buffer, line.as_bytes()) {
                self.buffer.drain(..at + line.len());
                return Ok(());
            }
            let Some(chunk) = self.bytes.next().await else {
                bail!(
                    "the stream ended before {name}: {}",
                    String::from_utf8_lossy(&self.buffer)
                );
            };
            self.buffer.extend_from_slice(&chunk.context("read events")?);
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
