//! Runs as streams of events.

use reqwest::Method;
use serde_json::{Value, json};

use crate::http::service::Service;
use crate::support::answer::with_json;
use crate::support::test_app::run_path;

on_every_store! {
    a_streamed_run_emits_its_events_and_ends,
}

/// Parses server-sent events into (id, event, data); comments are left out.
fn events(text: &str) -> Vec<(String, String, Value)> {
    let field = |block: &str, name: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap_or_default().trim_start_matches(':').trim().to_owned()
    };
    let blocks = text.split("\n\n").filter(|block| block.contains("data:"));
    blocks
        .map(|block| {
            (
                field(block, "id"),
                field(block, "event"),
                serde_json::from_str(&field(block, "data")).unwrap(),
            )
        })
        .collect()
}

async fn a_streamed_run_emits_its_events_and_ends(service: &Service) {
    let answer = service
        .post("/v1/runs", &json!({"input": "hi", "mode": "stream"}))
        .await;
    assert_eq!(answer.status, 200);
    let headers = ["content-type", "x-accel-buffering", "cache-control"].map(|name| answer.header(name));
    assert_eq!(headers, ["text/event-stream", "no", "no-store"]);
    let events = events(&answer.text());
    for (index, (id, name, data)) in events.iter().enumerate() {
        assert_eq!(
            (id.as_str(), &data["sequence"]),
            ((index + 1).to_string().as_str(), &json!(index + 1))
        );
        assert_eq!(data["type"], name.as_str());
        assert_eq!(data["run_id"], events[0].2["run_id"]);
    }
    let (_, name, last) = events.last().unwrap();
    assert_eq!(name, "run.completed");
    let run = service.get(&run_path(last, "")).await;
    assert_eq!(last["data"], run);
    assert_eq!(run["output_text"], "echo: hi");
}

#[tokio::test]
async fn events_leave_at_once_and_silence_is_filled_with_comments() {
    let service = Service::start_with(&[("http.keep_alive_interval", "20ms")]).await;
    let request = service.request(Method::POST, "/v1/runs");
    let body = json!({"input": "hi", "mode": "stream", "model": "mock/gated"});
    let mut caller = with_json(request, &body).send().await.unwrap();
    let mut reported = String::new();
    read_up_to(&mut caller, &mut reported, ": keep-alive").await;
    // The model has not said a word yet.
    assert!(reported.contains("event: run.started"), "{reported}");
    let run = &service.get("/v1/runs?status=running").await["data"][0];
    let path = run_path(run, "/events");
    let mut reader = service.request(Method::GET, &path).send().await.unwrap();
    let mut read = String::new();
    read_up_to(&mut reader, &mut read, ": keep-alive").await;
    assert!(read.contains("event: run.started"), "{read}");
    service.gate.open(1);
    read_up_to(&mut caller, &mut reported, "event: run.completed").await;
    read_up_to(&mut reader, &mut read, "event: run.completed").await;
    service.finish().await;
}

/// Reads a stream until it has said this.
async fn read_up_to(response: &mut reqwest::Response, text: &mut String, words: &str) {
    while !text.contains(words) {
        let chunk = response.chunk().await.unwrap();
        let chunk = chunk.unwrap_or_else(|| panic!("the stream ended without {words}: {text}"));
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
}
