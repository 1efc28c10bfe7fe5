//! Two processes that share PostgreSQL and nothing else: they communicate through the store
//! alone.

use std::sync::Arc;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use test_support::wait::until;

use super::binary::Home;
use super::service::Service;
use crate::support::gated::assert_without_gap;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::{run_path, session_path};

/// Two services that share a database.
struct Pair {
    mock: MockModel,
    gate: Arc<Gate>,
    /// It serves requests and executes no queued run.
    here: Service,
    /// It executes queued runs and serves no request.
    there: Service,
    // These go away after the services that use them.
    _home: Home,
    _database: TestDatabase,
}

/// Starts services with short leases, or prints why the test is skipped.
async fn pair() -> Option<Pair> {
    let database = TestDatabase::postgres().await?;
    let gate = Gate::new();
    let behind = Arc::clone(&gate);
    let mock = MockModel::start(move |request| match last_user_text(request).as_str() {
        "wait" => Reply::Held(Arc::clone(&behind), "echo: wait".to_owned()),
        "until told" => Reply::call_without_haste("c", "calculator", &json!({"expression": "1+1"})),
        text => Reply::text(&format!("echo: {text}")),
    })
    .await;
    let home = Home::new(database.url())
        .with_mock(&mock)
        .variable("AGENT_RUNTIME__QUEUE__LEASE", "12s")
        .variable("AGENT_RUNTIME__RUNS__SHUTDOWN_GRACE", "100ms");
    let calls = "name = 'calls'\nmodel = 'mock/m'\ntools = ['calculator']\n[budget]\nmax_steps = 100000\n";
    home.write("config/agents/calls.toml", calls);
    let (api, worker) = (["--role", "api"], ["--role", "worker"]);
    let (here, there) = tokio::join!(Service::start_with(&home, &api), Service::start_with(&home, &worker));
    Some(Pair {
        mock,
        gate,
        here,
        there,
        _home: home,
        _database: database,
    })
}

impl Pair {
    /// The texts of the messages of a run's session; none where no session was published.
    async fn messages(&self, run: &Value) -> Option<Vec<String>> {
        let path = session_path(run, "/messages");
        let (status, answer) = self.here.call(Method::GET, &path, None).await;
        if status == StatusCode::NOT_FOUND {
            assert_eq!(answer["code"], "session_not_committed", "{answer:#}");
            return None;
        }
        let messages = answer["data"].as_array().unwrap().iter();
        Some(messages.map(|message| message["content"].to_string()).collect())
    }

    async fn stop(self) {
        self.here.stop().await;
        self.there.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_is_followed_while_another_process_executes_it() {
    let Some(pair) = pair().await else { return };
    let Pair { here, gate, .. } = &pair;
    let run = here.begin("echo", "wait").await;
    gate.until_waiting(1).await;
    let mut reader = here.follow(&run, 0).await;
    let mut events = reader.up_to("model.requested").await;
    // It follows a run that has no completion yet.
    let path = run_path(&run, "");
    assert_eq!(here.get(&path).await["status"], "running");
    let late = here.follow(&run, 2).await;
    gate.open(1);
    events.extend(reader.rest().await);
    assert_without_gap(&events);
    let ended = here.get(&path).await;
    assert_members!(ended, {"status": "completed", "output_text": "echo: wait"});
    assert_eq!(events.last().unwrap()["data"], ended);
    assert_eq!(late.rest().await, events[2..]);
    assert_eq!(here.follow(&run, 0).await.rest().await, events);
    pair.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn control_messages_arrive_with_the_renewal_of_the_lease() {
    let Some(pair) = pair().await else { return };
    let Pair { here, gate, mock, .. } = &pair;
    for (agent, text, action, status) in [
        ("echo", "wait", "stop", "stopped"),
        ("echo", "wait", "cancel", "cancelled"),
        ("calls", "until told", "stop", "stopped"),
    ] {
        let asked = mock.asked();
        let run = here.begin(agent, text).await;
        until("the model is never asked", async || mock.asked() > asked).await;
        here.control(&run, action).await;
        let ended = here.ended(&run).await;
        assert_members!(ended, {"status": status, "stop_reason": "user_requested", "attempts": 1});
        let messages = pair.messages(&run).await;
        assert_eq!(messages.is_some(), action == "stop", "{messages:?}");
        assert!(messages.is_none_or(|messages| messages[0].contains(text)));
        // No process executes it any more.
        gate.until_waiting(0).await;
    }

    let asked = mock.asked();
    let run = here.begin("calls", "until told").await;
    until("the model is never asked", async || mock.asked() > asked).await;
    let path = run_path(&run, "/steer");
    let message = json!({"id": "m-1", "input": "enough"});
    for _ in 0..2 {
        here.post(&path, message.clone()).await;
    }
    let ended = here.ended(&run).await;
    assert_members!(ended, {"status": "completed", "output_text": "echo: enough", "attempts": 1});
    assert_eq!(here.post(&path, message).await["status"], "applied");
    let last = mock.requests().pop().unwrap();
    assert_eq!(last.to_string().matches("\"enough\"").count(), 1);
    let applied = here.follow(&run, 0).await.rest().await;
    let applied = applied.iter().filter(|event| event["type"] == "message.applied");
    assert_eq!(applied.count(), 1);
    pair.stop().await;
}
