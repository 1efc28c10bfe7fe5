//! Waiting runs of a service that is killed: open calls stay open, answers are accepted once, and
//! their calls have the effects that docs/guarantees.md promises.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::Method;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use test_support::raw_server::{RawReply, RawServer};
use test_support::wait::until;

use super::binary::Home;
use super::service::{Service, read};
use super::waiting::{answer_keyed, path};
use crate::end_to_end::on_every_store;
use crate::end_to_end::waiting::{answer_to, model, open_calls};
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply};

on_every_store!(
    a_kill_right_after_a_run_waits_loses_nothing,
    a_kill_after_answers_were_accepted_delays_them,
    a_kill_during_an_approved_call_has_the_effects_that_are_promised,
    a_kill_after_an_approved_call_does_not_repeat_it,
);

/// The requests of the tools before the run waits.
const BEFORE: &str = "GET /look";

/// The parts that outlive the services: the model, the ledger of the effects of tools, and the
/// settings.
struct World<'d> {
    database: &'d TestDatabase,
    mock: MockModel,
    /// The gate at which the model waits once it has read results.
    gate: Arc<Gate>,
    ledger: RawServer,
    /// Whether the ledger does not respond.
    is_silent: Arc<AtomicBool>,
    home: Home,
}

impl<'d> World<'d> {
    /// Makes a world with the tools `look`, `pay` and `renew`. The last one is idempotent.
    async fn new(database: &'d TestDatabase) -> Self {
        let is_silent = Arc::<AtomicBool>::default();
        let silent = Arc::clone(&is_silent);
        let ledger = RawServer::start(move |request| {
            if silent.load(Ordering::SeqCst) {
                RawReply::bytes("").then_hang()
            } else {
                RawReply::text(&format!("done: {}", request.line()))
            }
        })
        .await;
        let gate = Gate::new();
        let held = Arc::clone(&gate);
        let mock = MockModel::start(move |request| match model(request) {
            Reply::Text(words) => Reply::Held(Arc::clone(&held), words.concat()),
            calls => calls,
        })
        .await;
        // A lease never expires by itself during a test.
        let home = Home::new(database.url())
            .with_mock(&mock)
            .variable("AGENT_RUNTIME__QUEUE__LEASE", "10m")
            .variable("AGENT_RUNTIME__QUEUE__POLL_INTERVAL", "50ms");
        for (name, method, more) in [
            ("look", "GET", ""),
            ("pay", "POST", ""),
            ("renew", "PUT", "idempotent = true"),
        ] {
            let tool = format!(
                "description = 'A tool.'\nmethod = '{method}'\nurl = '{}'\ntimeout = '10m'\n\
                 allow_http = true\nallow_networks = ['127.0.0.1']\n{more}\n",
                ledger.url(&format!("/{name}"))
            );
            home.write(&format!("config/tools/{name}.toml"), &tool);
        }
        Self {
            database,
            mock,
            gate,
            ledger,
            is_silent,
            home,
        }
    }

    async fn start(&self, arguments: &[&str]) -> Service {
        let service = Service::start_with(&self.home, arguments).await;
        let agent = json!({
            "model": "mock/m", "tools": ["look", "pay", "renew"], "durability": "step",
            "client_tools": [{"name": "ask"}],
            "approvals": [{"tools": ["pay", "renew"], "approval": "always"}],
        });
        service.put_agent("payer", agent).await;
        service
    }

    /// Kills a service, and lets its leases expire.
    async fn kill(&self, service: Service) {
        service.kill();
        let expire = "update run_queue set leased_until = enqueued_at where leased_until is not null";
        self.database.execute(expire).await.unwrap();
    }
}

/// Calls that need nobody, an approval, and the caller.
fn calls(tool: &str) -> String {
    json!([["c0", "look", {}], ["c1", tool, {}], ["c2", "ask", {}]]).to_string()
}

/// Approves the call, and brings the result of the other one.
fn answers(run: &Value, mode: &str) -> Value {
    json!({"mode": mode, "conflict": "reject", "answers": [
        answer_to(run, "c1", json!({"decision": "approve"})),
        answer_to(run, "c2", json!({"result": "yes"})),
    ]})
}

/// The idempotency key of the answers to a run.
fn key(run: &Value) -> &str {
    run["run_id"].as_str().unwrap()
}

async fn assert_valid(service: &Service, run: &Value) {
    let session = run["session_id"].as_str().unwrap();
    let report = service.get(&format!("/v1/sessions/{session}/verify")).await;
    assert_eq!(report["valid"], true, "{report:#}");
}

/// Checks that a run waits with these calls open.
fn assert_waits(run: &Value) {
    assert_members!(run, {"status": "waiting", "attempts": 1});
    assert_eq!(open_calls(run), ["c1", "c2"]);
}

