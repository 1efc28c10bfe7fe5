//! Deferred tools: which tools each request offers, and which calls are executed.

use serde_json::json;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::on_every_store;
use crate::support::members::{assert_members, column};
use crate::support::mock_model::{MockModel, Reply, content_text, last_user_text, new_results};
use crate::support::test_app::TestApp;
use crate::support::text::assert_contains;

on_every_store!(
    found_tools_are_offered_after_the_others_and_in_later_runs_and_forks,
    a_call_of_a_tool_that_was_not_found_is_refused,
    a_react_model_reads_the_tools_that_it_found,
    a_script_must_find_its_tools_as_well,
    definitions_and_sessions_are_checked,
);

const TOOLS: [&str; 5] = ["search_tools", "write_file", "calculator", "read_file", "list_files"];

fn agent() -> Value {
    json!({"model": "mock/m", "tools": TOOLS, "deferred_tools": ["*_file", "list_files"]})
}

/// Returns the names of the tools of a request.
pub(super) fn offered(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().into_iter().flatten();
    tools.map(|tool| tool["function"]["name"].as_str().unwrap()).collect()
}

fn search(id: &str, query: &str) -> Reply {
    Reply::call(id, "search_tools", &json!({"query": query, "max_results": 1}))
}

fn last_result(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    content_text(&messages.last().unwrap()["content"])
}

async fn found_tools_are_offered_after_the_others_and_in_later_runs_and_forks(database: TestDatabase) {
    let mock = MockModel::start(
        |request| match (last_user_text(request).as_str(), new_results(request).len()) {
            ("write", 0) => search("c1", "write_file"),
            ("write", 1) => Reply::call("c2", "write_file", &json!({"path": "a.txt", "content": "Ada"})),
            ("read", 0) => search("c3", "show the lines of a file"),
            ("read", 1) => Reply::call("c4", "read_file", &json!({"path": "a.txt"})),
            _ => Reply::text("done"),
        },
    );
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("worker", agent()).await;
    let turn = async |input: &str, base: &Value| {
        let mut body = json!({"agent": "worker", "input": input});
        if !base.is_null() {
            body["base_session_id"] = base.clone();
        }
        let result = app.run_with(body).await;
        assert_eq!(result["status"], "completed", "{result:#}");
        result["session_id"].clone()
    };
    let first = turn("write", &Value::Null).await;
    let second = turn("read", &first).await;
    turn("bye", &second).await;
    turn("fork", &first).await;

    let requests = mock.requests();
    let names: Vec<_> = requests.iter().map(offered).collect();
    let always = ["search_tools", "calculator"];
    let written = ["search_tools", "calculator", "write_file"];
    let read = ["search_tools", "calculator", "write_file", "read_file"];
    assert_eq!(
        names,
        [&always[..], &written, &written, &written, &read, &read, &read, &written]
    );
    // The tools of a request begin with those of the one before.
    for pair in requests[..7].windows(2) {
        let (before, after) = (
            pair[0]["tools"].as_array().unwrap(),
            pair[1]["tools"].as_array().unwrap(),
        );
        assert!(after.starts_with(before));
    }
    // The result of the search has the parameters that the next request offers.
    let found = last_result(&requests[1]);
    assert!(
        found.starts_with("You can call this tool from your next message on.\n\nwrite_file: "),
        "{found}"
    );
    let (_, parameters) = found.split_once("\nParameters: ").unwrap();
    let parameters = parameters.lines().next().unwrap();
    let parameters: Value = serde_json::from_str(parameters).unwrap();
    assert_eq!(parameters, requests[1]["tools"][2]["function"]["parameters"]);
    assert!(last_result(&requests[5]).contains("Ada"), "{:#}", requests[5]);
    app.finish().await;
}

