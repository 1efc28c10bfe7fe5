//! Runs over HTTP: synchronous and streamed, and the list of them.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};

use super::service::Service;
use crate::support::answer::{read, with_json};

on_every_store! {
    a_synchronous_run_answers_with_its_result,
    every_form_of_input_is_taken,
    a_streamed_run_emits_its_events_and_ends,
    runs_are_listed_newest_first_in_pages_and_filtered,
    steps_are_listed_in_their_order_in_pages,
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

async fn a_synchronous_run_answers_with_its_result(service: &Service) {
    let run = service
        .run_with(json!({"input": "hi", "metadata": {"user": "u1"}, "mode": "sync"}))
        .await;
    let keys: BTreeSet<_> = run.as_object().unwrap().keys().map(String::as_str).collect();
    let fixed = [
        "run_id",
        "session_id",
        "base_session_id",
        "agent",
        "status",
        "stop_reason",
        "output_text",
        "output",
        "usage",
        "step_count",
        "error",
        "created_at",
        "started_at",
        "completed_at",
    ];
    assert!(fixed.iter().all(|key| keys.contains(key)), "{keys:?}");
    assert_eq!(run["status"], "completed");
    assert_eq!(run["output_text"], "echo: hi");
    assert_eq!(run["output"][0]["role"], "assistant");
    assert_eq!(run["usage"]["total_tokens"], 15);
    assert_eq!((&run["error"], &run["base_session_id"]), (&Value::Null, &Value::Null));
    assert_eq!(run["metadata"], json!({"user": "u1"}));
    let path = format!("/v1/runs/{}", run["run_id"].as_str().unwrap());
    assert_eq!(service.get(&path).await, run);
    let steps = service.get(&format!("{path}/steps")).await;
    assert_eq!(
        (steps["data"].as_array().unwrap().len(), &steps["next_cursor"]),
        (1, &Value::Null)
    );
    assert_eq!(steps["data"][0]["step_type"], "final_response");
    assert_eq!(
        steps["data"][0]["messages"][0]["content"],
        json!([{"type": "text", "text": "echo: hi"}])
    );
}

async fn every_form_of_input_is_taken(service: &Service) {
    let conversation = json!([
        {"role": "user", "name": "ann", "content": "What is 1+1?", "metadata": {"n": 1}},
        {"role": "assistant", "content": [{"type": "tool_call", "id": "c", "name": "calculator", "arguments": "{\"expression\": \"1+1\"}"}]},
        {"role": "tool", "content": [{"type": "tool_result", "call_id": "c", "name": "calculator", "content": [{"type": "text", "text": "2"}]}]},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": [{"type": "text", "text": "Thanks."}]},
    ]);
    let parts = json!([{"type": "text", "text": "a"}, {"type": "image", "source": {"kind": "url", "url": "https://example.org/a.png"}},
        {"type": "document", "source": {"kind": "base64", "media_type": "application/pdf", "data": "JVBERg=="}, "name": "a.pdf"}]);
    for (input, text, messages) in [
        (json!("hi"), "echo: hi", 2),
        (parts, "echo: a", 2),
        (conversation, "echo: Thanks.", 6),
    ] {
        let run = service.run_with(json!({"input": input})).await;
        assert_eq!(run["output_text"], text);
        let session = service
            .get(&format!("/v1/sessions/{}", run["session_id"].as_str().unwrap()))
            .await;
        assert_eq!(session["message_count"], messages);
    }
}

async fn a_streamed_run_emits_its_events_and_ends(service: &Service) {
    let answer = service
        .post("/v1/runs", &json!({"input": "hi", "mode": "stream"}))
        .await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("content-type")),
        (200, "text/event-stream")
    );
    assert_eq!(
        (answer.header("x-accel-buffering"), answer.header("cache-control")),
        ("no", "no-store")
    );
    let events = events(&answer.text());
    let names: Vec<_> = events.iter().map(|(_, name, _)| name.as_str()).collect();
    let story = [
        "run.started",
        "execution.started",
        "step.started",
        "model.requested",
        "message.delta",
        "model.responded",
        "step.completed",
        "continuation.evaluated",
        "execution.ended",
        "session.committed",
        "run.completed",
    ];
    assert_eq!(names, story);
    for (index, (id, name, data)) in events.iter().enumerate() {
        assert_eq!(
            (id.as_str(), &data["sequence"]),
            ((index + 1).to_string().as_str(), &json!(index + 1))
        );
        assert_eq!(data["type"], name.as_str());
        assert_eq!(data["run_id"], events[0].2["run_id"]);
    }
    let (_, _, last) = events.last().unwrap();
    let run = service
        .get(&format!("/v1/runs/{}", last["run_id"].as_str().unwrap()))
        .await;
    assert_eq!(last["data"], run);
    assert_eq!(run["output_text"], "echo: hi");
}

