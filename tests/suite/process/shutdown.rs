//! Stopping: no new request is served, runs finish within the grace or are cancelled with a record,
//! and the process ends in time.

use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::binary::{Ended, Home, PATIENCE};
use super::service::{Events, Service};
use crate::end_to_end::on_every_store;
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::{run_path, session_path};

on_every_store!(
    a_run_finishes_within_the_grace,
    a_run_that_outlasts_the_grace_is_cancelled,
    a_second_signal_cancels_at_once,
    a_run_without_a_caller_finishes_too,
    the_end_of_a_run_that_is_stored_late_is_reported,
    an_outage_of_the_store_does_not_delay_the_exit
);

/// The time by which a busy machine may delay the shutdown.
const SLACK: Duration = Duration::from_secs(25);

/// How long a service that stops waits for the records of runs that it has cancelled. A machine
/// that stands still may take longer.
const LAST_RECORDS: Duration = Duration::from_secs(5);

/// A model that completes in a second, or practically never.
async fn model() -> MockModel {
    MockModel::start(|request| match last_user_text(request).as_str() {
        "endless" => Reply::Slow(vec!["on ".to_owned(); 10_000], Duration::from_millis(20)),
        "slow" => Reply::Slow(vec!["word ".to_owned(); 20], Duration::from_millis(50)),
        text => Reply::text(text),
    })
    .await
}

fn home(database: &TestDatabase, mock: &MockModel, grace: &str) -> Home {
    let home = Home::new(database.url()).with_mock(mock);
    home.variable("AGENT_RUNTIME__RUNS__SHUTDOWN_GRACE", grace)
}

/// Begins a run whose completion never ends; returns it and its events.
async fn begin_endless(service: &Service) -> (Value, Events) {
    let mut events = service.stream(json!({"input": "endless"})).await;
    let begun = events.until("run.started").await["data"].clone();
    events.until("message.delta").await;
    (begun, events)
}

/// Waits for the end, which must be in order and within the limit.
async fn end_within(service: Service, limit: Duration) -> Ended {
    let ended = end_late(service, limit).await;
    assert!(!ended.stderr.contains("did not end"), "{}", ended.stderr);
    ended
}

/// The same for a service that may have stopped waiting for its runs.
async fn end_late(service: Service, limit: Duration) -> Ended {
    let ended = service.end_within(limit).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    ended
}

/// Checks that a run was cancelled: its caller got that event, its record is stored, and its
/// session does not exist.
async fn assert_cancelled(home: &Home, begun: &Value, events: &[Value]) {
    let last = events.last().unwrap();
    assert_eq!(last["type"], "run.cancelled", "{events:#?}");
    let service = Service::start(home).await;
    let run_id = begun["run_id"].as_str().unwrap();
    let run = service.get(&format!("/v1/runs/{run_id}")).await;
    assert_eq!(run["status"], "cancelled", "{run:#}");
    assert!(run["completed_at"].is_string(), "{run:#}");
    let problem = service.uncommitted(begun).await;
    assert_eq!(problem["run_id"], begun["run_id"]);
    service.stop().await;
}

async fn a_run_finishes_within_the_grace(database: TestDatabase) {
    let mock = model().await;
    let home = home(&database, &mock, "60s");
    let service = Service::start(&home).await;
    let mut events = service.stream(json!({"input": "slow"})).await;
    events.until("message.delta").await;
    service.signal("TERM");
    service.until_closed().await;

    let events = events.rest().await;
    let types: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        types[types.len() - 2..],
        ["session.committed", "run.completed"],
        "{types:?}"
    );
    let result = events.last().unwrap()["data"].clone();
    assert_eq!(result["output_text"], "word ".repeat(20));
    end_within(service, SLACK).await;

    let service = Service::start(&home).await;
    let session_id = result["session_id"].as_str().unwrap();
    let session = service.get(&format!("/v1/sessions/{session_id}")).await;
    assert_eq!(session["run_id"], result["run_id"]);
    service.run("echo", Some(session_id), "again").await;
    service.stop().await;
}

async fn a_run_that_outlasts_the_grace_is_cancelled(database: TestDatabase) {
    let mock = model().await;
    let home = home(&database, &mock, "500ms");
    let service = Service::start(&home).await;
    let (begun, events) = begin_endless(&service).await;
    let signalled = Instant::now();
    service.signal("TERM");
    let events = events.rest().await;
    assert!(signalled.elapsed() >= Duration::from_millis(500));
    end_within(service, SLACK).await;
    assert_cancelled(&home, &begun, &events).await;
}

async fn a_second_signal_cancels_at_once(database: TestDatabase) {
    let mock = model().await;
    let home = home(&database, &mock, "10m");
    let service = Service::start(&home).await;
    let (begun, mut events) = begin_endless(&service).await;
    service.signal("TERM");
    service.until_closed().await;
    // The first one has arrived, and the run continues.
    events.until("message.delta").await;
    service.signal("INT");
    let events = events.rest().await;
    let log = end_within(service, SLACK).await.stderr;
    let line = log
        .lines()
        .find(|line| line.contains("stopping: no new requests"))
        .unwrap();
    for part in ["runs=1", "shutdown_grace=600s", "a second signal does not wait"] {
        assert!(line.contains(part), "no {part:?} in {line}");
    }
    assert_cancelled(&home, &begun, &events).await;
}

