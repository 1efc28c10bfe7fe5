//! The process is killed: every response was stored before, and nothing is stored in part.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::wait::until;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::binary::{Home, PATIENCE};
use super::service::Service;
use crate::end_to_end::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, last_user_text};
use crate::support::test_app::session_path;
use crate::support::text::{assert_contains, assert_lacks};

on_every_store!(
    a_kill_before_the_completion_leaves_nothing,
    a_kill_during_the_completion_leaves_nothing,
    a_kill_right_after_the_end_loses_nothing,
    a_kill_under_load_loses_no_response
);

async fn model() -> MockModel {
    MockModel::start(|request| match last_user_text(request).as_str() {
        "silent" => Reply::Slow(vec!["never".to_owned()], Duration::from_mins(10)),
        "endless" => Reply::Slow(vec!["on ".to_owned(); 10_000], Duration::from_millis(10)),
        text => Reply::text(&format!("echo: {text}")),
    })
    .await
}

/// Reads every session that can be listed, and checks that each is whole.
async fn assert_whole(service: &Service) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut path = "/v1/sessions?limit=100".to_owned();
    loop {
        let page = service.get(&path).await;
        for head in page["data"].as_array().unwrap() {
            let session_id = head["session_id"].as_str().unwrap();
            let report = service.get(&format!("/v1/sessions/{session_id}/verify")).await;
            assert_eq!(report["valid"], true, "{report:#}");
            let lineage = service.get(&format!("/v1/sessions/{session_id}/lineage")).await;
            assert!(!lineage["data"].as_array().unwrap().is_empty());
            let run = head["run_id"].as_str().unwrap();
            let run = service.get(&format!("/v1/runs/{run}")).await;
            assert_members!(run, {"status": "completed", "session_id": head["session_id"]});
            found.insert(session_id.to_owned());
        }
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        path = format!("/v1/sessions?limit=100&cursor={cursor}");
    }
    found
}

/// Kills the service in a run of this input, after the event if one is named, and checks what is
/// stored.
async fn kill_in(database: &TestDatabase, input: &str, after: Option<&str>) {
    let mock = model().await;
    let home = Home::new(database.url()).with_mock(&mock);
    let service = Service::start(&home).await;
    let root = service.run("echo", None, "root").await;
    let base = root["session_id"].as_str().unwrap();
    let mut events = service
        .stream(json!({"input": input, "base_session_id": base, "conflict": "reject"}))
        .await;
    let begun = events.until("run.started").await["data"].clone();
    if let Some(event) = after {
        events.until(event).await;
    } else {
        until("the model is never asked", async || mock.asked() >= 2).await;
    }
    service.kill();

    let service = Service::start(&home).await;
    assert_eq!(assert_whole(&service).await, BTreeSet::from([base.to_owned()]));
    let reserved = session_path(&begun, "");
    assert_eq!(
        service.call(Method::GET, &reserved, None).await.0,
        StatusCode::NOT_FOUND
    );
    let children = service.get(&format!("/v1/sessions/{base}/children")).await;
    assert_eq!(children["data"], json!([]));
    let body = json!({"agent": "echo", "input": "next", "base_session_id": base, "conflict": "reject"});
    // A dead run does not stand in the way.
    service.post("/v1/runs", body).await;
    let last = mock.requests().pop().unwrap();
    let texts = last["messages"].to_string();
    assert_contains!(texts, "root", "next");
    assert_lacks!(texts, input);
    assert_eq!(assert_whole(&service).await.len(), 2);
    service.stop().await;
}

async fn a_kill_before_the_completion_leaves_nothing(database: TestDatabase) {
    kill_in(&database, "silent", None).await;
}

async fn a_kill_during_the_completion_leaves_nothing(database: TestDatabase) {
    kill_in(&database, "endless", Some("message.delta")).await;
}

async fn a_kill_right_after_the_end_loses_nothing(database: TestDatabase) {
    let mock = model().await;
    let home = Home::new(database.url()).with_mock(&mock);
    let mut base: Option<String> = None;
    for event in ["session.committed", "run.completed", "session.committed"] {
        let service = Service::start(&home).await;
        let mut body = json!({"input": "hello"});
        if let Some(base) = &base {
            body["base_session_id"] = json!(base);
        }
        let mut events = service.stream(body).await;
        let session_id = events.until(event).await["data"]["session_id"].clone();
        service.kill();
        base = Some(session_id.as_str().unwrap().to_owned());
    }
    let service = Service::start(&home).await;
    assert_eq!(assert_whole(&service).await.len(), 3);
    let last = service.get(&format!("/v1/sessions/{}", base.unwrap())).await;
    assert_eq!(last["depth"], 2, "{last:#}");
    service.stop().await;
}

async fn a_kill_under_load_loses_no_response(database: TestDatabase) {
    let mock = model().await;
    let home = Home::new(database.url()).with_mock(&mock);
    let service = Arc::new(Service::start(&home).await);
    let root = service.run("echo", None, "root").await;
    let (answered, mut answers) = mpsc::unbounded_channel();
    // Two lines of conversation and two crowds that fork the root.
    let clients: Vec<_> = (0..4)
        .map(|n| {
            let (service, answered, root) = (Arc::clone(&service), answered.clone(), root.clone());
            tokio::spawn(async move {
                let mut base = root["session_id"].clone();
                while let Some(result) = try_run(&service, &base).await {
                    if n % 2 == 0 {
                        base = result["session_id"].clone();
                    }
                    answered
                        .send(result["session_id"].as_str().unwrap().to_owned())
                        .unwrap();
                }
            })
        })
        .collect();
    drop(answered);
    let mut known = BTreeSet::from([root["session_id"].as_str().unwrap().to_owned()]);
    while known.len() < 25 {
        let answer = timeout(PATIENCE, answers.recv()).await.unwrap();
        known.insert(answer.expect("every client stopped"));
    }
    service.signal("KILL");
    for client in clients {
        timeout(PATIENCE, client).await.unwrap().unwrap();
    }
    while let Some(answer) = answers.recv().await {
        known.insert(answer);
    }

    let service = Service::start(&home).await;
    let found = assert_whole(&service).await;
    let lost: Vec<_> = known.difference(&found).collect();
    assert!(lost.is_empty(), "answered and lost: {lost:?}");
    // At most the runs in flight were committed without a response.
    assert!(found.len() <= known.len() + 4, "{} of {}", found.len(), known.len());
    service.stop().await;
}

/// Makes a run; `None` if the service is down.
async fn try_run(service: &Service, base: &Value) -> Option<Value> {
    let body = json!({"agent": "echo", "input": "more", "base_session_id": base});
    let request = service.request(Method::POST, "/v1/runs");
    let request = request
        .header("content-type", "application/json")
        .body(body.to_string());
    let text = request.send().await.ok()?.text().await.ok()?;
    let result: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(result["status"], "completed", "{result:#}");
    Some(result)
}
