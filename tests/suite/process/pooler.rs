//! Processes of every role behind PgBouncer in transaction mode, whose pool is smaller than their
//! connections.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::ports::RefusingAddress;
use test_support::redis_server::PrivateServer;
use test_support::wait::until;

use super::binary::Home;
use super::service::Service;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::pgbouncer::PgBouncer;

/// The connections of the pool; each of the four processes has up to eight.
const POOL: usize = 5;
/// The callers at the same time, and the runs that each of them starts, one after another.
const CALLERS: usize = 16;
const RUNS: usize = 15;

/// The statement that an operator executes once. New connections then have the settings.
const ALTER: &str = "do $$ begin
    execute format('alter database %I set idle_in_transaction_session_timeout = ''10s''', current_database());
    execute format('alter database %I set jit = off', current_database());
    execute format('alter database %I set enable_seqscan = off', current_database());
end $$";

/// A database and a pooler before it.
struct Pooled {
    database: TestDatabase,
    pooler: PgBouncer,
}

impl Pooled {
    /// Starts the pooler with so many connections, or prints why the test is skipped.
    async fn start(pool: usize) -> Option<Self> {
        let database = TestDatabase::postgres().await?;
        let pooler = PgBouncer::start(database.url(), pool)?;
        Some(Self { database, pooler })
    }

    /// Returns a home whose processes reach the database through the pooler, and listen directly.
    fn home(&self) -> Home {
        Home::new(&self.pooler.url()).variable("AGENT_RUNTIME__STORE__LISTEN_URL", self.database.url())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_role_works_behind_a_pooler_in_transaction_mode() {
    let Some(pooled) = Pooled::start(POOL).await else {
        return;
    };
    let Some(redis) = PrivateServer::start() else { return };
    pooled.database.execute(ALTER).await.unwrap();
    let mock = MockModel::start(|request| match last_user_text(request).as_str() {
        "endless" => Reply::Slow(vec!["on ".to_owned(); 10_000], Duration::from_millis(20)),
        text => Reply::text(&format!("echo: {text}")),
    })
    .await;
    // Runs begin by wake-ups: a worker polls once a minute.
    let home = pooled
        .home()
        .with_mock(&mock)
        .variable("AGENT_RUNTIME__BOARD__URL", &redis.url())
        .variable("AGENT_RUNTIME__QUEUE__POLL_INTERVAL", "1m");
    let roles = ["api", "worker", "worker", "all"].map(|role| ["--role", role]);
    let services = join_all(roles.iter().map(|role| Service::start_with(&home, role))).await;
    let doors = [&services[0], &services[3]];

    let callers = (0..CALLERS).map(|caller| work(doors[caller % 2], caller));
    join_all(callers).await;
    let runs = i64::try_from(CALLERS * RUNS).unwrap();
    for (what, expected) in [
        ("runs where status = 'completed'", runs),
        ("runs where status = 'stopped'", i64::try_from(CALLERS).unwrap()),
        ("run_queue", 0),
    ] {
        let count = format!("select count(*) from {what}");
        assert_eq!(pooled.database.number(&count).await, expected, "{what}");
    }
    let sessions = "select count(*) from pg_stat_activity where datname = current_database() and backend_type = \
                    'client backend' and pid <> pg_backend_pid() and query !~ 'LISTEN'";
    let sessions = pooled.database.number(sessions).await;
    assert!(sessions <= i64::try_from(POOL + 3).unwrap(), "{sessions}");
    for service in services {
        let log = service.stop().await.stderr;
        let faults = log
            .lines()
            .filter(|line| line.contains(" WARN ") || line.contains(" ERROR "));
        let faults: Vec<&str> = faults.filter(|line| !line.contains("http.mcp.state_key_env")).collect();
        assert!(faults.is_empty(), "{faults:#?}");
    }
}

/// Makes runs of each kind, none of which may be refused, and stops one.
async fn work(door: &Service, caller: usize) {
    let mut base: Option<String> = None;
    for number in 0..RUNS {
        let text = format!("{caller}: {number}");
        let ended = match number % 3 {
            0 => door.run("echo", base.as_deref(), &text).await,
            1 => {
                let run = door.begin("echo", &text).await;
                let events = door.follow(&run, 0).await.rest().await;
                assert_eq!(events.last().unwrap()["type"], "run.completed");
                door.ended(&run).await
            }
            _ => durable(door, &text).await,
        };
        let output = json!(format!("echo: {text}"));
        assert_members!(ended, {"status": "completed", "output_text": output});
        let session_id = ended["session_id"].as_str().unwrap();
        // What a result names can be read at once.
        door.get(&format!("/v1/sessions/{session_id}/messages")).await;
        base = Some(session_id.to_owned());
    }
    let run = door.begin("echo", "endless").await;
    door.follow(&run, 0).await.until("message.delta").await;
    door.control(&run, "stop").await;
    assert_eq!(door.ended(&run).await["status"], "stopped");
}

/// Makes a run whose steps are persisted.
async fn durable(door: &Service, text: &str) -> Value {
    let body = json!({"agent": "echo", "input": text, "durability": "step"});
    door.post("/v1/runs", body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_of_a_pooler_must_have_the_settings_of_the_service() {
    let Some(pooled) = Pooled::start(POOL).await else {
        return;
    };
    let weak = "do $$ begin execute format('alter database %I set synchronous_commit = off', current_database()); \
                end $$";
    pooled.database.execute(weak).await.unwrap();
    let said = pooled.home().fail(&["serve"]).await;
    for part in [
        "the sessions behind store.url lack settings",
        "synchronous_commit = 'on'",
        "idle_in_transaction_session_timeout = '10s'",
        "jit = 'off'",
        "enable_seqscan = 'off'",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooler_that_shares_sessions_is_noticed() {
    let Some(pooled) = Pooled::start(1).await else { return };
    let home = Home::new(&pooled.pooler.url());
    let first = Service::start_with(&home, &["--role", "api"]).await;
    // All of its connections have the one session that the first process has marked.
    let second = Service::start_with(&home, &["--role", "api"]).await;
    let log = second.log();
    assert!(log.contains("a pooler shares the connections of store.url"), "{log}");
    second.stop().await;
    first.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listen_url_that_leads_nowhere_is_logged() {
    let Some(pooled) = Pooled::start(POOL).await else {
        return;
    };
    pooled.database.execute(ALTER).await.unwrap();
    let nowhere = RefusingAddress::new();
    let listen_url = format!("postgres://nobody@{}/nothing", nowhere.address());
    let home = Home::new(&pooled.pooler.url()).variable("AGENT_RUNTIME__STORE__LISTEN_URL", &listen_url);
    let service = Service::start(&home).await;
    until("nothing is logged", async || {
        service.log().contains("no wake-ups are received")
    })
    .await;
    service.stop().await;
}
