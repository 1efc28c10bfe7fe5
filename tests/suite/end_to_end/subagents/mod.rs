//! Subagents: agents that work on the calls of another, and are published with it or not at all.

mod bounds;
mod by_hand;
mod cut_answers;
mod events;
mod failures;
mod faults;
mod hooks;
mod limits;
mod refusals;
mod work;

use serde_json::json;
use values::json::Value;

use crate::support::mock_model::{Reply, new_results};
use crate::support::test_app::TestApp;

/// Calls tools as long as a request has no result, then says what the results say.
fn leading(request: &Value, calls: &[(&str, &str)]) -> Reply {
    let results = new_results(request);
    if !results.is_empty() {
        return Reply::text(&format!("results: {}", results.join(" | ")));
    }
    let calls = calls.iter().enumerate().map(|(index, (tool, task))| {
        let arguments = json!({"task": task}).to_string();
        (format!("c{index}"), (*tool).to_owned(), arguments)
    });
    Reply::ToolCalls(calls.collect())
}

/// A model that never has enough of its calculator, and speaks as it calls.
fn insatiable(request: &Value) -> Reply {
    let id = format!("c{}", request["messages"].as_array().unwrap().len());
    Reply::call(&id, "calculator", &json!({"expression": "1+1"}))
}

/// The names of the tools that a request offers.
fn offered(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

/// The requests to a model.
fn requests_of<'a>(requests: &'a [Value], model: &str) -> Vec<&'a Value> {
    requests.iter().filter(|request| request["model"] == model).collect()
}

/// The subagents of all calls of the steps.
fn subagents(steps: &Value) -> Vec<&Value> {
    let steps = steps.as_array().unwrap().iter();
    let executions = steps.flat_map(|step| step["tool_executions"].as_array().unwrap());
    executions.filter_map(|execution| execution.get("subagent")).collect()
}

/// The steps of a run.
async fn steps_of(app: &TestApp, run: &Value) -> Value {
    let run_id = run["run_id"].as_str().unwrap();
    app.get(&format!("/v1/runs/{run_id}/steps")).await["data"].clone()
}

/// A session that must be there.
async fn session(app: &TestApp, id: &Value) -> Value {
    app.get(&format!("/v1/sessions/{}", id.as_str().unwrap())).await
}

async fn assert_no_session(app: &TestApp, id: &Value) {
    let path = format!("/v1/sessions/{}", id.as_str().unwrap());
    app.try_get(&path).await.assert_problem("session_not_found");
}

/// The number of sessions in the store.
async fn session_count(app: &TestApp) -> usize {
    app.get("/v1/sessions").await["data"].as_array().unwrap().len()
}

/// How something ended, and what it used.
fn end(of: &Value) -> (&str, &str, u64) {
    (
        of["status"].as_str().unwrap(),
        of["stop_reason"].as_str().unwrap_or_default(),
        of["usage"]["total_tokens"].as_u64().unwrap(),
    )
}
