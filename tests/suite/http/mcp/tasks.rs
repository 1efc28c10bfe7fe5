//! Runs as tasks (SEP-2663).

use chrono::TimeDelta;
use reqwest::Method;
use serde_json::{Value, json};
use test_support::databases::{Engine, TestDatabase};
use test_support::wait::until;

use super::{Client, McpApp};
use crate::support::answer::{read, with_json};
use crate::support::members::assert_members;

/// Begins a task, and returns its id.
async fn begin(client: &Client<'_>, agent: &str, input: &str) -> String {
    let created = client.tool(agent, json!({"input": input})).await;
    assert_members!(created, {"resultType": "task", "status": "working"});
    created["taskId"].as_str().unwrap().to_owned()
}

/// Polls a task until it has a status.
async fn poll(client: &Client<'_>, task: &str, status: &str) -> Value {
    let get = async || client.ok("tasks/get", json!({"taskId": task})).await;
    until("the task has another status", async || get().await["status"] == status).await;
    get().await
}

#[tokio::test]
async fn a_call_of_a_client_with_tasks_is_a_queued_run() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let client = app.polling();
    let task = begin(&client, "echo", "hi").await;
    // The task is durable before the response: it is the id of a run.
    let run = app.get(&format!("/v1/runs/{task}")).await;
    assert_eq!(run["mode"], "async");
    let done = poll(&client, &task, "completed").await;
    assert_members!(done, {"taskId": task, "resultType": "complete", "result/structuredContent/output": "echo: hi"});
    assert_eq!(done["result"]["structuredContent"]["run_id"], json!(task));
    let failed = begin(&client, "echo", "fail").await;
    assert_eq!(poll(&client, &failed, "completed").await["result"]["isError"], true);
    // Clients without the extension have no tasks.
    let error = app.client().error("tasks/get", json!({"taskId": task})).await;
    assert_eq!(error["code"], -32021, "{error:#}");
    for unknown in ["x", "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11"] {
        let error = client.error("tasks/get", json!({"taskId": unknown})).await;
        assert_members!(error, {"code": -32602, "message": "there is no such task"});
    }
    app.finish().await;
}

#[tokio::test]
async fn a_task_can_be_cancelled() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let client = app.polling();
    let task = begin(&client, "echo", "wait").await;
    app.gate.until_waiting(1).await;
    assert_eq!(poll(&client, &task, "working").await["result"], Value::Null);
    let done = client.ok("tasks/cancel", json!({"taskId": task})).await;
    assert_eq!(done, json!({"resultType": "complete"}));
    poll(&client, &task, "cancelled").await;
    // Again, and after the end: nothing changes.
    client.ok("tasks/cancel", json!({"taskId": task})).await;
    poll(&client, &task, "cancelled").await;
    app.finish().await;
}

#[tokio::test]
async fn a_task_outlives_its_process_and_its_questions_are_answered_elsewhere() {
    let database = TestDatabase::new(Engine::Sqlite).await.unwrap();
    let first = McpApp::start(&database, &[]).await;
    first.put_agents().await;
    let calls = json!([["c1", "deploy", {"note": "n"}]]).to_string();
    let task = begin(&first.polling(), "asker", &calls).await;
    let asked = poll(&first.polling(), &task, "input_required").await;
    first.finish().await;
    let second = McpApp::start(&database, &[]).await;
    let client = second.polling();
    assert_eq!(poll(&client, &task, "input_required").await, asked);
    let key = asked["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .clone();
    let responses = |decision: &str| {
        let response = json!({"action": "accept", "content": {"decision": decision}});
        json!({"taskId": task, "inputResponses": {&key: response}})
    };
    let none = json!({"taskId": task, "inputResponses": {}});
    assert_eq!(client.error("tasks/update", none).await["code"], -32602);
    client.ok("tasks/update", responses("approve")).await;
    let done = poll(&client, &task, "completed").await;
    let value = &done["result"]["structuredContent"];
    assert_eq!(value["output"], r#"read: {"note":"n"}"#);
    assert_ne!(value["run_id"], json!(task));
    // A repeated answer, and another one, come too late and change nothing.
    client.ok("tasks/update", responses("approve")).await;
    client.ok("tasks/update", responses("deny")).await;
    assert_eq!(poll(&client, &task, "completed").await, done);
    assert_eq!(second.deploy.begun(), 1);
    second.finish().await;
}

/// Another key of the tenant can neither pass a run off as the answer of a task, nor take the key
/// of its answer.
#[tokio::test]
async fn names_of_the_service_can_not_be_taken() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let client = app.polling();
    let calls = json!([["c1", "deploy", {"note": "n"}]]).to_string();
    let task = begin(&client, "asker", &calls).await;
    let asked = poll(&client, &task, "input_required").await;
    let base = app.get(&format!("/v1/runs/{task}")).await["session_id"].clone();
    let body = json!({
        "agent": "echo", "input": "mine", "base_session_id": base, "deny_open": true, "metadata": {"mcp_task": task},
    });
    let answer = app.post("/v1/runs", &body).await;
    answer.assert_problem("invalid_field");
    let pointer = answer.json()["errors"][0]["pointer"].clone();
    assert_eq!(pointer, "/metadata/mcp_task", "{}", answer.text());
    for key in [format!("mcp-answers/{task}"), format!("mcp answers {task}")] {
        let request = app.request(Method::POST, "/v1/runs").header("idempotency-key", &key);
        let answer = read(with_json(request, &json!({"agent": "echo", "input": "mine"}))).await;
        assert_eq!(
            answer.status.is_success(),
            !key.contains(' '),
            "{key}: {}",
            answer.text()
        );
    }
    assert_eq!(poll(&client, &task, "input_required").await, asked);
    let key = asked["inputRequests"]
        .as_object()
        .unwrap()
        .keys()
        .next()
        .unwrap()
        .clone();
    let response = json!({"action": "accept", "content": {"decision": "approve"}});
    client
        .ok(
            "tasks/update",
            json!({"taskId": task, "inputResponses": {key: response}}),
        )
        .await;
    let done = poll(&client, &task, "completed").await;
    assert_eq!(done["result"]["structuredContent"]["output"], r#"read: {"note":"n"}"#);
    app.finish().await;
}

#[tokio::test]
async fn a_task_that_nobody_answers_ends() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let client = app.polling();
    let calls = json!([["c1", "deploy", {}]]).to_string();
    let task = begin(&client, "asker", &calls).await;
    poll(&client, &task, "input_required").await;
    app.clock.advance(TimeDelta::days(8));
    let done = poll(&client, &task, "completed").await;
    assert_eq!(done["result"]["isError"], true);
    client
        .ok("tasks/update", json!({"taskId": task, "inputResponses": {}}))
        .await;
    assert_eq!(app.deploy.begun(), 0);
    app.finish().await;
}
