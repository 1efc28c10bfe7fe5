//! Callers of a replica that shuts down: each learns where to continue, and misses no event there.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::binary::PATIENCE;
use super::service::{Events, Service, read};
use super::workers::{Pair, pair};
use crate::support::gated::assert_without_gap;
use crate::support::members::assert_members;
use crate::support::test_app::run_path;
use crate::support::text::assert_contains;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_of_runs_elsewhere_learn_where_to_continue() {
    check_callers("api", 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_of_runs_that_are_handed_over_learn_where_to_continue() {
    // Without persisted steps the other replica starts over.
    check_callers("all", 4).await;
}

/// Ends a replica of this role while callers of all kinds wait at it, and continues at another one.
async fn check_callers(role: &str, model_calls: usize) {
    let Some(pair) = pair(role, "all").await else { return };
    let Pair {
        here,
        there,
        gate,
        mock,
        ..
    } = pair;
    let sync = begin(&here, "sync");
    gate.until_waiting(1).await;
    let runs = there.get("/v1/runs?status=running").await;
    let run = runs["data"][0].clone();
    let path = run_path(&run, "");
    let polling = here.request(Method::GET, &format!("{path}?wait=60s"));
    let poll = tokio::spawn(read(polling, None));
    let mut stream = here.stream_keyed(json!({"input": "wait"}), "stream").await;
    let streamed = stream.until("run.started").await;
    let mut follower = here.follow(&run, 0).await;
    let followed = vec![follower.until("run.started").await];
    gate.until_waiting(2).await;

    here.signal("TERM");
    let (status, shown) = poll.await.unwrap();
    assert_eq!(
        (status, &shown["run_id"], &shown["status"]),
        (StatusCode::OK, &run["run_id"], &json!("running"))
    );
    let (status, location, accepted) = sync.await.unwrap();
    assert_eq!((status, location), (StatusCode::ACCEPTED, path), "{accepted:#}");
    assert_eq!(accepted["run_id"], run["run_id"]);
    assert!(
        ["queued", "running"].contains(&accepted["status"].as_str().unwrap()),
        "{accepted:#}"
    );
    let followed = until_dropped(followed, follower).await;
    let read = until_dropped(vec![streamed.clone()], stream).await;
    let ended = here.end_within(PATIENCE).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains("closing connections"), "{}", ended.stderr);

    let waiting = [(&run, followed), (&streamed, read)].map(async |(run, events)| {
        let rest = there.follow(run, events.len() as u64).await;
        (run, events, rest)
    });
    let waiting = futures_util::future::join_all(waiting).await;
    gate.until_waiting(2).await;
    gate.open(2);
    for (run, mut events, rest) in waiting {
        events.extend(rest.rest().await);
        assert_without_gap(&events);
        assert_eq!(events.last().unwrap()["type"], "run.completed");
        assert_eq!(events, there.follow(run, 0).await.rest().await);
        let ended = there.ended(run).await;
        assert_members!(ended, {"status": "completed", "attempts": 1});
    }
    assert_eq!(mock.asked(), model_calls);
    there.stop().await;
}

/// Makes a run and waits for it; returns the response with its `Location`.
fn begin(service: &Service, key: &str) -> JoinHandle<(StatusCode, String, Value)> {
    let request = service.request(Method::POST, "/v1/runs").header("idempotency-key", key);
    let body = json!({"agent": "echo", "input": "wait"});
    let request = request
        .header("content-type", "application/json")
        .body(body.to_string());
    tokio::spawn(async move {
        let answer = request.send().await.unwrap();
        let location = answer
            .headers()
            .get("location")
            .map(|value| value.to_str().unwrap().to_owned());
        (
            answer.status(),
            location.unwrap_or_default(),
            serde_json::from_str(&answer.text().await.unwrap()).unwrap(),
        )
    })
}

/// Adds the events of a run up to `stream.dropped`, which must name the last of them.
async fn until_dropped(mut events: Vec<Value>, rest: Events) -> Vec<Value> {
    events.extend(rest.rest().await);
    let dropped = events.pop().unwrap();
    assert_eq!(dropped["type"], "stream.dropped", "{dropped:#}");
    assert_contains!(dropped["data"]["reason"].as_str().unwrap(), "shutting down");
    assert_eq!(
        dropped["data"]["after"],
        events.last().unwrap()["sequence"],
        "{dropped:#}"
    );
    events
}
