//! Runs with the talk of one session and the environment of another one.

use serde_json::{Value, json};

use super::{changed, session_with, texts};
use crate::http::service::{NOWHERE, Service};
use crate::support::members::assert_members;

on_every_store! {
    a_run_has_the_talk_of_one_session_and_the_files_of_another,
    a_queued_run_has_them_as_well,
    a_session_that_is_not_there_is_refused,
}

async fn run(service: &Service, body: Value) -> Value {
    service.run_with(body).await
}

fn id(run: &Value) -> String {
    run["session_id"].as_str().unwrap().to_owned()
}

async fn a_run_has_the_talk_of_one_session_and_the_files_of_another(service: &Service) {
    let talk = id(&run(service, json!({"input": "hi", "variables": {"a": 1}})).await);
    let files = session_with(service, &[("x", "1")]).await;
    let files = id(&run(
        service,
        json!({"input": "other", "base_session_id": files, "variables": {"b": 2}}),
    )
    .await);
    let body = json!({"input": "go on", "base_session_id": talk, "environment_from": files, "variables": {"c": 3}});
    let made = id(&run(service, body).await);
    let shown = service.get(&format!("/v1/sessions/{made}")).await;
    assert_members!(shown, {"parent_session_id": talk, "message_count": 4});
    assert_members!(shown, {"environment_session_id": files, "merged_session_id": null, "has_files_changed": true});
    let verified = service.get(&format!("/v1/sessions/{made}/verify")).await;
    assert_eq!(verified["valid"], true, "{verified:#}");
    assert_eq!(shown["environment_state"]["variables"], json!({"b": 2, "c": 3}));
    assert_eq!(texts(service, &made).await, texts(service, &files).await);
    // A new line of sessions can begin with files as well.
    let begun = id(&run(service, json!({"input": "hi", "environment_from": files})).await);
    let shown = service.get(&format!("/v1/sessions/{begun}")).await;
    assert_members!(shown, {"parent_session_id": null, "message_count": 2});
    assert_members!(shown, {"environment_session_id": files, "root_session_id": begun, "has_files_changed": true});
    assert_eq!(texts(service, &begun).await, texts(service, &files).await);
    // Rewinding the files and keeping the talk is the same.
    let newer = changed(service, &made, &[("x", "2")]).await;
    let body = json!({"input": "back", "base_session_id": newer, "environment_from": made});
    let back = id(&run(service, body).await);
    assert_eq!(texts(service, &back).await, texts(service, &files).await);
}

async fn a_queued_run_has_them_as_well(service: &Service) {
    let files = session_with(service, &[("x", "1")]).await;
    let body = json!({"input": "hi", "environment_from": files, "mode": "async"});
    let accepted = service.post("/v1/runs", &body).await.ok();
    let run_id = accepted["run_id"].as_str().unwrap();
    let ended = loop {
        let shown = service.get(&format!("/v1/runs/{run_id}?wait=30s")).await;
        if !["queued", "running"].contains(&shown["status"].as_str().unwrap()) {
            break shown;
        }
    };
    assert_eq!(ended["status"], "completed", "{ended:#}");
    assert_eq!(texts(service, &id(&ended)).await, texts(service, &files).await);
    let shown = service.get(&format!("/v1/sessions/{}?include=", id(&ended))).await;
    assert_members!(shown, {"environment_session_id": files, "run_status": "completed"});
}

async fn a_session_that_is_not_there_is_refused(service: &Service) {
    for (from, code) in [
        (json!(NOWHERE), "session_not_found"),
        (json!("x"), "malformed_id"),
        (json!(5), "invalid_field"),
    ] {
        let body = json!({"input": "hi", "environment_from": from});
        service.post("/v1/runs", &body).await.assert_problem(code);
    }
    service.assert_nothing_was_written().await;
}
