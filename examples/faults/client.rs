//! A caller of the replicas that does not give up: it tries one after another until it gets a
//! definite response.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use net::http_client::client_builder;
use reqwest::{Method, Response, StatusCode};
use serde_json::Value;

use crate::random::Random;

/// How long the client waits for a response.
const ANSWER_LIMIT: Duration = Duration::from_secs(4);
/// How long the client waits for the response of a run that it holds on to.
const RESULT_LIMIT: Duration = Duration::from_secs(15);
const SHORTEST_PAUSE: Duration = Duration::from_millis(30);
const LONGEST_PAUSE: Duration = Duration::from_millis(300);

/// Calls the replicas. Cloning shares the connections.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
    addresses: Arc<[String]>,
    patience: Arc<Patience>,
    begun: Instant,
}

/// How long callers continue after the mishaps.
#[derive(Debug)]
pub(crate) struct Patience {
    limit: Duration,
    begins: OnceLock<Instant>,
}

impl Patience {
    /// So long from when it begins, or from when a caller begins where that is later.
    pub(crate) fn new(limit: Duration) -> Self {
        Self {
            limit,
            begins: OnceLock::new(),
        }
    }

    /// Begins: the last mishap is over.
    pub(crate) fn begin(&self) {
        // It has begun already when this fails.
        let _ = self.begins.set(Instant::now());
    }
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Ask<'a> {
    /// The method.
    pub(crate) method: Method,
    /// The path.
    pub(crate) path: &'a str,
    /// The body.
    pub(crate) body: Option<&'a Value>,
    /// The key by which the request is known when it is repeated.
    pub(crate) key: Option<&'a str>,
}

/// A definite response.
#[derive(Debug)]
pub(crate) struct Answer {
    /// Its status.
    pub(crate) status: StatusCode,
    /// Its body.
    pub(crate) body: Value,
}

impl<'a> Ask<'a> {
    /// Asks for something that is there.
    pub(crate) fn get(path: &'a str) -> Self {
        Self {
            method: Method::GET,
            path,
            body: None,
            key: None,
        }
    }

    /// Asks for something to be done.
    pub(crate) fn post(path: &'a str, body: Option<&'a Value>) -> Self {
        Self {
            method: Method::POST,
            path,
            body,
            key: None,
        }
    }
}

impl Client {
    /// Makes a caller of the replicas at these addresses, such as `http://127.0.0.1:8080`.
    pub(crate) fn new(addresses: Vec<String>, patience: Arc<Patience>) -> Result<Self> {
        let http = client_builder()?.connect_timeout(Duration::from_secs(1)).build()?;
        Ok(Self {
            http,
            addresses: addresses.into(),
            patience,
            begun: Instant::now(),
        })
    }

    /// Makes a caller whose patience begins anew.
    pub(crate) fn anew(&self) -> Self {
        Self {
            begun: Instant::now(),
            ..self.clone()
        }
    }

    /// Returns whether a replica is ready.
    pub(crate) async fn is_ready(&self, address: &str) -> bool {
        let answer = self
            .http
            .get(format!("{address}/readyz"))
            .timeout(ANSWER_LIMIT)
            .send()
            .await;
        answer.is_ok_and(|answer| answer.status() == StatusCode::OK)
    }

    /// Repeats a request until there is a definite response.
    pub(crate) async fn answer(&self, random: &mut Random, ask: Ask<'_>) -> Result<Answer> {
        let is_result = ask.body.is_some_and(|body| body["mode"] == "sync");
        let limit = if is_result { RESULT_LIMIT } else { ANSWER_LIMIT };
        let mut last = "nobody was asked".to_owned();
        while !self.is_over() {
            let tried = tokio::time::timeout(limit, self.try_once(random, &ask)).await;
            match tried {
                Ok(Ok(answer)) if !is_excuse(answer.status) => return Ok(answer),
                Ok(Ok(answer)) => last = format!("{}: {}", answer.status, answer.body["code"]),
                Ok(Err(error)) => last = format!("{error:#}"),
                Err(_) => last = format!("no answer within {limit:?}"),
            }
            self.pause(random).await;
        }
        bail!("{} {} has no answer; the last word was {last}", ask.method, ask.path)
    }

    /// Asks for something that must be there, and returns it.
    pub(crate) async fn get(&self, random: &mut Random, path: &str) -> Result<Value> {
        let answer = self.answer(random, Ask::get(path)).await?;
        if answer.status != StatusCode::OK {
            bail!("{path} answered {}: {}", answer.status, answer.body);
        }
        Ok(answer.body)
    }

    /// Reads all pages of a list.
    pub(crate) async fn list(&self, random: &mut Random, path: &str) -> Result<Vec<Value>> {
        let mut items = Vec::new();
        let mut cursor = String::new();
        loop {
            let mut page = self.get(random, &format!("{path}?limit=200{cursor}")).await?;
            let data = page["data"].as_array_mut().context("a list without data")?;
            items.append(data);
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(items),
            }
        }
    }

    /// Opens the events of a run that follow on a number, at any replica. `None` means to try
    /// again.
    pub(crate) async fn events(&self, random: &mut Random, path: &str, after: u64) -> Result<Option<Response>> {
        let url = self.url(random, path);
        let mut request = self.http.get(url).header("accept", "text/event-stream");
        if after > 0 {
            request = request.header("last-event-id", after.to_string());
        }
        match tokio::time::timeout(ANSWER_LIMIT, request.send()).await {
            Ok(Ok(response)) if response.status() == StatusCode::OK => Ok(Some(response)),
            Ok(Ok(response)) if !is_excuse(response.status()) => {
                bail!("{path} answered {}: {}", response.status(), response.text().await?)
            }
            _ => Ok(None),
        }
    }

    /// Waits a little before the next attempt.
    pub(crate) async fn pause(&self, random: &mut Random) {
        tokio::time::sleep(random.between(SHORTEST_PAUSE, LONGEST_PAUSE)).await;
    }

    /// Returns whether it has given up.
    pub(crate) fn is_over(&self) -> bool {
        let begins = self.patience.begins.get();
        begins.is_some_and(|begins| begins.max(&self.begun).elapsed() > self.patience.limit)
    }

    async fn try_once(&self, random: &mut Random, ask: &Ask<'_>) -> Result<Answer> {
        let mut request = self.http.request(ask.method.clone(), self.url(random, ask.path));
        if let Some(key) = ask.key {
            request = request.header("idempotency-key", key);
        }
        if let Some(body) = ask.body {
            request = request
                .header("content-type", "application/json")
                .body(body.to_string());
        }
        let response = request.send().await?;
        let status = response.status();
        let body = response.bytes().await?;
        let body = if body.is_empty() {
            Value::Null
        } else {
            serde_json::from_slice(&body).with_context(|| format!("{} answered no JSON", ask.path))?
        };
        Ok(Answer { status, body })
    }

    fn url(&self, random: &mut Random, path: &str) -> String {
        format!("{}{path}", self.addresses[random.index(self.addresses.len())])
    }
}

/// Returns whether a response asks to try again.
fn is_excuse(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::REQUEST_TIMEOUT
}
