//! The primary of PostgreSQL dies under load, and its standby becomes the primary. Callers continue
//! as a gateway does: they send each request again until it has a definite response.
//!
//! In front of the servers is a forwarder, which stands for an address that moves. It leads to the
//! standby before that is promoted, so the services first meet a server that takes no writes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::proxy::Proxy;
use test_support::wait::until;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::binary::Home;
use super::service::{Service, read};
use crate::support::forwarder::{Direction, Forwarder};
use crate::support::mock_model::{MockModel, texts};
use crate::support::postgres_pair::{PostgresPair, PostgresServer, Replication, url_at};
use crate::support::test_app::{run_path, session_path};
use crate::support::text::assert_lacks;

/// How long a test may take.
const LIMIT: Duration = Duration::from_mins(3);
/// The even callers start light runs, the odd ones queued runs.
const CALLERS: usize = 6;
/// How many runs complete before something happens, and how many afterwards.
const TURNS: usize = 30;
/// The most runs of a conversation.
const LENGTH: usize = 8;
/// The pause of a caller before it sends a request again.
const PAUSE: Duration = Duration::from_millis(20);
/// The commits that wait for the standby.
const WAITING: &str = "select count(*) from pg_stat_activity where wait_event = 'SyncRep'";
/// The connections that receive wake-ups. Idle ones check that the server is still there.
const LISTENING: &str = "select count(*) from pg_stat_activity where query ilike 'listen%' or query = 'select 1'";
/// No request holds it, so the proxy cuts no connection.
const NO_MARK: &str = "held by no request";

/// A run that a caller knows to be completed.
#[derive(Debug)]
struct Turn {
    /// The words of its user, and its idempotency key if it is a queued one.
    text: String,
    /// The session that it continues.
    base: Option<String>,
    /// The number of turns before it in its conversation.
    depth: usize,
    /// The run, as the caller has received it.
    run: Value,
    answered: Instant,
}

/// Two services, and callers that talk to both.
struct Load {
    shared: Arc<Shared>,
    callers: JoinSet<Vec<Turn>>,
}