async fn a_call_of_a_tool_that_was_not_found_is_refused(database: TestDatabase) {
    let write = |id: &str| {
        (
            id.to_owned(),
            "write_file".to_owned(),
            json!({"path": "a.txt", "content": id}).to_string(),
        )
    };
    let mock = MockModel::start(move |request| match new_results(request).len() {
        0 => Reply::ToolCalls(vec![write("c1")]),
        1 => Reply::call("c2", "fetch_file", &json!({})),
        2 => search("c3", "write_file"),
        3 => Reply::ToolCalls(vec![write("c4")]),
        _ => Reply::text("done"),
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("worker", agent()).await;
    let result = app.run_with(json!({"agent": "worker", "input": "go"})).await;
    assert_eq!(result["output_text"], "done", "{result:#}");
    let run = result["run_id"].as_str().unwrap();
    let steps = app.get(&format!("/v1/runs/{run}/steps")).await;
    let codes = column(&steps["data"], "errors/0/code");
    let nothing = &Value::Null;
    assert_eq!(
        codes,
        [
            &json!("tool_not_found_yet"),
            &json!("tool_unknown"),
            nothing,
            nothing,
            nothing
        ]
    );
    let requests = mock.requests();
    let refused = last_result(&requests[1]);
    assert_contains!(refused, "find it with search_tools and the query \"write_file\"");
    let unknown = last_result(&requests[2]);
    assert_contains!(
        unknown,
        "the tools are search_tools, calculator, and those that search_tools finds"
    );
    let session = result["session_id"].as_str().unwrap();
    let file = app.try_get(&format!("/v1/sessions/{session}/files/a.txt")).await;
    assert_eq!(file.text(), "c4");
    app.finish().await;
}

async fn a_react_model_reads_the_tools_that_it_found(database: TestDatabase) {
    let act = |tool: &str, arguments: &Value| {
        Reply::text(&json!({"thought": "", "action": {"tool": tool, "arguments": arguments}}).to_string())
    };
    let mock = MockModel::start(move |request| match last_user_text(request).as_str() {
        "go" => act("search_tools", &json!({"query": "write_file", "max_results": 1})),
        words if words.contains("You can call this tool") => act("write_file", &json!({"path": "a", "content": "b"})),
        _ => Reply::text(r#"{"answer": "done"}"#),
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let mut react = agent();
    react["driver"] = json!("react");
    app.put_agent("worker", react).await;
    let result = app.run_with(json!({"agent": "worker", "input": "go"})).await;
    assert_eq!(result["output_text"], "done", "{result:#}");
    let requests = mock.requests();
    let prompts = requests
        .iter()
        .map(|request| content_text(&request["messages"][0]["content"]));
    let prompts: Vec<_> = prompts.collect();
    assert_eq!(prompts.len(), 3);
    assert!(prompts[0].contains("\n\ncalculator: ") && !prompts[0].contains("write_file: "));
    let added = prompts[1].strip_prefix(prompts[0].as_str()).unwrap();
    assert!(added.starts_with("\n\nwrite_file: "), "{added}");
    assert_eq!(prompts[2], prompts[1]);
    app.finish().await;
}

async fn a_script_must_find_its_tools_as_well(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let write = json!({"name": "write_file", "arguments": {"path": "a.txt", "content": "x"}});
    let mut scripted = agent();
    scripted["driver"] = json!("scripted");
    scripted["script"] = json!([
        {"tool_calls": [write]},
        {"tool_calls": [{"name": "search_tools", "arguments": {"query": "write_file"}}, write]},
        {"text": "done"},
    ]);
    app.put_agent("played", scripted).await;
    let result = app.run_with(json!({"agent": "played", "input": "go"})).await;
    assert_eq!(result["output_text"], "done", "{result:#}");
    let run = result["run_id"].as_str().unwrap();
    let steps = app.get(&format!("/v1/runs/{run}/steps")).await;
    assert_eq!(steps["data"][0]["errors"][0]["code"], "tool_not_found_yet");
    let executions = &steps["data"][1]["tool_executions"];
    assert_members!(executions, {"0/is_error": false, "1/is_error": false}, "{steps:#}");
    assert!(mock.requests().is_empty());
    app.finish().await;
}

async fn definitions_and_sessions_are_checked(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    for (change, field, words) in [
        (json!({"deferred_tools": ["web_*"]}), "/deferred_tools", "matches none"),
        (
            json!({"tools": ["todo"], "deferred_tools": ["todo"]}),
            "/deferred_tools",
            "without \\\"search_tools\\\"",
        ),
        (
            json!({"parameters": {"tool_choice": {"tool": "read_file"}}}),
            "/parameters/tool_choice",
            "is deferred",
        ),
    ] {
        let mut definition = agent();
        for (key, value) in change.as_object().unwrap() {
            definition[key] = value.clone();
        }
        let answer = app.put("/v1/agents/bad", &definition).await;
        answer.assert_problem("invalid_field");
        assert_contains!(answer.text(), words, field);
    }
    // A session without the tool that finds the others is offered all that it has.
    app.put_agent("worker", agent()).await;
    let body = json!({"agent": "worker", "input": "go", "tools": ["calculator", "read_file"]});
    let result = app.run_with(body).await;
    assert_eq!(result["status"], "completed", "{result:#}");
    assert_eq!(offered(&mock.requests()[0]), ["calculator", "read_file"]);
    app.finish().await;
}
