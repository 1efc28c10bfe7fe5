//! Two replicas on one database and one Redis: each shows the runs of the other.

use std::time::{Duration, Instant};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::gate::Gate;
use test_support::wait::until;

use super::binary::PATIENCE;
use super::service::Service;
use super::workers::Pair;
use crate::support::members::extended;
use crate::support::mock_model::{Reply, content_text, last_user_text};
use crate::support::test_app::run_path;

/// Starts replicas, or prints why the test is skipped.
async fn replicas() -> Option<Pair> {
    let model = |request: &Value| match last_user_text(request).as_str() {
        "endless" => Reply::Slow(vec!["on ".to_owned(); 10_000], Duration::from_millis(20)),
        text => Reply::text(&format!("{}: {text}", content_text(&request["messages"][0]["content"]))),
    };
    Pair::start(["all", "all"], Gate::new(), model).await
}

/// Reads the status of a run.
async fn status(service: &Service, run_id: &str) -> Option<Value> {
    let (status, run) = service.call(Method::GET, &format!("/v1/runs/{run_id}"), None).await;
    (status == StatusCode::OK).then(|| run["status"].clone())
}

/// How long another replica may use an agent that was replaced.
const STALE: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_changed_agent_is_used_at_once_here_and_soon_there() {
    let Some(replicas) = replicas().await else { return };
    let Pair { here, there, .. } = &replicas;
    let says = async |service: &Service| service.run("changing", None, "hi").await["output_text"].clone();
    for round in 0..8 {
        let agent = json!({"model": "mock/m", "system_prompt": format!("v{round}")});
        here.put_agent("changing", agent).await;
        let changed = Instant::now();
        let wanted = json!(format!("v{round}: hi"));
        // Runs at both replicas while the first one answers, so that both have the agent in memory.
        let (own, _) = tokio::join!(says(here), says(there));
        assert_eq!(own, wanted);
        loop {
            let is_late = changed.elapsed() > STALE;
            let other = says(there).await;
            if is_late {
                assert_eq!(other, wanted);
                break;
            }
        }
    }
    replicas.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_replica_shows_a_live_run() {
    let Some(replicas) = replicas().await else { return };
    let Pair { here, there, .. } = &replicas;
    let root = here.run("echo", None, "root").await;
    let base = &root["session_id"];
    let mut events = here.stream(json!({"input": "endless", "base_session_id": base})).await;
    let begun = events.until("run.started").await["data"].clone();
    events.until("message.delta").await;
    let run_id = begun["run_id"].as_str().unwrap();

    assert_eq!(status(there, run_id).await.unwrap(), "running");
    let listed = there.get("/v1/runs?status=running").await;
    assert_eq!(listed["data"][0]["run_id"], begun["run_id"], "{listed:#}");
    let problem = there.uncommitted(&begun).await;
    assert_eq!(problem["run_id"], begun["run_id"]);
    let rival = json!({"agent": "echo", "input": "rival", "base_session_id": base, "conflict": "reject"});
    let conflict = "base_session_conflict";
    let problem = there.refused(Method::POST, "/v1/runs", Some(rival), conflict).await;
    assert_eq!(problem["run_id"], begun["run_id"]);

    drop(events);
    until("the end is not known", async || {
        status(there, run_id).await.unwrap() == "cancelled"
    })
    .await;
    replicas.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_at_another_replica_keeps_a_run_at_work_until_it_leaves() {
    let Some(replicas) = replicas().await else { return };
    let Pair { here, there, .. } = &replicas;
    let fields = json!({"input": "endless", "on_disconnect": "stop", "disconnect_grace_seconds": 1});
    for durability in ["session", "step"] {
        let mut events = here
            .stream(extended(fields.clone(), &json!({"durability": durability})))
            .await;
        let begun = events.until("run.started").await["data"].clone();
        let run_id = begun["run_id"].as_str().unwrap();
        events.until("message.delta").await;
        let mut elsewhere = there.follow(&begun, 0).await;
        elsewhere.until("message.delta").await;
        drop(events);
        // Four seconds of words.
        for _ in 0..200 {
            elsewhere.until("message.delta").await;
        }
        assert_eq!(status(here, run_id).await.unwrap(), "running", "{durability}");
        drop(elsewhere);
        until("the run goes on without readers", async || {
            status(there, run_id).await.unwrap() == "stopped"
        })
        .await;
    }
    replicas.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conversation_continues_at_any_replica() {
    let Some(replicas) = replicas().await else { return };
    let Pair { here, there, mock, .. } = &replicas;
    let mut last = here.run("echo", None, "turn 0").await;
    for turn in 1..10 {
        let service = if turn % 2 == 0 { here } else { there };
        let base = last["session_id"].as_str().unwrap().to_owned();
        let session = service.get(&format!("/v1/sessions/{base}")).await;
        assert_eq!(session["run_id"], last["run_id"]);
        last = service.run("echo", Some(&base), &format!("turn {turn}")).await;
    }
    let request = mock.requests().pop().unwrap();
    let users = request["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "user");
    let texts: Vec<_> = users.map(|message| content_text(&message["content"])).collect();
    assert_eq!(texts, (0..10).map(|turn| format!("turn {turn}")).collect::<Vec<_>>());
    replicas.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_runs_of_a_stopped_replica_are_gone_at_once() {
    let Some(replicas) = replicas().await else { return };
    let Pair { here, there, .. } = &replicas;
    let root = here.run("echo", None, "root").await;
    let base = root["session_id"].clone();
    let mut events = here.stream(json!({"input": "endless", "base_session_id": base})).await;
    let begun = events.until("run.started").await["data"].clone();
    events.until("message.delta").await;
    let run_id = begun["run_id"].as_str().unwrap();
    assert_eq!(status(there, run_id).await.unwrap(), "running");
    here.signal("TERM");
    let ended = events.rest().await;
    assert_eq!(ended.last().unwrap()["type"], "run.cancelled");
    let Pair { here, there, redis, .. } = replicas;
    let ended = here.end_within(PATIENCE).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);

    // Not after an expiry of half a minute: the board has nothing of it any more.
    assert_eq!(status(&there, run_id).await.unwrap(), "cancelled");
    assert_eq!(there.get("/v1/runs?status=running").await["data"], json!([]));
    let heir = json!({"agent": "echo", "input": "heir", "base_session_id": base, "conflict": "reject"});
    there.post("/v1/runs", heir).await;
    there.stop().await;
    // Events stay for a while, and nothing else.
    let others = "local others = 0
        for _, key in ipairs(redis.call('KEYS', '*')) do
          if not string.find(key, ':events:', 1, true) then others = others + 1 end
        end
        return others";
    assert_eq!(
        redis.command(&["EVAL", others, "0"]),
        ":0",
        "something is left on the board"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_of_a_killed_replica_is_unreachable() {
    let Some(replicas) = replicas().await else { return };
    let Pair { here, there, .. } = replicas;
    let mut events = here.stream(json!({"input": "endless"})).await;
    let begun = events.until("run.started").await["data"].clone();
    events.until("message.delta").await;
    let steer = run_path(&begun, "/steer");
    let message = json!({"id": "m", "input": "mind this"});
    let steered = there.post(&steer, message.clone()).await;
    assert_eq!(steered, json!({"id": "m", "status": "received"}));
    here.signal("KILL");
    here.end_within(PATIENCE).await;
    until("somebody hears the message", async || {
        let (code, problem) = there.call(Method::POST, &steer, Some(message.clone())).await;
        (code, &problem["code"]) == (StatusCode::SERVICE_UNAVAILABLE, &json!("run_unreachable"))
    })
    .await;
    there.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_the_board_stops_no_run() {
    let Some(mut replicas) = replicas().await else { return };
    let mut events = replicas.here.stream(json!({"input": "endless"})).await;
    events.until("message.delta").await;
    replicas.redis.stop();
    let root = replicas.here.run("echo", None, "root").await;
    let base = root["session_id"].as_str();
    replicas.there.run("echo", base, "next").await;
    drop(events);
    let Pair { here, there, .. } = replicas;
    for service in [here, there] {
        service.signal("TERM");
        let ended = service.end_within(PATIENCE).await;
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    }
}