struct Shared {
    services: Vec<Service>,
    acknowledged: AtomicUsize,
    /// How many light runs failed since they could not load their base.
    failed: AtomicUsize,
    is_over: AtomicBool,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_loses_no_acknowledged_session() {
    // The standby lacks the commits that wait for it at the end.
    limited(fail_over(Direction::ToClient, false)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commits_whose_response_was_lost_in_a_failover_are_stored_once() {
    // The standby has the commits that wait for it at the end.
    limited(fail_over(Direction::ToServer, false)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failover_succeeds_although_no_connection_is_closed() {
    limited(fail_over(Direction::ToClient, true)).await;
}

/// Shows that these tests find what a failover loses.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_asynchronous_standby_loses_acknowledged_sessions() {
    limited(lose_sessions()).await;
}

/// Bounds a test. Its future is large, so it is boxed before it is awaited.
fn limited(test: impl Future<Output = ()>) -> impl Future<Output = ()> {
    let limited = timeout(LIMIT, Box::pin(test));
    async { limited.await.expect("the failover takes too long") }
}

/// Kills the primary after the servers have lost contact in one direction, while commits wait for
/// the standby. If it is silent, the connections of the services stay open.
async fn fail_over(lost: Direction, is_silent: bool) {
    let Some(mut pair) = PostgresPair::start(Replication::Synchronous).await else {
        return;
    };
    let door = Forwarder::start(pair.primary.port()).await;
    let proxy = Proxy::start(door.address().to_string(), NO_MARK).await;
    let mock = MockModel::echoing().await;
    let home = home(&proxy.url(&url_at(door.address().port())), &mock);
    let mut load = Load::start(&home).await;
    load.until_acknowledged(TURNS).await;

    pair.lose(lost);
    until("no commit waits for the standby", async || {
        pair.primary.number(WAITING).await >= 2
    })
    .await;
    if is_silent {
        proxy.silence();
    }
    let killed = Instant::now();
    pair.primary.kill();
    door.lead_to(pair.standby.port());
    if !is_silent {
        // A check on a dead connection waits for half a minute.
        load.until_read_only().await;
    }
    let known = load.acknowledged();
    let ordered = Instant::now();
    pair.promote();
    load.until_acknowledged(known + TURNS).await;
    let turns = load.finish().await;
    let failed = load.shared.failed.load(Ordering::SeqCst);
    until("no process listens for wake-ups", async || {
        pair.standby.number(LISTENING).await >= 1
    })
    .await;
    load.stop().await;

    let first = turns.iter().map(|turn| turn.answered).filter(|at| *at > ordered).min();
    let first = first.unwrap();
    eprintln!(
        "failover (lost {lost:?}, silent {is_silent}): a run completes {} ms after the kill, {} ms after the \
         promotion was ordered; {} sessions, {failed} failed light runs",
        (first - killed).as_millis(),
        (first - ordered).as_millis(),
        turns.len()
    );
    let faults = faults(&home, &pair.standby, &turns).await;
    assert!(faults.is_empty(), "{faults:#?}");
}

async fn lose_sessions() {
    let Some(mut pair) = PostgresPair::start(Replication::Asynchronous).await else {
        return;
    };
    let door = Forwarder::start(pair.primary.port()).await;
    let mock = MockModel::echoing().await;
    let home = home(&url_at(door.address().port()), &mock);
    let mut load = Load::start(&home).await;
    load.until_acknowledged(TURNS).await;
    pair.lose(Direction::ToClient);
    let known = load.acknowledged();
    load.until_acknowledged(known + TURNS).await;
    let turns = load.finish().await;
    load.stop().await;
    pair.primary.kill();
    door.lead_to(pair.standby.port());
    pair.promote();
    let faults = faults(&home, &pair.standby, &turns).await;
    let lost = faults.iter().filter(|fault| fault.contains("its session is lost"));
    assert!(lost.count() >= TURNS - CALLERS, "{faults:#?}");
}

/// Makes a home whose processes reach the database at this URL.
fn home(url: &str, mock: &MockModel) -> Home {
    Home::new(url)
        .with_mock(mock)
        .variable("AGENT_RUNTIME__STORE__ACQUIRE_TIMEOUT", "5s")
        // The promotion may take as long as a light run waits with its commit by default.
        .variable("AGENT_RUNTIME__RUNS__COMMIT_PATIENCE", "2m")
        .variable("AGENT_RUNTIME__QUEUE__MAX_ATTEMPTS", "100")
        // So long waits a run whose lease was granted in a lost response.
        .variable("AGENT_RUNTIME__QUEUE__LEASE", "6s")
}

impl Load {
    /// Starts a process of the role `all` and one of the role `api`, and callers.
    async fn start(home: &Home) -> Self {
        let mut services = Vec::new();
        for role in ["all", "api"] {
            services.push(Service::start_with(home, &["--role", role]).await);
        }
        let shared = Arc::new(Shared {
            services,
            acknowledged: AtomicUsize::new(0),
            failed: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        });
        let mut callers = JoinSet::new();
        for caller in 0..CALLERS {
            let shared = Arc::clone(&shared);
            callers.spawn(async move { shared.converse(caller).await });
        }
        Self { shared, callers }
    }

    fn acknowledged(&self) -> usize {
        self.shared.acknowledged.load(Ordering::SeqCst)
    }

    /// Waits until so many runs are known to be completed.
    async fn until_acknowledged(&self, count: usize) {
        while self.acknowledged() < count {
            sleep(PAUSE).await;
        }
    }

    /// Waits until each service has noticed that its database takes no writes.
    async fn until_read_only(&self) {
        for service in &self.shared.services {
            until("the database takes writes", async || {
                let (status, problem) = service.call(Method::GET, "/readyz", None).await;
                let detail = problem["detail"].as_str().unwrap_or_default();
                status == StatusCode::SERVICE_UNAVAILABLE && detail.contains("read-only")
            })
            .await;
        }
    }

    /// Lets all callers complete their runs.
    async fn finish(&mut self) -> Vec<Turn> {
        self.shared.is_over.store(true, Ordering::SeqCst);
        let turns = std::mem::take(&mut self.callers).join_all().await;
        turns.into_iter().flatten().collect()
    }

    /// Stops the services.
    async fn stop(self) {
        let shared = Arc::into_inner(self.shared).unwrap();
        for service in shared.services {
            let log = service.stop().await.stderr;
            assert_lacks!(log, "panicked", "internal_error");
        }
    }
}

impl Shared {
    /// Has conversations, one run after another.
    async fn converse(&self, caller: usize) -> Vec<Turn> {
        let mut turns: Vec<Turn> = Vec::new();
        while !self.is_over.load(Ordering::SeqCst) {
            let number = turns.len();
            let (depth, text) = (number % LENGTH, format!("turn-{caller}-{number}"));
            let last = turns.last().filter(|_| depth > 0);
            let base = last.and_then(|turn| turn.run["session_id"].as_str());
            let base = base.map(str::to_owned);
            let mut body = json!({"agent": "echo", "input": text});
            if let Some(base) = &base {
                body["base_session_id"] = json!(base);
            }
            let run = if caller.is_multiple_of(2) {
                self.complete_light(caller + number, &body).await
            } else {
                body["mode"] = json!("async");
                let durabilities = ["session", "step"];
                body["durability"] = json!(durabilities[number % 2]);
                self.complete_queued(caller + number, &body, &text).await
            };
            self.acknowledged.fetch_add(1, Ordering::SeqCst);
            turns.push(Turn {
                text,
                base,
                depth,
                run,
                answered: Instant::now(),
            });
        }
        turns
    }

    /// Sends a request without a key until its run has completed. Each attempt starts another run.
    async fn complete_light(&self, first: usize, body: &Value) -> Value {
        let mut attempt = first;
        loop {
            let service = self.service(attempt);
            let (status, run) = service.call(Method::POST, "/v1/runs", Some(body.clone())).await;
            if status == StatusCode::OK && run["status"] == "completed" {
                return run;
            }
            let problem = if status == StatusCode::OK {
                self.failed.fetch_add(1, Ordering::SeqCst);
                &run["error"]
            } else {
                &run
            };
            assert_eq!(problem["code"], "store_unavailable", "{run:#}");
            sleep(PAUSE).await;
            attempt += 1;
        }
    }

    /// Sends a request under a key until its run is accepted, and reads the run until it has ended.
    async fn complete_queued(&self, first: usize, body: &Value, key: &str) -> Value {
        let (mut run, mut attempt) = (Value::Null, first);
        loop {
            let service = self.service(attempt);
            let (status, shown) = if run.is_null() {
                let request = service.request(Method::POST, "/v1/runs");
                read(request.header("idempotency-key", key), Some(body.clone())).await
            } else {
                service.call(Method::GET, &run_path(&run, ""), None).await
            };
            if status.is_success() {
                run = shown;
                if run["completed_at"].is_string() {
                    assert_eq!(run["status"], "completed", "{run:#}");
                    return run;
                }
            } else {
                // It must not be that an accepted run does not exist.
                assert_eq!(shown["code"], "store_unavailable", "{run:#} {shown:#}");
            }
            sleep(PAUSE).await;
            attempt += 1;
        }
    }

    fn service(&self, number: usize) -> &Service {
        &self.services[number % self.services.len()]
    }
}

/// Compares what callers know with what a new process reads, which has no session in memory.
async fn faults(home: &Home, database: &PostgresServer, turns: &[Turn]) -> Vec<String> {
    let service = Service::start_with(home, &["--role", "api"]).await;
    let mut faults = Vec::new();
    for turn in turns {
        if let Err(fault) = turn.check(&service).await {
            faults.push(format!("{}: {fault}", turn.text));
        }
    }
    service.stop().await;
    // So no key has two sessions, and no run that ended otherwise has one.
    for (rows, expected) in [
        ("sessions", turns.len()),
        ("runs where status = 'completed'", turns.len()),
        ("runs where status not in ('completed', 'failed')", 0),
        ("run_queue", 0),
    ] {
        let count = database.number(&format!("select count(*) from {rows}")).await;
        if usize::try_from(count).unwrap() != expected {
            faults.push(format!("{rows}: {count} instead of {expected}"));
        }
    }
    faults
}

impl Turn {
    /// Checks that its session is stored as its run has made it.
    async fn check(&self, service: &Service) -> Result<(), String> {
        let path = session_path(&self.run, "");
        let (status, session) = service.call(Method::GET, &path, None).await;
        if status != StatusCode::OK {
            return Err(format!("its session is lost: {}", session["code"]));
        }
        let report = service.get(&format!("{path}/verify")).await;
        let record = service.get(&run_path(&self.run, "")).await;
        let messages = texts(&session["message_history_state"]["messages"]);
        let added = [self.text.clone(), format!("echo: {}", self.text)];
        let parts = [
            ("parent", session["parent_session_id"] == json!(self.base)),
            ("run", session["run_id"] == self.run["run_id"]),
            ("number of messages", messages.len() == 2 * (self.depth + 1)),
            ("messages", messages.ends_with(&added)),
            ("hashes", report["valid"] == true),
            ("record", record == self.run),
        ];
        let wrong: Vec<&str> = parts
            .iter()
            .filter(|(_, is_right)| !is_right)
            .map(|(part, _)| *part)
            .collect();
        if wrong.is_empty() {
            return Ok(());
        }
        Err(format!(
            "wrong {wrong:?}: {session:#} {report:#} {record:#} instead of {:#}",
            self.run
        ))
    }
}
