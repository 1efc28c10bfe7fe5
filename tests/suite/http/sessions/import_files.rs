//! Imports of sessions whose environment refers to files.

use serde_json::json;

use crate::http::service::Service;

on_every_store! {
    files_that_are_stored_here_come_with_the_session,
    files_that_are_not_stored_here_are_refused,
}

async fn files_that_are_stored_here_come_with_the_session(service: &Service) {
    let first = service.run_with(json!({"input": "hi"})).await;
    let path = format!("/v1/sessions/{}/files", first["session_id"].as_str().unwrap());
    let large = "0123456789abcdef".repeat(150_000);
    let changes = json!({"changes": [{"path": "a/b", "content": "text"}, {"path": "large", "content": large}]});
    let child = service.post(&path, &changes).await.ok();
    let child = service
        .get(&format!("/v1/sessions/{}", child["session_id"].as_str().unwrap()))
        .await;
    let environment = &child["environment_state"];
    assert!(environment["workspace"]["tree"].is_string(), "{environment}");
    let made = service
        .post("/v1/sessions", &json!({"environment_state": environment}))
        .await;
    assert_eq!(made.status, 201);
    let made = made.ok();
    let path = format!("/v1/sessions/{}", made["session_id"].as_str().unwrap());
    assert_eq!(service.get(&format!("{path}/verify")).await["valid"], true);
    assert_eq!(service.get(&path).await["environment_state"], *environment);
}

async fn files_that_are_not_stored_here_are_refused(service: &Service) {
    let workspace = json!({"tree": "0".repeat(64)});
    let body = json!({"environment_state": {"workspace": workspace}});
    let answer = service.post("/v1/sessions", &body).await;
    answer.assert_problem("invalid_field");
    let problem = answer.json();
    assert_eq!(
        problem["errors"][0]["pointer"], "/environment_state/workspace/tree",
        "{problem:#}"
    );
}
