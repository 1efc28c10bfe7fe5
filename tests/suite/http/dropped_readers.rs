//! Readers whose key or login ends: their streams end early, and the runs go on.

use reqwest::{Method, Response};
use serde_json::{Value, json};
use store::keys::Scope;
use test_support::drafts::requester_at;
use tokio::time::timeout;
use values::clock::Clock as _;

use super::service::Service;
use crate::support::answer::{read, with_json};
use crate::support::changes::{Changes, PATIENCE};
use crate::support::members::assert_members;
use crate::support::test_app::sse_data;

on_every_store! {
    with &[("http.keep_alive_interval", "20ms")];
    streams_end_with_their_key_and_their_runs_go_on,
    streams_without_a_key_end_with_the_first_key,
}

const REASON: &str = "the API key or the login of the reader is no longer valid";

/// Reads a stream to its end, and returns what its events say. A stream for clients of OpenAI ends
/// with a mark.
async fn rest(response: Response) -> Vec<Value> {
    assert_eq!(response.status(), 200);
    let text = timeout(PATIENCE, response.text()).await.unwrap().unwrap();
    sse_data(text.strip_suffix("data: [DONE]\n\n").unwrap_or(&text))
}

/// Checks the last event of a dropped reader of a run, who has all events before.
fn assert_dropped(events: &[Value]) {
    let (last, before) = events.split_last().unwrap();
    assert!(!before.is_empty());
    assert_members!(last, {"type": "stream.dropped", "data/reason": REASON, "data/after": before.len()});
}

async fn streams_end_with_their_key_and_their_runs_go_on(service: &Service) {
    let (_, kept) = service.make_key("acme", &[Scope::Admin]).await;
    let (key_id, key) = service.make_key("acme", &[Scope::Admin]).await;
    let agent = service.request(Method::PUT, "/v1/agents/slow").bearer_auth(&kept);
    read(with_json(agent, &json!({"model": "mock/gated"}))).await.ok();
    let post = async |path: &str, body: Value| {
        let request = service.request(Method::POST, path).bearer_auth(&key);
        with_json(request, &body).send().await.unwrap()
    };
    let get = |path: &str, key: &str| service.request(Method::GET, path).bearer_auth(key);
    let mut witness = Changes::open(service, &kept).await;
    let changes = Changes::open(service, &key).await;
    let run = json!({"agent": "slow", "input": "hi", "mode": "stream", "on_disconnect": "cancel"});
    let run = post("/v1/runs", run).await;
    let of_runs = read(get("/v1/runs", &kept)).await.ok();
    let path = format!("/v1/runs/{}/events", of_runs["data"][0]["run_id"].as_str().unwrap());
    let events = get(&path, &key).send().await.unwrap();
    let body = json!({"model": "slow", "input": "hi", "stream": true});
    let response = post("/v1/responses", body).await;
    let body = json!({"model": "slow", "messages": [{"role": "user", "content": "hi"}], "stream": true});
    let chat = post("/v1/chat/completions", body).await;
    service.gate.until_waiting(3).await;

    let store = &service.app.runs.store;
    assert!(
        store
            .key_revoke(key_id, &requester_at(service.clock.now()))
            .await
            .unwrap()
    );
    let dropped = json!({"type": "stream.dropped", "data": {"reason": REASON}});
    assert_eq!(changes.last().await, dropped);
    for stream in [run, events] {
        assert_dropped(&rest(stream).await);
    }
    let response = rest(response).await;
    let last = response.last().unwrap();
    assert_members!(last, {"type": "response.failed", "response/error/code": "stream_dropped"});
    let chat = rest(chat).await;
    assert_eq!(chat.last().unwrap()["error"]["code"], "stream_dropped");

    service.gate.open(3);
    let mut completed = 0;
    while completed < 3 {
        let event = witness.next().await.unwrap();
        assert_ne!(event["data"]["status"], "cancelled", "{event}");
        completed += usize::from(event["data"]["status"] == "completed");
    }
}

async fn streams_without_a_key_end_with_the_first_key(service: &Service) {
    let changes = Changes::open(service, "").await;
    service.make_key("acme", &[Scope::Admin]).await;
    assert_eq!(changes.last().await["data"]["reason"], REASON);
}
