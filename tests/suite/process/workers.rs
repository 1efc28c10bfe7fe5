//! Processes that accept runs and others that work on them: callers see and steer every run from
//! anywhere.

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use test_support::redis_server::PrivateServer;
use test_support::wait::until;
use tokio::time::timeout;

use super::binary::{Home, PATIENCE};
use super::service::{Service, read};
use crate::support::gated::assert_without_gap;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::run_path;

/// Two services that share everything.
pub(super) struct Pair {
    pub(super) mock: MockModel,
    pub(super) gate: Arc<Gate>,
    pub(super) here: Service,
    pub(super) there: Service,
    // These go away after the services that use them.
    pub(super) redis: PrivateServer,
    pub(super) home: Home,
    pub(super) database: TestDatabase,
}

/// Starts services in these roles, or prints why the test is skipped.
pub(super) async fn pair(here: &str, there: &str) -> Option<Pair> {
    let gate = Gate::new();
    let behind = Arc::clone(&gate);
    let model = move |request: &Value| match last_user_text(request).as_str() {
        "wait" => Reply::Held(Arc::clone(&behind), "echo: wait".to_owned()),
        "until told" => Reply::call("c", "calculator", &json!({"expression": "1+1"})),
        "endless" => Reply::Slow(vec!["on ".to_owned(); 10_000], Duration::from_millis(20)),
        text => Reply::text(&format!("echo: {text}")),
    };
    Pair::start([here, there], gate, model).await
}

impl Pair {
    /// Starts services in these roles on a model that may wait at the gate, or prints why the test
    /// is skipped. No lease is renewed meanwhile, so no message arrives with a renewal.
    pub(super) async fn start(
        roles: [&str; 2],
        gate: Arc<Gate>,
        model: impl Fn(&Value) -> Reply + Send + 'static,
    ) -> Option<Self> {
        let database = TestDatabase::postgres().await?;
        let redis = PrivateServer::start()?;
        let mock = MockModel::start(model).await;
        let home = Home::new(database.url())
            .with_mock(&mock)
            .variable("AGENT_RUNTIME__BOARD__URL", &redis.url())
            .variable("AGENT_RUNTIME__QUEUE__LEASE", "10m")
            .variable("AGENT_RUNTIME__RUNS__SHUTDOWN_GRACE", "100ms");
        let calls = "name = 'calls'\nmodel = 'mock/m'\ntools = ['calculator']\n[budget]\nmax_steps = 10000\n";
        home.write("config/agents/calls.toml", calls);
        let [here, there] = roles.map(|role| ["--role", role]);
        let (here, there) = tokio::join!(Service::start_with(&home, &here), Service::start_with(&home, &there));
        Some(Self {
            mock,
            gate,
            here,
            there,
            redis,
            home,
            database,
        })
    }