#[tokio::test]
async fn events_leave_at_once_and_silence_is_filled_with_comments() {
    let service = Service::start_with(&[("http.keep_alive_interval", "20ms")]).await;
    let request = service.request(Method::POST, "/v1/runs");
    let body = json!({"input": "hi", "mode": "stream", "model": "mock/gated"});
    let mut caller = with_json(request, &body).send().await.unwrap();
    let mut told = String::new();
    read_up_to(&mut caller, &mut told, ": keep-alive").await;
    // The model has not said a word yet.
    assert!(told.contains("event: run.started"), "{told}");
    let run = &service.get("/v1/runs?status=running").await["data"][0];
    let path = format!("/v1/runs/{}/events", run["run_id"].as_str().unwrap());
    let mut reader = service.request(Method::GET, &path).send().await.unwrap();
    let mut read = String::new();
    read_up_to(&mut reader, &mut read, ": keep-alive").await;
    assert!(read.contains("event: run.started"), "{read}");
    service.gate.open(1);
    read_up_to(&mut caller, &mut told, "event: run.completed").await;
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

async fn runs_are_listed_newest_first_in_pages_and_filtered(service: &Service) {
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(service.run_with(json!({"input": n.to_string()})).await["run_id"].clone());
    }
    ids.reverse();
    let mut listed = Vec::new();
    let mut path = "/v1/runs?limit=2&agent=demo&status=completed".to_owned();
    loop {
        let page = service.get(&path).await;
        let rows = page["data"].as_array().unwrap();
        assert!(rows.iter().all(|run| run.get("output").is_none()));
        listed.extend(rows.iter().map(|run| run["run_id"].clone()));
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("/v1/runs?limit=2&agent=demo&status=completed&cursor={cursor}");
    }
    assert_eq!(listed, ids);
    for none in [
        "status=failed",
        "agent=other",
        "base_session_id=0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11",
    ] {
        assert_eq!(
            service.get(&format!("/v1/runs?{none}")).await,
            json!({"data": [], "next_cursor": null}),
            "{none}"
        );
    }
    assert_eq!(
        read(service.request(Method::GET, "/v1/runs?limit=200")).await.ok()["data"]
            .as_array()
            .unwrap()
            .len(),
        5
    );
}

async fn steps_are_listed_in_their_order_in_pages(service: &Service) {
    let call = json!({"tool_calls": [{"name": "calculator", "arguments": {"expression": "1+1"}}]});
    let script = json!([call, call, call, call, {"text": "done"}]);
    let agent = json!({"model": "mock/echo", "driver": "scripted", "tools": ["calculator"], "script": script});
    service.put_agent("stepping", agent).await;
    let run = service.run_with(json!({"agent": "stepping", "input": "hi"})).await;
    let path = format!("/v1/runs/{}/steps", run["run_id"].as_str().unwrap());
    let whole = service.get(&path).await;
    assert_eq!(whole["data"].as_array().unwrap().len(), 5);
    assert_eq!(
        whole["next_cursor"],
        Value::Null,
        "without a limit all stand on one page"
    );

    let (mut listed, mut sizes) = (Vec::new(), Vec::new());
    let mut page = service.get(&format!("{path}?limit=2")).await;
    loop {
        let rows = page["data"].as_array().unwrap();
        sizes.push(rows.len());
        listed.extend(rows.clone());
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        page = service.get(&format!("{path}?limit=2&cursor={cursor}")).await;
    }
    assert_eq!(
        (listed, sizes),
        (whole["data"].as_array().unwrap().clone(), vec![2, 2, 1])
    );
    let full = service.get(&format!("{path}?limit=5")).await;
    assert_eq!(full, whole, "a full page that is the last has no cursor");
    let beyond = service.get(&format!("{path}?cursor=n{:016x}", u64::MAX)).await;
    assert_eq!(beyond, json!({"data": [], "next_cursor": null}));
    for (query, code) in [
        ("limit=0", "invalid_parameter"),
        ("limit=201", "invalid_parameter"),
        ("limit=-1", "invalid_parameter"),
        ("cursor=m0000000000000001", "invalid_cursor"),
        ("cursor=x", "invalid_cursor"),
    ] {
        let answer = read(service.request(Method::GET, &format!("{path}?{query}"))).await;
        answer.assert_problem(code);
    }
}
