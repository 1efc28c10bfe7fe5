//! Tools inside runs: results reach the model, errors are results, and every call has exactly one.

use serde_json::json;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::on_every_store;
use crate::support::mock_model::{MockModel, Reply, content_text};
use crate::support::test_app::TestApp;

on_every_store!(
    every_call_gets_exactly_one_result,
    files_last_from_run_to_run_and_differ_by_branch
);

async fn every_call_gets_exactly_one_result(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        if request["messages"]
            .as_array()
            .unwrap()
            .iter()
            .any(|message| message["role"] == "tool")
        {
            return Reply::text("done");
        }
        let calls = [
            ("a", "calculator", r#"{"expression": "2^10"}"#),
            ("b", "calculator", "{\"expression\": "),
            ("c", "teleport", "{}"),
            ("d", "calculator", r#"{"expr": 1}"#),
        ];
        Reply::ToolCalls(
            calls
                .iter()
                .map(|(id, name, arguments)| ((*id).to_owned(), (*name).to_owned(), (*arguments).to_owned()))
                .collect(),
        )
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("calc", json!({"model": "mock/m", "tools": ["calculator"]}))
        .await;
    let result = app.run_with(json!({"agent": "calc", "input": "go"})).await;
    assert_eq!(
        (&result["status"], &result["output_text"]),
        (&json!("completed"), &json!("done"))
    );

    let second = &mock.requests()[1];
    let results: Vec<_> = second["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .collect();
    let ids: Vec<_> = results
        .iter()
        .map(|message| message["tool_call_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["a", "b", "c", "d"]);
    assert_eq!(content_text(&results[0]["content"]), "1024");
    assert!(content_text(&results[2]["content"]).contains("teleport"));

    let run_id = result["run_id"].as_str().unwrap();
    let steps = app.get(&format!("/v1/runs/{run_id}/steps")).await;
    let failed: Vec<_> = steps["data"][0]["tool_executions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["is_error"].as_bool().unwrap())
        .collect();
    assert_eq!(failed, [false, true, true, true]);
    app.finish().await;
}

/// Returns what the tools answered in a run, in order.
async fn results(app: &TestApp, run: &Value) -> Vec<String> {
    assert_eq!(run["status"], "completed", "{run:#}");
    let steps = app
        .get(&format!("/v1/runs/{}/steps", run["run_id"].as_str().unwrap()))
        .await;
    let steps = steps["data"].as_array().unwrap().iter();
    let messages = steps.flat_map(|step| step["messages"].as_array().unwrap());
    let results = messages.filter(|message| message["role"] == "tool");
    let text = |message: &Value| message["content"][0]["content"][0]["text"].as_str().unwrap().to_owned();
    results.map(text).collect()
}

async fn files_last_from_run_to_run_and_differ_by_branch(database: TestDatabase) {
    let app = TestApp::start(database.url(), &MockModel::echoing().await, &[]).await;
    let run = async |base: Option<&Value>, durability: &str, calls: Value| {
        let steps = calls
            .as_array()
            .unwrap()
            .iter()
            .map(|call| json!({"tool_calls": [call]}));
        let script: Vec<_> = steps.chain([json!({"text": "done"})]).collect();
        let tools = [
            "write_file",
            "edit_file",
            "apply_patch",
            "read_file",
            "grep",
            "todo",
            "variables_set",
            "variables_get",
        ];
        let agent = json!({"model": "mock/echo", "driver": "scripted", "tools": tools, "script": script});
        app.put_agent("files", agent).await;
        let mut body = json!({"agent": "files", "input": "go", "durability": durability});
        if let Some(base) = base {
            body["base_session_id"] = base["session_id"].clone();
        }
        let run = app.run_with(body).await;
        let results = results(&app, &run).await;
        (run, results)
    };
    let call = |name: &str, arguments: Value| json!({"name": name, "arguments": arguments});
    let write = |content: &str| call("write_file", json!({"path": "a/b.txt", "content": content}));
    let read = json!([
        call("read_file", json!({"path": "a/b.txt"})),
        call("todo", json!({})),
        call("variables_get", json!({})),
    ]);
    let items = json!({"items": [{"text": "Write", "status": "done"}]});
    let first = json!([
        write("one\n"),
        call("todo", items),
        call("variables_set", json!({"variables": {"x": 1}})),
    ]);
    let (first, _) = run(None, "session", first).await;
    let edits = json!({"path": "a/b.txt", "edits": [{"old": "one", "new": "two"}]});
    let (left, _) = run(Some(&first), "step", json!([call("edit_file", edits)])).await;
    let patch = json!({"patch": "*** Begin Patch\n*** Update File: a/b.txt\n-one\n+three\n*** End Patch"});
    let (right, _) = run(Some(&first), "session", json!([call("apply_patch", patch)])).await;

    for (base, line) in [(&first, "one"), (&left, "two"), (&right, "three")] {
        let (_, results) = run(Some(base), "step", read.clone()).await;
        let shown = format!(
            "     1\t{line}\n[lines 1 to 1 of 1, {} bytes in the file]",
            line.len() + 1
        );
        assert_eq!(results, [shown.as_str(), "1 of 1 done:\n[x] Write", r#"{"x":1}"#]);
    }
    // A conversation of its own has no files.
    let (_, results) = run(None, "session", json!([call("grep", json!({"pattern": "o"}))])).await;
    assert_eq!(results, ["[no line matches]"]);
    app.finish().await;
}
