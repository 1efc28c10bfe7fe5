//! The ways of the worst tenant. It repeats a refused request after a short pause, as by a client
//! that heeds no `Retry-After`.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Light, receivers, slow_reader};
use crate::client::{Ask, Client};
use crate::mock::{CALLED_TOOL, CALLING, FAST, LARGE, SLOW};
use crate::report::progress;

/// The bytes of each message of the large session.
const MESSAGE: usize = 9_000_000;
/// The pause after every request.
const PAUSE: Duration = Duration::from_millis(5);
/// The patterns of a schema: as many as one may have.
const PATTERNS: usize = 200;
/// The levels of agents below the one that leads.
const LEVELS: usize = 4;
/// The items of a list that a prompt goes through once for each of them.
const ITEMS: usize = 200;

/// A way to do its worst.
#[derive(Debug, Clone, Copy)]
pub(super) struct Way {
    /// The act of the tenant, to be read after "another one".
    pub(super) name: &'static str,
    /// The requests of others at which it is aimed.
    pub(super) against: Light,
    /// How many do it at once.
    callers: usize,
    kind: Kind,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    LargeSessions,
    UnknownRuns,
    Priorities,
    UnreadEvents,
    Requests,
    Deletions,
    Schemas,
    Prompts,
    LargeDifferences,
    LargeRequests,
    WrongKeys,
    Subagents,
    LargeOutput,
    HangingReceivers,
}

/// Returns all ways.
pub(super) fn all() -> Vec<Way> {
    let way = |name, callers, kind| Way {
        name,
        against: match kind {
            Kind::Priorities => Light::Queued,
            Kind::HangingReceivers => Light::Told,
            _ => Light::Runs,
        },
        callers,
        kind,
    };
    vec![
        way("reads large sessions slowly", 50, Kind::LargeSessions),
        way("waits for runs that there are not", 100, Kind::UnknownRuns),
        way(
            "fills the queue with runs of the highest priority",
            16,
            Kind::Priorities,
        ),
        way("follows runs and does not read", 100, Kind::UnreadEvents),
        way("makes as many requests as it can", 16, Kind::Requests),
        way("removes sessions", 16, Kind::Deletions),
        way("asks for expensive schemas", 16, Kind::Schemas),
        way("stores expensive prompts", 16, Kind::Prompts),
        way("compares large sessions", 16, Kind::LargeDifferences),
        way("continues large sessions", 16, Kind::LargeRequests),
        way("makes requests with keys that there are not", 16, Kind::WrongKeys),
        way("has agents of four levels call 50 others each", 16, Kind::Subagents),
        way("reads one run of 9 MB", 100, Kind::LargeOutput),
        way(
            "has its webhooks sent to a host that never answers",
            16,
            Kind::HangingReceivers,
        ),
    ]
}

/// The outcomes of the requests of the worst tenant.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Done {
    /// How many it made.
    pub(super) requests: usize,
    /// How many of them succeeded.
    pub(super) successes: usize,
}

/// The worst tenant, with what it has prepared.
#[derive(Debug, Clone)]
pub(super) struct Attacker {
    client: Client,
    /// The session that each of the large messages continues; the last one has all.
    line: Vec<Uuid>,
    /// The run with a large output.
    large_run: Uuid,
    hanging: SocketAddr,
}

impl Attacker {
    /// Makes a session of so many large messages.
    pub(super) async fn prepare(client: Client, messages: usize) -> Result<Self> {
        client.put_agent(&[]).await?;
        let text = "0123456789abcdef".repeat(MESSAGE / 16);
        let mut line = Vec::new();
        for number in 0..messages {
            let ask = Ask {
                base: line.last().copied(),
                input: &text,
                ..Ask::of(FAST)
            };
            line.push(client.run(ask).await?.session_id);
            progress(&format!("message {} of {messages} of the large session", number + 1));
        }
        for level in 0..=LEVELS {
            let provider = if level < LEVELS { CALLING } else { FAST };
            let mut agent = json!({"model": format!("{provider}/fast"), "tools": [], "max_depth": LEVELS});
            if level < LEVELS {
                agent["subagents"] = json!([{"agent": level_name(level + 1), "tool": CALLED_TOOL}]);
            }
            let path = format!("/v1/agents/{}", level_name(level));
            client.call(Method::PUT, &path, Some(&agent)).await?;
        }
        let large_run = client.enqueue(Ask::of(LARGE)).await?;
        client.ended(large_run).await?;
        Ok(Self {
            client,
            line,
            large_run,
            hanging: receivers::start_hanging().await?,
        })
    }

    /// Returns the same tenant at another process.
    pub(super) fn at(&self, client: &Client) -> Self {
        Self {
            client: client.with_key(self.client.key()),
            ..self.clone()
        }
    }

