//! A queued run during an outage of Redis, and after it, when Redis is empty.

use serde_json::Value;
use test_support::wait::until;

use super::service::{Events, Service};
use super::workers::{Pair, pair};
use crate::support::gated::assert_without_gap;
use crate::support::members::assert_members;
use crate::support::test_app::session_path;

/// Counts the streams of a run's events that Redis holds.
const STREAMS: &str = "local streams = 0
    for _, key in ipairs(redis.call('KEYS', '*:events:*')) do
      if string.find(key, ARGV[1], 1, true) then streams = streams + 1 end
    end
    return streams";

/// Reads to the terminal event; a reader that is dropped comes back with the number of the last
/// event that it has.
async fn read_to_the_end(service: &Service, run: &Value, mut events: Vec<Value>, mut reader: Events) -> Vec<Value> {
    loop {
        while let Some(event) = reader.next().await {
            if event["type"] != "stream.dropped" {
                events.push(event);
            }
        }
        let last = events.last().unwrap();
        if last["data"]["completed_at"].is_string() {
            return events;
        }
        reader = service.follow(run, last["sequence"].as_u64().unwrap()).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queued_run_is_shown_and_followed_through_an_outage_of_redis() {
    let Some(pair) = pair("api", "worker").await else {
        return;
    };
    let Pair {
        here,
        there,
        gate,
        mut redis,
        home: _home,
        database: _database,
        mock,
    } = pair;
    let run = here.begin("echo", "wait").await;
    gate.until_waiting(1).await;
    let mut reader = here.follow(&run, 0).await;
    let events = reader.up_to("model.requested").await;

    let run_id = run["run_id"].as_str().unwrap();
    assert_eq!(redis.command(&["EVAL", STREAMS, "0", run_id]), ":1");
    redis.stop();
    let path = format!("/v1/runs/{run_id}");
    let shown = here.get(&path).await;
    assert_members!(shown, {"status": "running", "session_id": run["session_id"], "attempts": 1});
    let polled = here.get(&format!("{path}?wait=10ms")).await;
    assert_eq!(polled["status"], "running");
    // Others are accepted and published meanwhile.
    let other = here.begin("echo", "hi").await;
    let ended = here.ended(&other).await;
    assert_members!(ended, {"status": "completed", "output_text": "echo: hi"});
    let events_of_other = here.follow(&other, 0).await.rest().await;
    assert_without_gap(&events_of_other);
    assert_eq!(events_of_other.last().unwrap()["data"], ended);

    redis.restart();
    until("the run's events are not on the board again", async || {
        redis.command(&["EVAL", STREAMS, "0", run_id]) == ":1"
    })
    .await;
    gate.open(1);
    let events = read_to_the_end(&here, &run, events, reader).await;
    assert_without_gap(&events);
    let ended = here.ended(&run).await;
    assert_members!(ended, {"status": "completed", "output_text": "echo: wait", "attempts": 1});
    let last = events.last().unwrap();
    assert_members!(last, {"type": "run.completed", "data": ended});
    assert_eq!(here.follow(&run, 0).await.rest().await, events);
    assert_eq!(here.get(&session_path(&run, "")).await["run_id"], run["run_id"]);
    assert_eq!(mock.asked(), 2);
    here.stop().await;
    there.stop().await;
}
