//! Files in runs: they last with the session, a fork has its own, subagents' files are merged, and
//! a takeover has those of the earlier steps.

pub(crate) mod archives;
mod jobs;
pub(crate) mod operations;
mod outages;
mod patches;
mod retained;
mod sessions;
pub(super) mod shell;
mod subagents;
mod untouched;

use serde_json::json;
use values::json::Value;

use crate::support::members::extended;
use crate::support::test_app::{TestApp, run_path};

/// A step of a script that calls tools.
fn calls(calls: &[(&str, Value)]) -> Value {
    let calls = calls.iter();
    let calls: Vec<_> = calls
        .map(|(name, arguments)| json!({"name": name, "arguments": arguments}))
        .collect();
    json!({"tool_calls": calls})
}

fn write(path: &str, content: &str) -> (&'static str, Value) {
    ("write_file", json!({"path": path, "content": content}))
}

fn read(path: &str) -> (&'static str, Value) {
    ("read_file", json!({"path": path}))
}

/// Puts an agent that plays a script with the file tools, and ends with "done".
async fn put_scripted(app: &TestApp, name: &str, steps: &[Value], more: Value) {
    let script: Vec<_> = steps.iter().cloned().chain([json!({"text": "done"})]).collect();
    let definition = json!({
        "model": "mock/m", "driver": "scripted", "script": script,
        "tools": ["write_file", "read_file", "variables_set"],
    });
    app.put_agent(name, extended(definition, &more)).await;
}

/// Returns the hash of a session's files.
async fn tree(app: &TestApp, session_id: &Value) -> Value {
    let session = app.get(&format!("/v1/sessions/{}", session_id.as_str().unwrap())).await;
    session["environment_state"]["workspace"]["tree"].clone()
}

/// Returns a file of a session.
async fn file(app: &TestApp, session_id: &Value, path: &str) -> String {
    let path = format!("/v1/sessions/{}/files/{path}", session_id.as_str().unwrap());
    let response = app.request(reqwest::Method::GET, &path).send().await.unwrap();
    assert!(response.status().is_success(), "{path}: {}", response.status());
    response.text().await.unwrap()
}

/// Returns the paths of a session's files.
async fn files(app: &TestApp, session_id: &Value) -> Vec<String> {
    let path = format!("/v1/sessions/{}/files?recursive=true", session_id.as_str().unwrap());
    let listed = app.get(&path).await;
    let entries = listed["data"].as_array().unwrap().iter();
    let files = entries.filter(|entry| entry["kind"] == "file");
    files.map(|entry| entry["path"].as_str().unwrap().to_owned()).collect()
}

/// Returns what the tools of a run have returned.
async fn results(app: &TestApp, run: &Value) -> Vec<String> {
    let outcomes = outcomes(app, run).await.into_iter();
    outcomes.map(|(text, _)| text).collect()
}

/// Returns what the tools of a run have returned, and whether they succeeded.
async fn outcomes(app: &TestApp, run: &Value) -> Vec<(String, bool)> {
    let steps = app.get(&run_path(run, "/steps")).await;
    let steps = steps["data"].as_array().unwrap().iter();
    let messages = steps.flat_map(|step| step["messages"].as_array().unwrap().clone());
    let results = messages.filter(|message| message["role"] == "tool");
    let results = results.flat_map(|message| message["content"].as_array().unwrap().clone());
    let outcome = |result: Value| {
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        (text, result["is_error"] != true)
    };
    results.map(outcome).collect()
}

async fn assert_valid(app: &TestApp, session_id: &Value) {
    let path = format!("/v1/sessions/{}/verify", session_id.as_str().unwrap());
    let report = app.get(&path).await;
    assert_eq!(report["valid"], true, "{report:#}");
}
