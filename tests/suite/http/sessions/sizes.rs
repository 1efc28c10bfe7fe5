//! Sessions that would be too large: nothing of them is stored, and the caller reads why.

use serde_json::{Value, json};

use crate::http::service::Service;
use crate::support::members::assert_members;
use crate::support::test_app::{run_path, session_path};

/// The most bytes of each part of a session.
const LIMIT: usize = 65_536;

async fn start() -> Service {
    Service::start_with(&[("store.max_session_bytes", &LIMIT.to_string())]).await
}

fn history(bytes: usize) -> Value {
    json!({"message_history_state": {"messages": [{"role": "user", "content": "x".repeat(bytes)}]}})
}

#[tokio::test]
async fn an_import_is_bounded_in_each_of_its_parts() {
    let service = start().await;
    let text = "x".repeat(LIMIT);
    let mut environment = history(10);
    environment["environment_state"] = json!({"notes": text});
    let mut context = history(10);
    context["context_state"] = json!({"system_prompt": text});
    for body in [history(LIMIT), environment, context] {
        let answer = service.post("/v1/sessions", &body).await;
        answer.assert_problem("session_too_large");
        assert_eq!(service.counts().await, (0, 0));
    }
    // A part alone counts, not the sum of all.
    let mut body = history(LIMIT - 1_000);
    body["context_state"] = json!({"system_prompt": "x".repeat(LIMIT - 1_000)});
    assert_eq!(service.post("/v1/sessions", &body).await.status, 201);
    service.finish().await;
}

#[tokio::test]
async fn a_run_without_room_for_its_input_is_refused_before_it_costs_anything() {
    let service = start().await;
    let base = service.post("/v1/sessions", &history(LIMIT - 1_000)).await.ok();
    let body = json!({"input": "x".repeat(1_000), "base_session_id": base["session_id"]});
    service
        .post("/v1/runs", &body)
        .await
        .assert_problem("session_too_large");
    service
        .post_keyed("/v1/runs", "key", &body)
        .await
        .assert_problem("session_too_large");
    let first = json!({"input": "x".repeat(LIMIT)});
    service
        .post("/v1/runs", &first)
        .await
        .assert_problem("session_too_large");
    assert_eq!((service.counts().await, service.models.asked()), ((1, 0), 0));
    // There is room for less.
    let body = json!({"input": "hi", "base_session_id": base["session_id"]});
    assert_eq!(service.run_with(body).await["status"], "completed");
    service.finish().await;
}

#[tokio::test]
async fn a_run_whose_session_grows_too_large_fails_and_publishes_nothing() {
    let service = start().await;
    // The model says it all again.
    let body = json!({"input": "x".repeat(LIMIT / 2)});
    for (number, queued) in [false, true].into_iter().enumerate() {
        let answer = if queued {
            service.post_keyed("/v1/runs", "key", &body).await
        } else {
            service.post("/v1/runs", &body).await
        };
        let run = answer.ok();
        assert_members!(run, {"status": "failed", "error/code": "session_too_large", "error/phase": "commit"});
        assert_eq!(service.counts().await, (0, number + 1));
        assert_eq!(service.try_get(&session_path(&run, "")).await.status, 404);
        let stored = service.get(&run_path(&run, "")).await;
        assert_eq!(stored["error"], run["error"]);
    }
    service.finish().await;
}
