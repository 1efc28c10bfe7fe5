//! Agents as tools.

use serde_json::{Value, json};
use store::keys::Scope;

use super::McpApp;
use crate::support::members::{assert_members, column};
use crate::support::test_app::{run_path, session_path};

#[tokio::test]
async fn agents_are_tools_in_the_order_of_their_names() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let list = app.client().ok("tools/list", json!({})).await;
    let tools = list["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["asker", "demo", "echo"]);
    assert_eq!(tools[0]["description"], "Asks.");
    assert_members!(list, {"cacheScope": "private", "ttlMs": 10_000});
    assert_eq!(tools[0]["inputSchema"]["required"], json!(["input"]));
    assert_eq!(
        tools[0]["outputSchema"]["required"],
        json!(["run_id", "session_id", "status", "output"])
    );
    assert_eq!(app.client().ok("tools/list", json!({})).await, list);
    app.finish().await;
}

#[tokio::test]
async fn long_lists_have_pages() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    for index in 0..205 {
        app.put_agent(&format!("x{index:03}"), json!({"model": "mock/m"})).await;
    }
    let first = app.client().ok("tools/list", json!({})).await;
    assert_eq!(first["tools"].as_array().unwrap().len(), 200);
    let cursor = first["nextCursor"].clone();
    let second = app.client().ok("tools/list", json!({"cursor": cursor})).await;
    let names = column(&second["tools"], "name");
    assert_eq!((names.len(), names[7]), (8, &json!("x204")));
    assert_eq!(second["nextCursor"], Value::Null);
    app.finish().await;
}

#[tokio::test]
async fn a_call_runs_the_agent_and_continues_its_session() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let client = app.client();
    let first = client.tool("echo", json!({"input": "one"})).await;
    assert_eq!(first["content"], json!([{"type": "text", "text": "echo: one"}]));
    assert_members!(first, {"isError": false, "resultType": "complete"});
    let value = &first["structuredContent"];
    assert_members!(value, {"status": "completed", "output": "echo: one"});
    let session = value["session_id"].as_str().unwrap();
    let second = client.tool("echo", json!({"input": "two", "session": session})).await;
    let second = &second["structuredContent"];
    let run = app.get(&run_path(second, "")).await;
    assert_members!(run, {"base_session_id": session, "agent": "echo"});
    let messages = app.get(&session_path(second, "/messages")).await;
    assert_eq!(messages["data"].as_array().unwrap().len(), 4);
    app.finish().await;
}

/// The model of the client reads these errors and can correct them.
#[tokio::test]
async fn what_a_model_can_correct_is_an_error_of_the_tool() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let client = app.client();
    for (arguments, words) in [
        (json!({}), "missing field `input`"),
        (json!({"input": ""}), "`input` is empty"),
        (json!({"input": 5}), "expected a string"),
        (json!({"input": "x", "agent": "y"}), "unknown field `agent`"),
        (json!({"input": "x", "session": "y"}), "a session_id is a UUID"),
        (
            json!({"input": "x", "session": "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11"}),
            "session_not_found: ",
        ),
        (json!({"input": "fail"}), "model_"),
    ] {
        let result = client.tool("echo", arguments.clone()).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(words), "{arguments}: {text}");
        assert_eq!(result["isError"], true);
    }
    let error = client
        .error("tools/call", json!({"name": "nobody", "arguments": {"input": "x"}}))
        .await;
    assert_members!(error, {"code": -32602, "message": "Unknown tool: nobody"});
    app.finish().await;
}

#[tokio::test]
async fn a_tenant_sees_nothing_of_another_one() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let mine = app.client().tool("echo", json!({"input": "mine"})).await;
    let (_, key) = app.make_key("other", &Scope::ALL).await;
    let other = app.client().with_key(&key);
    let tools = other.ok("tools/list", json!({})).await["tools"].clone();
    let names = column(&tools, "name");
    assert_eq!(names, ["demo"]);
    assert_eq!(other.ok("resources/list", json!({})).await["resources"], json!([]));
    let call = json!({"name": "echo", "arguments": {"input": "x"}});
    assert_eq!(other.error("tools/call", call).await["message"], "Unknown tool: echo");
    let session = mine["structuredContent"]["session_id"].as_str().unwrap();
    let uri = format!("session://{session}");
    let unknown = "session://0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11";
    let foreign = other.error("resources/read", json!({"uri": uri})).await;
    let absent = other.error("resources/read", json!({"uri": unknown})).await;
    assert_members!(foreign, {"code": absent["code"], "message": absent["message"]});
    let run_id = mine["structuredContent"]["run_id"].clone();
    let polling = app.polling().with_key(&key);
    for method in ["tasks/get", "tasks/cancel"] {
        let error = polling.error(method, json!({"taskId": run_id})).await;
        assert_members!(error, {"code": -32602, "message": "there is no such task"});
    }
    app.finish().await;
}

#[tokio::test]
async fn a_key_does_what_its_scopes_allow() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let (_, reading) = app.make_key("default", &[Scope::SessionsRead]).await;
    let (_, running) = app.make_key("default", &[Scope::RunsWrite]).await;
    let (reader, runner) = (app.client().with_key(&reading), app.client().with_key(&running));
    let call = json!({"name": "echo", "arguments": {"input": "x"}});
    reader
        .send("tools/call", call.clone())
        .await
        .assert_problem("missing_scope");
    reader
        .send("tools/list", json!({}))
        .await
        .assert_problem("missing_scope");
    runner
        .send("resources/list", json!({}))
        .await
        .assert_problem("missing_scope");
    runner
        .send("tasks/get", json!({"taskId": "x"}))
        .await
        .assert_problem("missing_scope");
    assert_eq!(runner.ok("tools/call", call).await["isError"], false);
    assert!(reader.ok("resources/list", json!({})).await["resources"][0].is_object());
    // A client learns what its key allows.
    let shown = |found: &Value| {
        let capabilities = &found["capabilities"];
        ["tools", "resources", "extensions"].map(|name| capabilities[name].is_object())
    };
    assert_eq!(
        shown(&reader.ok("server/discover", json!({})).await),
        [false, true, false]
    );
    assert_eq!(
        shown(&runner.ok("server/discover", json!({})).await),
        [true, false, false]
    );
    app.client()
        .with_key("ark_x")
        .send("tools/list", json!({}))
        .await
        .assert_problem("invalid_api_key");
    app.finish().await;
}
