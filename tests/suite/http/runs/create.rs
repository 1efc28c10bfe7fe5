//! Runs that are started: their results, lost connections, lost races, and too many at once.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::logs::listen;
use test_support::statements::Statements;
use tokio::io::AsyncReadExt as _;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;

use crate::http::service::{MAX_RUNS, Service};
use crate::support::members::assert_members;
use crate::support::test_app::{run_path, session_path};

on_every_store! {
    a_synchronous_run_answers_with_its_result,
    every_form_of_input_is_taken,
    a_lost_connection_cancels_its_run_which_commits_nothing,
    a_run_that_continues_on_disconnect_outlives_its_connection,
    a_rival_is_refused_with_the_id_of_the_other_run,
    a_race_lost_at_the_commit_answers_as_the_refusal_does,
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
    assert_members!(run, {"status": "completed", "output_text": "echo: hi", "output/0/role": "assistant"});
    assert_members!(run, {"usage/total_tokens": 15, "error": null, "base_session_id": null});
    assert_eq!(run["metadata"], json!({"user": "u1"}));
    let path = run_path(&run, "");
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
        let session = service.get(&session_path(&run, "")).await;
        assert_eq!(session["message_count"], messages);
    }
}

async fn a_lost_connection_cancels_its_run_which_commits_nothing(service: &Service) {
    for (mode, count) in [("sync", 1), ("stream", 2)] {
        let body = json!({"input": "hi", "model": "mock/gated", "mode": mode});
        let stream = service.open_run(&body).await;
        service.gate.until_waiting(1).await;
        drop(stream);
        service.gate.until_waiting(0).await;
        service.until_counts((0, count)).await;
        let runs = service.get("/v1/runs").await;
        assert_eq!(runs["data"].as_array().unwrap().len(), count);
        let run = &runs["data"][0];
        assert_members!(run, {"status": "cancelled", "stop_reason": "user_requested"}, "{mode}");
        let session = service.try_get(&session_path(run, "")).await;
        session.assert_problem("session_not_committed");
        assert_members!(session.json(), {"run_id": run["run_id"], "run_status": "cancelled"});
    }
}

async fn a_run_that_continues_on_disconnect_outlives_its_connection(service: &Service) {
    for (mode, count) in [("sync", 1), ("stream", 2)] {
        let body = json!({"input": "hi", "model": "mock/gated", "mode": mode, "on_disconnect": "continue"});
        let mut stream = service.open_run(&body).await;
        if mode == "stream" {
            stream.read_u8().await.unwrap();
        }
        service.gate.until_waiting(1).await;
        drop(stream);
        service.gate.open(1);
        service.until_counts((count, count)).await;
        let run = &service.get("/v1/runs").await["data"][0];
        assert_members!(run, {"status": "completed"}, "{mode}");
        assert_eq!(service.get(&session_path(run, "")).await["message_count"], 2);
    }
}

async fn a_rival_is_refused_with_the_id_of_the_other_run(service: &Service) {
    let base = service.run_with(json!({"input": "hi"})).await;
    let rival = json!({"input": "b", "base_session_id": base["session_id"], "conflict": "reject"});
    let gated = json!({"input": "a", "base_session_id": base["session_id"], "model": "mock/gated"});
    let running = service.post("/v1/runs", &gated);
    let refused = async {
        service.gate.until_waiting(1).await;
        let answer = service.post("/v1/runs", &rival).await;
        service.gate.open(1);
        answer
    };
    let (first, refused) = tokio::join!(running, refused);
    let first = first.ok();
    refused.assert_problem("base_session_conflict");
    assert_eq!(refused.json()["run_id"], first["run_id"]);
    // The other run has committed by now.
    let late = service.post("/v1/runs", &rival).await;
    late.assert_problem("base_session_conflict");
    assert_eq!(late.json()["run_id"], first["run_id"]);
    assert_eq!(service.models.asked(), 2, "a refused run does not reach the model");
}