    /// Does its worst until it is stopped.
    pub(super) fn begin(&self, way: Way, stop: &CancellationToken, crowd: &Handle) -> JoinSet<Done> {
        let mut tasks = JoinSet::new();
        for _ in 0..way.callers {
            let (attacker, stop) = (self.clone(), stop.clone());
            let acting = async move {
                let mut done = Done::default();
                while !stop.is_cancelled() {
                    done.requests += 1;
                    tokio::select! {
                        // Much of it is refused.
                        ended = attacker.act(way.kind) => done.successes += usize::from(ended.is_ok()),
                        () = stop.cancelled() => (),
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                done
            };
            tasks.spawn_on(acting, crowd);
        }
        tasks
    }

    /// Reads the large session slowly, again and again.
    pub(super) async fn read_slowly(&self, stop: &CancellationToken) {
        while !stop.is_cancelled() {
            tokio::select! {
                _ = self.act(Kind::LargeSessions) => (),
                () = stop.cancelled() => (),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn act(&self, kind: Kind) -> Result<()> {
        let client = &self.client;
        let last = self.line.last().context("a large session")?;
        match kind {
            Kind::LargeSessions => {
                let path = format!("/v1/sessions/{last}");
                slow_reader::read(client.base_url(), client.key(), &path).await
            }
            Kind::UnknownRuns => {
                let path = format!("/v1/runs/{}?wait=30", Uuid::now_v7());
                self.call(Method::GET, &path, None).await
            }
            Kind::Priorities => {
                let mut body = Self::run("async", FAST);
                body["priority"] = json!(100);
                self.call(Method::POST, "/v1/runs", Some(body)).await
            }
            Kind::UnreadEvents => {
                let run_id = client.enqueue(Ask::of(SLOW)).await?;
                let path = format!("/v1/runs/{run_id}/events");
                slow_reader::read(client.base_url(), client.key(), &path).await
            }
            Kind::Requests => self.call(Method::GET, "/v1/runs?limit=200", None).await,
            Kind::Deletions => {
                let messages = json!([{"role": "user", "content": "x".repeat(10_000)}]);
                let body = json!({"message_history_state": {"messages": messages}});
                let made = client.call(Method::POST, "/v1/sessions", Some(&body)).await?;
                let made: Value = serde_json::from_slice(&made)?;
                let path = format!("/v1/sessions/{}", made["session_id"].as_str().unwrap_or_default());
                self.call(Method::DELETE, &path, None).await
            }
            Kind::Schemas => {
                let mut body = Self::run("sync", FAST);
                body["response_format"] = json!({"type": "json_schema", "name": "answer", "schema": patterns()});
                self.call(Method::POST, "/v1/runs", Some(body)).await
            }
            Kind::Prompts => {
                let list = "{% for a in variables.list %}{% for b in variables.list %}{% if a == b %}x{% endif %}{% endfor %}{% endfor %}";
                let body = json!({"model": "mock/fast", "system_prompt": list});
                let name = format!("/v1/agents/{}", Uuid::now_v7());
                self.call(Method::PUT, &name, Some(body)).await?;
                let list: Vec<usize> = (0..ITEMS).collect();
                let agent = name.trim_start_matches("/v1/agents/");
                let run = json!({"agent": agent, "input": "x", "variables": {"list": list}});
                self.call(Method::POST, "/v1/runs", Some(run)).await
            }
            Kind::LargeDifferences => {
                let first = self.line.first().context("a large session")?;
                let path = format!("/v1/sessions/{last}/diff/{first}");
                self.call(Method::GET, &path, None).await
            }
            Kind::LargeRequests => {
                let mut body = Self::run("sync", FAST);
                body["base_session_id"] = json!(last);
                self.call(Method::POST, "/v1/runs", Some(body)).await
            }
            Kind::WrongKeys => {
                let key = format!("ark_{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
                client.with_key(&key).call(Method::GET, "/v1/runs", None).await?;
                Ok(())
            }
            Kind::Subagents => {
                let run = json!({"agent": level_name(0), "input": "work"});
                self.call(Method::POST, "/v1/runs", Some(run)).await
            }
            Kind::LargeOutput => {
                let path = format!("/v1/runs/{}", self.large_run);
                self.call(Method::GET, &path, None).await
            }
            Kind::HangingReceivers => {
                let mut body = Self::run("async", FAST);
                // Distinct addresses would count as distinct receivers.
                body["webhook"] = json!({"url": format!("http://{}/{}", self.hanging, Uuid::now_v7())});
                self.call(Method::POST, "/v1/runs", Some(body)).await
            }
        }
    }

    fn run(mode: &str, provider: &'static str) -> Value {
        Ask::of(provider).body(mode)
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<()> {
        self.client.call(method, path, body.as_ref()).await?;
        Ok(())
    }
}

/// Names the agent of a level; the first leads.
fn level_name(level: usize) -> String {
    format!("level{level}")
}

/// A schema with as many patterns as one may have.
fn patterns() -> Value {
    let pattern = |at: usize| json!({"pattern": format!("^{at}[a-z]{{1,20}}$")});
    let any: Vec<Value> = (0..PATTERNS).map(pattern).collect();
    json!({"type": "object", "properties": {"a": {"anyOf": any}}})
}
