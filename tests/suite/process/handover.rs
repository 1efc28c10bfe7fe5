//! Workers that end. After a shutdown another worker continues their runs at once; after a crash,
//! when the lease expires.

use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::{Value, json};
use test_support::clock::time;
use test_support::databases::{Engine, TestDatabase};
use test_support::gate::Gate;
use test_support::wait::until;
use values::clock::{Clock as _, SystemClock, Timestamp};

use super::binary::{Ended, Home, PATIENCE};
use super::service::Service;
use crate::end_to_end::on_every_store;
use crate::support::gated::assert_without_gap;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, last_user_text};

on_every_store!(
    a_worker_that_shuts_down_hands_its_runs_over,
    a_run_between_two_steps_is_handed_over_before_the_grace_ends,
    runs_of_a_killed_worker_are_taken_over,
    runs_of_a_restored_store_continue_at_once,
    a_run_that_is_cancelled_after_a_handover_retains_its_usage,
    short_runs_finish_and_light_runs_are_cancelled,
);

/// A model that calls a tool, then waits at the gate if the input asks for it.
async fn model(gate: &Arc<Gate>) -> MockModel {
    let gate = Arc::clone(gate);
    MockModel::start(move |request| {
        let messages = request["messages"].as_array().unwrap();
        let is_first = messages.last().unwrap()["role"] == "user";
        let product = json!({"expression": "6*7"});
        let held = || Reply::Held(Arc::clone(&gate), "done".to_owned());
        match last_user_text(request).as_str() {
            "call, then wait" if is_first => Reply::call("c", "calculator", &product),
            "call" => Reply::call_without_haste("c", "calculator", &product),
            text if text.contains("wait") => held(),
            text => Reply::text(&format!("echo: {text}")),
        }
    })
    .await
}

/// A home whose leases outlast every test.
fn home(database: &TestDatabase, mock: &MockModel, grace: &str) -> Home {
    let home = Home::new(database.url())
        .with_mock(mock)
        .variable("AGENT_RUNTIME__QUEUE__POLL_INTERVAL", "50ms")
        .variable("AGENT_RUNTIME__RUNS__SHUTDOWN_GRACE", grace);
    for durability in ["step", "session"] {
        let agent = format!(
            "name = '{durability}'\nmodel = 'mock/m'\ntools = ['calculator']\ndurability = '{durability}'\n[budget]\nmax_steps = 100000\n"
        );
        home.write(&format!("config/agents/{durability}.toml"), &agent);
    }
    home
}

const LONG_LEASE: &str = "queue.lease=10m";

async fn start(home: &Home, more: &[&str]) -> Service {
    Service::start_with(home, &[&["--set", LONG_LEASE], more].concat()).await
}

/// Waits for the end, which must be in order.
async fn end(service: Service) -> Ended {
    let ended = service.end_within(PATIENCE).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains("did not end"), "{}", ended.stderr);
    ended
}

/// The types of a run's events, which have no gap; of each of these there is one.
async fn types_of(service: &Service, run: &Value) -> Vec<String> {
    let events = service.follow(run, 0).await.rest().await;
    assert_without_gap(&events);
    let types: Vec<_> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap().to_owned())
        .collect();
    for single in [
        "run.started",
        "execution.started",
        "execution.ended",
        "session.committed",
        "run.completed",
    ] {
        assert_eq!(
            types.iter().filter(|found| *found == single).count(),
            1,
            "{single}: {types:?}"
        );
    }
    types
}

