//! What a step says about its requests to models: times, attempts and errors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use chrono::TimeDelta;
use serde_json::{Value, json};
use test_support::clock::{MovableClock, time};
use test_support::databases::TestDatabase;

use super::on_every_store;
use crate::support::members::{assert_members, column};
use crate::support::mock_model::{MockModel, Reply};
use crate::support::test_app::{TestApp, run_path};

on_every_store!(
    a_retried_request_has_its_attempts_and_the_time_of_its_first_token,
    a_fallback_is_a_request_of_its_own,
);

/// How long the second attempt waits for its response, by the clock of the service.
const WAIT: TimeDelta = TimeDelta::seconds(7);

fn busy() -> Reply {
    Reply::Status(503, r#"{"error": {"message": "come back later"}}"#.to_owned())
}

async fn start(database: &TestDatabase, mock: &MockModel) -> TestApp {
    let retries = [("models.max_retries", "1"), ("models.retry_base_delay", "1ms")];
    TestApp::start(database.url(), mock, &retries).await
}

/// Returns the data of the events `model.responded`.
fn responded(events: &[Value]) -> Vec<&Value> {
    let responded = events.iter().filter(|event| event["type"] == "model.responded");
    responded.map(|event| &event["data"]).collect()
}

/// Returns the requests of the only step of a run, as its record has them.
async fn stored(app: &TestApp, events: &[Value]) -> Vec<Value> {
    let run = &events.last().unwrap()["data"];
    let steps = app.get(&run_path(run, "/steps")).await;
    assert_members!(steps, {"total": 1, "data/0/step_number": 1});
    steps["data"][0]["model_requests"].as_array().unwrap().clone()
}

async fn a_retried_request_has_its_attempts_and_the_time_of_its_first_token(database: TestDatabase) {
    let clock: Arc<OnceLock<Arc<MovableClock>>> = Arc::default();
    let (of_service, asked) = (Arc::clone(&clock), AtomicUsize::new(0));
    let mock = MockModel::start(move |_| {
        if asked.fetch_add(1, Ordering::SeqCst) == 0 {
            return busy();
        }
        of_service.get().unwrap().advance(WAIT);
        Reply::Text(vec!["hel".to_owned(), "lo".to_owned()])
    });
    let mock = mock.await;
    let app = start(&database, &mock).await;
    assert!(clock.set(Arc::clone(&app.clock)).is_ok());
    app.put_agent("patient", json!({"model": "mock/m"})).await;
    let events = app.stream(json!({"agent": "patient", "input": "hi"})).await;
    assert_members!(events.last().unwrap(), {"type": "run.completed", "data/output_text": "hello"});
    assert_eq!(mock.asked(), 2);

    let [responded] = responded(&events)[..] else {
        panic!("{events:#?}")
    };
    assert_members!(responded, {"attempts": 2, "error": null, "finish_reason": "stop"});
    let [request] = &stored(&app, &events).await[..] else {
        panic!("it is one request")
    };
    assert_members!(request, {"model": "mock/m", "attempts": 2, "error": null});
    let [started, first_token, ended] = ["started_at", "first_token_at", "ended_at"].map(|name| time(&request[name]));
    assert!(started + WAIT <= first_token && first_token <= ended, "{request:#}");
    assert_eq!((ended - started).num_milliseconds(), responded["duration_ms"]);
    app.finish().await;
}

async fn a_fallback_is_a_request_of_its_own(database: TestDatabase) {
    let mock = MockModel::start(|request| match request["model"].as_str().unwrap() {
        "busy" => busy(),
        name => Reply::text(&format!("from {name}")),
    });
    let mock = mock.await;
    let app = start(&database, &mock).await;
    app.put_agent("sturdy", json!({"models": ["mock/busy", "mock/calm"]}))
        .await;
    let events = app.stream(json!({"agent": "sturdy", "input": "hi"})).await;
    assert_members!(events.last().unwrap(), {"type": "run.completed", "data/output_text": "from calm"});
    assert_eq!(mock.asked(), 3);

    let requests = json!(stored(&app, &events).await);
    assert_eq!(column(&requests, "model"), ["mock/busy", "mock/calm"]);
    assert_eq!(column(&requests, "attempts"), [2, 1]);
    let [failed, succeeded] = [&requests[0], &requests[1]];
    assert_members!(failed, {"first_token_at": null, "error/kind": "model", "error/source_name": "mock/busy"});
    let words = failed["error"]["message"].as_str().unwrap();
    assert!(words.starts_with("come back later"), "{words}");
    assert_eq!(succeeded["error"], Value::Null);
    assert!(
        time(&failed["ended_at"]) <= time(&succeeded["started_at"]),
        "{requests:#}"
    );
    assert!(
        time(&succeeded["first_token_at"]) <= time(&succeeded["ended_at"]),
        "{requests:#}"
    );
    for (responded, request) in responded(&events).into_iter().zip([failed, succeeded]) {
        assert_members!(responded, {"model": request["model"], "attempts": request["attempts"], "error": request["error"]});
    }
    // The run succeeded, so its step has no error.
    let run = &events.last().unwrap()["data"];
    let steps = app.get(&run_path(run, "/steps")).await;
    assert_members!(steps, {"data/0/errors": [], "data/0/answered_by": "mock/calm"});
    app.finish().await;
}