    pub(super) async fn stop(self) {
        self.here.stop().await;
        self.there.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_accepted_here_and_executed_there() {
    let Some(pair) = pair("api", "worker").await else {
        return;
    };
    let Pair { here, there, gate, .. } = &pair;
    for (path, expected) in [
        ("/healthz", 200),
        ("/readyz", 200),
        ("/v1/runs", 404),
        ("/v1/agents", 404),
    ] {
        let (status, body) = there.call(Method::GET, path, None).await;
        assert_eq!(status.as_u16(), expected, "{path}: {body:#}");
    }
    let run = here.begin("echo", "wait").await;
    gate.until_waiting(1).await;
    let path = run_path(&run, "");
    assert_eq!(here.get(&path).await["status"], "running");
    let mut events = here.follow(&run, 0).await;
    events.until("model.requested").await;
    let late = here.follow(&run, 2).await;
    let waiting = format!("{path}?wait=60s");
    let waiting = timeout(PATIENCE, here.get(&waiting));
    let opening = async { gate.open(1) };
    let (ended, ()) = tokio::join!(waiting, opening);
    let ended = ended.expect("the end is not heard of");
    assert_members!(ended, {"status": "completed", "output_text": "echo: wait"});
    let late = late.rest().await;
    assert_eq!(late.last().unwrap()["data"], ended);
    let all = here.follow(&run, 0).await.rest().await;
    assert_without_gap(&all);
    assert_eq!(events.rest().await.last(), all.last());
    assert_eq!(late, all[2..]);
    for after in 0..all.len() {
        let rest = here.follow(&run, after as u64).await.rest().await;
        assert_eq!(rest, all[after..], "{after}");
    }
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stop_and_cancel_reach_the_worker() {
    let Some(pair) = pair("api", "worker").await else {
        return;
    };
    for (agent, action, status) in [
        ("echo", "stop", "stopped"),
        ("echo", "cancel", "cancelled"),
        ("calls", "stop", "stopped"),
    ] {
        let text = if agent == "echo" { "wait" } else { "until told" };
        let asked = pair.mock.asked();
        let run = pair.here.begin(agent, text).await;
        pair.here.follow(&run, 0).await.until("model.requested").await;
        // The event comes before the request is on its way.
        until("the model is never asked", async || pair.mock.asked() > asked).await;
        pair.here.control(&run, action).await;
        let ended = pair.here.ended(&run).await;
        assert_members!(ended, {"status": status, "stop_reason": "user_requested"});
        // No process executes it any more.
        pair.gate.until_waiting(0).await;
    }
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_reaches_the_worker() {
    let Some(pair) = pair("api", "worker").await else {
        return;
    };
    let run = pair.here.begin("calls", "until told").await;
    pair.here.follow(&run, 0).await.until("model.requested").await;
    let path = run_path(&run, "/steer");
    let message = json!({"id": "m-1", "input": "enough"});
    for _ in 0..2 {
        pair.here.post(&path, message.clone()).await;
    }
    let ended = pair.here.ended(&run).await;
    assert_members!(ended, {"status": "completed", "output_text": "echo: enough"});
    assert_eq!(pair.here.post(&path, message).await["status"], "applied");
    let last = pair.mock.requests().pop().unwrap();
    assert_eq!(last.to_string().matches("enough").count(), 1, "{last:#}");
    let applied = pair.here.follow(&run, 0).await.rest().await;
    let applied = applied.iter().filter(|event| event["type"] == "message.applied");
    assert_eq!(applied.count(), 1);
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_light_run_of_another_process_is_stopped_from_here() {
    let Some(pair) = pair("all", "all").await else { return };
    for (action, status) in [("stop", "stopped"), ("cancel", "cancelled")] {
        let mut events = pair.there.stream(json!({"input": "endless"})).await;
        let run = events.until("run.started").await["data"].clone();
        events.until("message.delta").await;
        pair.here.control(&run, action).await;
        let events = events.rest().await;
        let last = events.last().unwrap();
        assert_members!(last["data"], {"status": status, "stop_reason": "user_requested"});
        assert_eq!(pair.here.ended(&run).await["status"], status);
    }
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_request_gets_the_first_response_from_any_process() {
    let Some(pair) = pair("all", "all").await else { return };
    let Pair {
        here,
        there,
        gate,
        mock,
        ..
    } = &pair;
    let body = json!({"agent": "echo", "input": "wait"});
    let send = |service: &Service| {
        let request = service.request(Method::POST, "/v1/runs").header("idempotency-key", "k");
        read(request, Some(body.clone()))
    };
    let first = send(here);
    let again = async {
        gate.until_waiting(1).await;
        let again = send(there);
        let opening = async { gate.open(1) };
        tokio::join!(again, opening).0
    };
    let ((status, first), (status_again, again)) = tokio::join!(first, again);
    assert_eq!(
        (status, status_again),
        (StatusCode::OK, StatusCode::OK),
        "{first:#} {again:#}"
    );
    assert_members!(first, {"status": "completed", "output_text": "echo: wait"});
    assert_eq!(again, first);
    let (status, later) = send(there).await;
    assert_eq!((status, &later), (StatusCode::OK, &first));
    assert_eq!(mock.asked(), 1);
    pair.stop().await;
}