async fn a_worker_that_shuts_down_hands_its_runs_over(database: TestDatabase) {
    let gate = Gate::new();
    let mock = model(&gate).await;
    let home = home(&database, &mock, "200ms");
    // One slot: the second run waits, without an attempt.
    let first = start(&home, &["--set", "queue.concurrency=1"]).await;
    let run = first.begin("step", "call, then wait").await;
    gate.until_waiting(1).await;
    let waiting = first.begin("session", "wait").await;
    let second = start(&home, &["--set", "queue.concurrency=1"]).await;
    // It takes the run that waits, and has no slot left.
    gate.until_waiting(2).await;
    let third = start(&home, &[]).await;
    let asked = mock.asked();
    first.signal("TERM");
    end(first).await;
    gate.until_waiting(2).await;
    assert_eq!(mock.asked(), asked + 1, "the completed step is not made again");
    gate.open(2);
    let ended = third.ended(&run).await;
    assert_members!(ended, {"status": "completed", "attempts": 1, "step_count": 2, "output_text": "done"});
    let types = types_of(&third, &run).await;
    assert_eq!(
        types.iter().filter(|found| *found == "run.resumed").count(),
        1,
        "{types:?}"
    );
    assert_eq!(third.ended(&waiting).await["status"], "completed");
    second.stop().await;
    third.stop().await;
}

async fn a_run_between_two_steps_is_handed_over_before_the_grace_ends(database: TestDatabase) {
    let gate = Gate::new();
    let mock = model(&gate).await;
    // Half of the grace passes before runs are asked to pause.
    let home = home(&database, &mock, "20s");
    let first = start(&home, &[]).await;
    let run = first.begin("step", "call").await;
    first.follow(&run, 0).await.until("step.completed").await;
    first.signal("TERM");
    let ended = end(first).await;
    assert!(!ended.stderr.contains("outlast the shutdown grace"), "{}", ended.stderr);
    let second = start(&home, &[]).await;
    let mut events = second.follow(&run, 0).await;
    let resumed = events.until("run.resumed").await;
    assert_eq!(resumed["data"]["attempts"], 1);
    assert!(resumed["data"]["step_count"].as_u64().unwrap() >= 1, "{resumed:#}");
    second.control(&run, "stop").await;
    assert_eq!(second.ended(&run).await["status"], "stopped");
    let events = second.follow(&run, 0).await.rest().await;
    let completed = events.iter().filter(|event| event["type"] == "step.completed");
    let completed: Vec<_> = completed
        .map(|event| event["data"]["step_number"].as_u64().unwrap())
        .collect();
    assert_eq!(
        completed,
        (1..=completed.len() as u64).collect::<Vec<_>>(),
        "each step once"
    );
    second.stop().await;
}

/// The tokens of each completion.
const COMPLETION_TOKENS: i64 = 15;
const POLL_INTERVAL: TimeDelta = TimeDelta::milliseconds(50);
/// The time that a busy machine may take beyond the times of the test.
const LATER: TimeDelta = TimeDelta::seconds(30);

async fn runs_of_a_restored_store_continue_at_once(database: TestDatabase) {
    let gate = Gate::new();
    let mock = model(&gate).await;
    let home = home(&database, &mock, "200ms");
    let before = start(&home, &[]).await;
    let run = before.begin("session", "wait").await;
    gate.until_waiting(1).await;
    before.kill();
    gate.until_waiting(0).await;
    let printed = home.succeed(&["after-restore"]).await;
    assert!(printed.starts_with("runs that continue: 1\n"), "{printed}");
    gate.open(1);
    // Its lease would have lasted for ten minutes more.
    let after = start(&home, &[]).await;
    assert_members!(after.ended(&run).await, {"status": "completed", "attempts": 2});
    after.stop().await;
}