async fn a_kill_right_after_a_run_waits_loses_nothing(database: TestDatabase) {
    for event in ["session.committed", "run.waiting"] {
        let world = World::new(&database).await;
        let first = world.start(&[]).await;
        let run = first.begin("payer", &calls("pay")).await;
        first.follow(&run, 0).await.until(event).await;
        first.kill();

        let second = world.start(&[]).await;
        let run = second.ended(&run).await;
        assert_waits(&run);
        assert_valid(&second, &run).await;
        world.gate.open(1);
        // The same request twice at once and again later is one run.
        let body = answers(&run, "sync");
        let send = || answer_keyed(&second, &run, key(&run), &body);
        let (one, other) = tokio::join!(send(), send());
        let again = send().await;
        assert_eq!([&other["run_id"], &again["run_id"]], [&one["run_id"]; 2]);
        assert_members!(again, {"status": "completed", "output_text": "read: done: GET /look | done: POST /pay | yes"});
        let conflict = "base_session_conflict";
        second
            .refused(Method::POST, &path(&run), Some(body.clone()), conflict)
            .await;
        assert_valid(&second, &again).await;
        assert_eq!(world.ledger.lines(), [BEFORE, "POST /pay"]);
        assert_eq!(world.mock.asked(), 2);
        second.stop().await;
    }
}

/// Where the service is killed in the run that brings the answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// Before a worker has leased the run.
    Accepted,
    /// During the approved call.
    Call,
    /// When the model has read the results.
    Model,
}

/// Kills the service in the run that brings the answers, and checks that another one ends it.
/// Returns the output, and the requests of the tool.
async fn killed(database: &TestDatabase, tool: &str, at: At) -> (String, Vec<String>) {
    let world = World::new(database).await;
    let first = world.start(&[]).await;
    let run = first.begin("payer", &calls(tool)).await;
    let run = first.ended(&run).await;
    assert_waits(&run);
    world.kill(first).await;

    let role: &[&str] = if at == At::Accepted { &["--role", "api"] } else { &[] };
    let second = world.start(role).await;
    world.is_silent.store(at == At::Call, Ordering::SeqCst);
    let body = answers(&run, "async");
    let accept = async |service: &Service| {
        let request = service
            .request(Method::POST, &path(&run))
            .header("idempotency-key", key(&run));
        let (status, accepted) = read(request, Some(body.clone())).await;
        assert!(status.is_success(), "{accepted:#}");
        accepted
    };
    let accepted = accept(&second).await;
    match at {
        At::Accepted => assert_eq!(accepted["status"], "queued"),
        At::Call => until("the call does not begin", async || world.ledger.requests().len() == 2).await,
        At::Model => world.gate.until_waiting(1).await,
    }
    world.kill(second).await;
    world.gate.until_waiting(0).await;
    world.is_silent.store(false, Ordering::SeqCst);
    world.gate.open(1);

    let third = world.start(&[]).await;
    assert_eq!(accept(&third).await["run_id"], accepted["run_id"]);
    let ended = third.ended(&accepted).await;
    let attempts = if at == At::Accepted { 1 } else { 2 };
    assert_members!(ended, {"status": "completed", "attempts": attempts});
    let conflict = "base_session_conflict";
    third
        .refused(Method::POST, &path(&run), Some(body.clone()), conflict)
        .await;
    assert_valid(&third, &run).await;
    assert_valid(&third, &ended).await;
    third.stop().await;
    let requests = world.ledger.requests();
    assert_eq!(requests[0].line(), BEFORE);
    let key = requests[1].header("idempotency-key").unwrap();
    let tool_requests = requests[1..].iter().map(|request| {
        assert_eq!(request.header("idempotency-key"), Some(key));
        request.line().to_owned()
    });
    let asked = if at == At::Model { 3 } else { 2 };
    assert_eq!(world.mock.asked(), asked);
    (
        ended["output_text"].as_str().unwrap().to_owned(),
        tool_requests.collect(),
    )
}

async fn a_kill_after_answers_were_accepted_delays_them(database: TestDatabase) {
    for (tool, line) in [("pay", "POST /pay"), ("renew", "PUT /renew")] {
        let (output, requests) = killed(&database, tool, At::Accepted).await;
        assert_eq!(output, format!("read: done: GET /look | done: {line} | yes"));
        assert_eq!(requests, [line]);
    }
}

async fn a_kill_during_an_approved_call_has_the_effects_that_are_promised(database: TestDatabase) {
    // The effect of this call is uncertain, so it is not made again.
    let (output, requests) = killed(&database, "pay", At::Call).await;
    assert!(
        output.starts_with("read: done: GET /look | the call of pay was interrupted") && output.ends_with(" | yes"),
        "{output}"
    );
    assert_eq!(requests, ["POST /pay"]);
    // This one is made again, with the same key.
    let (output, requests) = killed(&database, "renew", At::Call).await;
    assert_eq!(output, "read: done: GET /look | done: PUT /renew | yes");
    assert_eq!(requests, ["PUT /renew", "PUT /renew"]);
}

async fn a_kill_after_an_approved_call_does_not_repeat_it(database: TestDatabase) {
    for (tool, line) in [("pay", "POST /pay"), ("renew", "PUT /renew")] {
        let (output, requests) = killed(&database, tool, At::Model).await;
        assert_eq!(output, format!("read: done: GET /look | done: {line} | yes"));
        assert_eq!(requests, [line]);
    }
}