async fn a_race_lost_at_the_commit_answers_as_the_refusal_does(service: &Service) {
    let base = service.run_with(json!({"input": "hi"})).await;
    let rival =
        json!({"input": "a", "base_session_id": base["session_id"], "model": "mock/gated", "conflict": "reject"});
    let running = service.post("/v1/runs", &rival);
    let winner = async {
        service.gate.until_waiting(1).await;
        let winner = service
            .run_with(json!({"input": "b", "base_session_id": base["session_id"]}))
            .await;
        service.gate.open(1);
        winner
    };
    let (lost, winner) = tokio::join!(running, winner);
    lost.assert_problem("base_session_conflict");
    assert_eq!(lost.json()["run_id"], winner["run_id"]);
}

#[tokio::test]
async fn a_run_too_many_is_refused_with_retry_after() {
    let service = Service::start().await;
    let body = json!({"input": "hi", "model": "mock/gated"});
    let running = futures_util::future::join_all((0..MAX_RUNS).map(|_| service.post("/v1/runs", &body)));
    let one_more = async {
        service.gate.until_waiting(MAX_RUNS).await;
        let answer = service.post("/v1/runs", &json!({"input": "hi"})).await;
        answer.assert_problem("too_many_runs");
        assert_eq!(answer.header("retry-after"), "1");
        service.gate.open(MAX_RUNS);
    };
    let (answers, ()) = tokio::join!(running, one_more);
    assert!(answers.iter().all(|answer| answer.status == 200));
    service.run_with(json!({"input": "hi"})).await;
    service.finish().await;
}

#[tokio::test]
async fn runs_that_begin_at_once_fill_no_queue() {
    let service = Service::start_with(&[("queue.max_waiting", "1")]).await;
    for number in 0..8 {
        let key = format!("key-{number}");
        let answer = service.post_keyed("/v1/runs", &key, &json!({"input": "hi"})).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    service.finish().await;
}

#[tokio::test]
async fn a_full_queue_is_refused_with_retry_after() {
    // Nobody takes runs from the queue.
    let service = Service::start_with(&[("queue.role", "api"), ("queue.max_waiting", "1")]).await;
    let body = json!({"input": "hi", "mode": "async"});
    let waiting = service.post("/v1/runs", &body).await;
    assert_eq!(waiting.status, 202, "{}", waiting.text());
    let answer = service.post("/v1/runs", &body).await;
    answer.assert_problem("queue_full");
    assert_ne!(answer.header("retry-after"), "");
    assert_eq!(service.counts().await, (0, 1));
    // What needs no place in the queue is none too many.
    service.run_with(json!({"input": "hi"})).await;
    let cancel = format!("/v1/runs/{}/cancel", waiting.json()["run_id"].as_str().unwrap());
    let cancelled = service.post(&cancel, &json!({})).await;
    assert_eq!(cancelled.json()["status"], "cancelled", "{}", cancelled.text());
    service.finish().await;
}

// One thread, so that the subscriber of this thread sees all of the driver's work.
#[tokio::test(flavor = "current_thread")]
async fn a_durable_run_that_begins_at_once_reads_only_its_messages() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let service = Service::start_on(database, &[]).await;
    let body = json!({"input": "hi", "durability": "step"});
    service.run_with(body.clone()).await;
    let statements = Statements::of(&[
        "insert into runs",
        "from runs",
        "run_journal",
        "run_messages",
        "run_events",
    ]);
    let _listening = listen(Registry::default().with(statements.clone()));
    let run = service.run_with(body).await;
    assert_eq!(run["status"], "completed");
    assert_eq!(
        statements.taken(),
        3,
        "the acceptance, the messages to the run and the end"
    );
    let stored = service.get(&run_path(&run, "")).await;
    assert_eq!(stored, run);
    assert_eq!(statements.taken(), 1, "the read");
    service.finish().await;
}