async fn runs_of_a_killed_worker_are_taken_over(database: TestDatabase) {
    let gate = Gate::new();
    let mock = model(&gate).await;
    let home = home(&database, &mock, "200ms");
    let short = ["--set", "queue.lease=12s"];
    let first = Service::start_with(&home, &short).await;
    let durable = first.begin("step", "call, then wait").await;
    let plain = first.begin("session", "call, then wait").await;
    gate.until_waiting(2).await;
    until("what is spent is not persisted", async || {
        let spent = "select min(total_tokens) from runs where status = 'running'";
        database.number(spent).await == COMPLETION_TOKENS
    })
    .await;
    first.kill();
    let expiry = lease_expiry(&database).await;
    gate.until_waiting(0).await;
    gate.open(2);
    let second = Service::start_with(&home, &short).await;
    let latest = expiry.max(SystemClock.now()) + POLL_INTERVAL + LATER;
    // The run that starts over repeats its first completion, and counts it again.
    for (run, asked_again, completions) in [(&durable, 1, 2), (&plain, 2, 3)] {
        let ended = second.ended(run).await;
        assert_members!(ended, {"status": "completed", "attempts": 2}, "{asked_again}");
        assert_members!(ended, {
            "step_count": 2,
            "usage/total_tokens": completions * COMPLETION_TOKENS,
        }, "{asked_again}");
        let events = second.follow(run, 0).await.rest().await;
        let resumed = events.iter().find(|event| event["type"] == "run.resumed").unwrap();
        let resumed = time(&resumed["time"]);
        assert!(
            (expiry..latest).contains(&resumed),
            "{asked_again}: {resumed}, and the lease was until {expiry}"
        );
    }
    assert_eq!(mock.asked(), 4 + 1 + 2);
    types_of(&second, &durable).await;
    second.stop().await;
}

/// When the first of the leases expires, to the millisecond.
async fn lease_expiry(database: &TestDatabase) -> Timestamp {
    let milliseconds = match database.engine {
        Engine::Postgres => "floor(extract(epoch from min(leased_until)) * 1000)::bigint",
        Engine::Sqlite => "min(leased_until) / 1000",
    };
    let expiry = database.number(&format!("select {milliseconds} from run_queue")).await;
    Timestamp::from_timestamp_millis(expiry).unwrap()
}

async fn a_run_that_is_cancelled_after_a_handover_retains_its_usage(database: TestDatabase) {
    let gate = Gate::new();
    let mock = model(&gate).await;
    let home = home(&database, &mock, "200ms");
    let first = start(&home, &[]).await;
    let durable = first.begin("step", "call, then wait").await;
    let plain = first.begin("session", "call, then wait").await;
    let unbegun = first.begin("session", "wait").await;
    gate.until_waiting(3).await;
    first.signal("TERM");
    end(first).await;
    let second = start(&home, &["--role", "api"]).await;
    for (run, steps, tokens) in [(&durable, 1, 15), (&plain, 1, 15), (&unbegun, 0, 0)] {
        second.control(run, "cancel").await;
        let ended = second.ended(run).await;
        assert_members!(ended, {"status": "cancelled", "step_count": steps, "usage/total_tokens": tokens});
        let events = second.follow(run, 0).await.rest().await;
        assert_eq!(events.last().unwrap()["data"], ended);
    }
    second.stop().await;
}

async fn short_runs_finish_and_light_runs_are_cancelled(database: TestDatabase) {
    let gate = Gate::new();
    let mock = model(&gate).await;
    let home = home(&database, &mock, "20s");
    let first = start(&home, &["--set", "queue.concurrency=2"]).await;
    let short = first.begin("session", "wait").await;
    gate.until_waiting(1).await;
    let long = first.begin("session", "wait on").await;
    gate.until_waiting(2).await;
    let queued = first.begin("session", "wait for a slot").await;
    let mut light = first.stream(json!({"input": "wait here"})).await;
    let light_run = light.until("run.started").await["data"].clone();
    gate.until_waiting(3).await;
    first.signal("TERM");
    first.until_closed().await;
    // The first one that waits is the first to pass.
    gate.open(1);
    let light = light.rest().await;
    assert_eq!(light.last().unwrap()["type"], "run.cancelled");
    end(first).await;
    gate.until_waiting(0).await;
    assert_eq!(mock.asked(), 3, "nothing is begun any more");

    gate.open(2);
    let second = start(&home, &[]).await;
    for (run, status) in [
        (&short, "completed"),
        (&long, "completed"),
        (&queued, "completed"),
        (&light_run, "cancelled"),
    ] {
        assert_eq!(second.ended(run).await["status"], status);
    }
    for run in [&short, &long, &queued] {
        assert_eq!(second.ended(run).await["attempts"], 1);
    }
    assert_eq!(mock.asked(), 5);
    second.stop().await;
}