async fn a_run_without_a_caller_finishes_too(database: TestDatabase) {
    let mock = model().await;
    let home = home(&database, &mock, "60s");
    let service = Service::start(&home).await;
    let mut events = service
        .stream(json!({"input": "slow", "on_disconnect": "continue"}))
        .await;
    let begun = events.until("run.started").await["data"].clone();
    events.until("message.delta").await;
    drop(events);
    service.signal("TERM");
    end_within(service, SLACK).await;

    let service = Service::start(&home).await;
    let run = service.get(&run_path(&begun, "")).await;
    assert_eq!(run["status"], "completed");
    service.get(&session_path(&begun, "")).await;
    service.stop().await;
}

async fn the_end_of_a_run_that_is_stored_late_is_reported(database: TestDatabase) {
    let mock = model().await;
    let home = home(&database, &mock, "100ms");
    let service = Service::start(&home).await;
    let (begun, events) = begin_endless(&service).await;
    let stall = database.begin_stall("runs").await;
    let signalled = Instant::now();
    service.signal("TERM");
    service.until_closed().await;
    // Longer than callers have to read what has been sent.
    sleep(Duration::from_secs(3)).await;
    stall.end().await;
    let events = events.rest().await;
    let has_time = signalled.elapsed() < LAST_RECORDS;
    let ended = end_late(service, SLACK).await;
    assert!(!has_time || !ended.stderr.contains("did not end"), "{}", ended.stderr);
    assert_cancelled(&home, &begun, &events).await;
}

async fn an_outage_of_the_store_does_not_delay_the_exit(database: TestDatabase) {
    let mock = model().await;
    let home = home(&database, &mock, "300ms");
    let service = Service::start(&home).await;
    let root = service.run("echo", None, "root").await;
    let mut events = service.stream(json!({"input": "slow"})).await;
    let begun = events.until("run.started").await["data"].clone();
    let outage = database.begin_outage().await;
    events.until("step.completed").await;
    service.signal("TERM");
    let ended = service.end_within(SLACK).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    outage.end().await;

    let service = Service::start(&home).await;
    service.get(&session_path(&root, "")).await;
    let reserved = session_path(&begun, "");
    let (status, _) = service.call(Method::GET, &reserved, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_do_not_delay_the_exit() {
    let home = Home::with_file().variable("AGENT_RUNTIME__RUNS__SHUTDOWN_GRACE", "10m");
    let service = Service::start(&home).await;
    let silent = TcpStream::connect(&service.address).await.unwrap();
    let mut half = TcpStream::connect(&service.address).await.unwrap();
    half.write_all(b"GET /healthz HTTP/1.1\r\nhost:").await.unwrap();
    let mut idle = TcpStream::connect(&service.address).await.unwrap();
    idle.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n")
        .await
        .unwrap();
    let mut answer = [0; 12];
    idle.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
    service.signal("TERM");
    end_within(service, SLACK).await;
    drop((silent, half, idle));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_that_stops_reading_does_not_delay_the_exit() {
    let mock = MockModel::start(|_| Reply::Slow(vec!["x".repeat(50_000); 400], Duration::ZERO)).await;
    let home = Home::with_file()
        .with_mock(&mock)
        .variable("AGENT_RUNTIME__RUNS__SHUTDOWN_GRACE", "300ms");
    let service = Service::start(&home).await;
    let mut events = service.stream(json!({"input": "flood"})).await;
    let begun = events.until("run.started").await["data"].clone();
    service.signal("TERM");
    end_within(service, SLACK).await;
    drop(events);
    let service = Service::start(&home).await;
    service.get(&run_path(&begun, "")).await;
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_on_an_open_connection_is_refused_with_a_problem_or_closed() {
    let mock = model().await;
    let home = Home::with_file()
        .with_mock(&mock)
        .variable("AGENT_RUNTIME__RUNS__SHUTDOWN_GRACE", "60s");
    let service = Service::start(&home).await;
    let mut events = service.stream(json!({"input": "endless"})).await;
    events.until("message.delta").await;
    let mut open = TcpStream::connect(&service.address).await.unwrap();
    let body = r#"{"input": "late", "agent": "echo"}"#;
    let head = format!(
        "POST /v1/runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    // The head is there before the signal, the body comes after it.
    open.write_all(head.as_bytes()).await.unwrap();
    service.signal("TERM");
    service.until_closed().await;
    drop(open.write_all(body.as_bytes()).await);
    let mut answer = String::new();
    let read = tokio::time::timeout(PATIENCE, open.read_to_string(&mut answer)).await;
    if read.expect("no end").is_ok() && !answer.is_empty() {
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.contains("shutting_down"), "{answer}");
    }
    service.signal("TERM");
    end_within(service, SLACK).await;
    drop(events);
}
