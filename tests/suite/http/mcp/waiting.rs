//! Calls that wait for answers: questions, signed states and replays.

use chrono::TimeDelta;
use serde_json::{Value, json};
use store::keys::Scope;
use test_support::databases::{Engine, TestDatabase};
use test_support::wait::until;

use super::{Client, McpApp};
use crate::support::answer::{read, with_json};
use crate::support::members::assert_members;

/// The settings of replicas that share a key. The clock of the tests moves by itself.
fn shared_key(home: &tempfile::TempDir) -> String {
    let path = home.path().join("key");
    std::fs::write(&path, "k".repeat(32)).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Calls the agent that asks.
async fn ask(client: &Client<'_>, calls: Value) -> (Value, Value) {
    let params = json!({"name": "asker", "arguments": {"input": calls.to_string()}});
    let asked = client.ok("tools/call", params.clone()).await;
    assert_eq!(asked["resultType"], "input_required", "{asked:#}");
    (params, asked)
}

/// Returns the key of a question about a call.
fn key_of(asked: &Value, call: &str) -> String {
    let requests = asked["inputRequests"].as_object().unwrap();
    let key = requests.keys().find(|key| key.ends_with(&format!("/{call}")));
    key.unwrap().clone()
}

/// Returns a retry with responses.
fn retry(params: &Value, asked: &Value, responses: &[(&str, Value)]) -> Value {
    let responses = responses
        .iter()
        .map(|(call, response)| (key_of(asked, call), response.clone()));
    let mut params = params.clone();
    params["requestState"] = asked["requestState"].clone();
    params["inputResponses"] = Value::Object(responses.collect());
    params
}

fn accept(content: Value) -> Value {
    let mut response = json!({"action": "accept"});
    response["content"] = content;
    response
}

#[tokio::test]
async fn a_call_asks_and_its_retry_answers() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let client = app.asking();
    let calls = json!([["c1", "ask", {"q": 1}], ["c2", "deploy", {"note": "x"}], ["c3", "fetch", {}]]);
    let (params, asked) = ask(&client, calls).await;
    let question = |call| &asked["inputRequests"][key_of(&asked, call)];
    assert_eq!(question("c1")["method"], "elicitation/create");
    let choice = &question("c1")["params"]["requestedSchema"];
    assert_members!(choice, {"properties/choice/type": "string", "required": ["choice"]});
    let decision = &question("c2")["params"];
    assert_eq!(
        decision["message"],
        r#"The agent asker asks for your approval to call deploy: {"note":"x"}"#
    );
    assert_eq!(
        decision["requestedSchema"]["properties"]["decision"]["enum"],
        json!(["approve", "deny"])
    );
    assert!(decision["requestedSchema"]["properties"]["remember"].is_object());
    assert_eq!(
        question("c3")["params"]["requestedSchema"]["required"],
        json!(["result"])
    );
    let responses = [
        ("c1", accept(json!({"choice": "red"}))),
        ("c2", accept(json!({"decision": "approve"}))),
        ("c3", accept(json!({"result": "[1, 2]"}))),
    ];
    let done = client.ok("tools/call", retry(&params, &asked, &responses)).await;
    let value = &done["structuredContent"];
    assert_eq!(
        value["output"], r#"read: {"choice":"red"} | {"note":"x"} | [1, 2]"#,
        "{done:#}"
    );
    assert_eq!(app.deploy.begun(), 1);
    app.finish().await;
}

/// A text is read as JSON only if the tool takes no such text.
#[tokio::test]
async fn a_text_stays_what_the_user_has_written() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let client = app.asking();
    let texts = [
        ("say", "123", "123"),
        ("say", "true", "true"),
        ("say", r#""quoted""#, r#""quoted""#),
        ("fetch", "12345678901234567890123", "12345678901234567890123"),
        ("fetch", r#"{ "b": 1.0, "a": 2 }"#, r#"{ "b": 1.0, "a": 2 }"#),
        ("count", " 123 ", "123"),
        ("list", r#"[ {"id": 7} ]"#, r#"[{"id":7}]"#),
    ];
    let calls: Vec<_> = texts
        .iter()
        .enumerate()
        .map(|(number, (tool, ..))| json!([format!("c{number}"), tool, {}]))
        .collect();
    let (params, asked) = ask(&client, json!(calls)).await;
    let shown = |call: &str| {
        let question = &asked["inputRequests"][key_of(&asked, call)]["params"];
        let result = &question["requestedSchema"]["properties"]["result"];
        assert_eq!(result["type"], "string", "{question:#}");
        result["description"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        (shown("c0"), shown("c3")),
        ("The result, as text".to_owned(), shown("c0"))
    );
    // Who answers needs to know what is asked for.
    let schema = r#"{"items":{"required":["id"],"type":"object"},"type":"array"}"#;
    assert_eq!(
        shown("c6"),
        format!("The result, as JSON that fits the schema {schema}")
    );
    let names: Vec<_> = (0..texts.len()).map(|number| format!("c{number}")).collect();
    let responses: Vec<_> = names
        .iter()
        .zip(&texts)
        .map(|(name, (_, text, _))| (name.as_str(), accept(json!({"result": text}))))
        .collect();
    let done = client.ok("tools/call", retry(&params, &asked, &responses)).await;
    let read = texts.map(|(_, _, read)| read).join(" | ");
    assert_eq!(done["structuredContent"]["output"], format!("read: {read}"), "{done:#}");
    for wrong in ["many", "1.5", r#""1""#] {
        let (params, asked) = ask(&client, json!([["c1", "count", {}]])).await;
        let responses = [("c1", accept(json!({"result": wrong})))];
        let refused = client.ok("tools/call", retry(&params, &asked, &responses)).await;
        let words = refused["content"][0]["text"].as_str().unwrap();
        assert!(words.starts_with("invalid_answers: "), "{words}");
    }
    app.finish().await;
}

#[tokio::test]
async fn a_user_can_refuse() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let client = app.asking();
    let calls = json!([["c1", "deploy", {}], ["c2", "deploy", {"note": "b"}], ["c3", "ask", {}]]);
    let (params, asked) = ask(&client, calls).await;
    let responses = [
        ("c1", accept(json!({"decision": "deny", "reason": "too late"}))),
        ("c2", json!({"action": "decline"})),
        ("c3", json!({"action": "cancel"})),
    ];
    let done = client.ok("tools/call", retry(&params, &asked, &responses)).await;
    let output = done["structuredContent"]["output"].as_str().unwrap();
    assert!(output.contains("too late") && output.contains("dismissed"), "{output}");
    assert_eq!(app.deploy.begun(), 0);
    app.finish().await;
}

#[tokio::test]
async fn missing_responses_are_asked_for_again() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let client = app.asking();
    let (params, asked) = ask(&client, json!([["c1", "deploy", {}], ["c2", "ask", {}]])).await;
    let half = [("c1", accept(json!({"decision": "approve"})))];
    let again = client.ok("tools/call", retry(&params, &asked, &half)).await;
    assert_members!(again, {"resultType": "input_required", "inputRequests": asked["inputRequests"]});
    let none = client.ok("tools/call", retry(&params, &again, &[])).await;
    assert_eq!(none["inputRequests"], asked["inputRequests"]);
    for (call, response) in [
        ("c1", json!({"action": "perhaps"})),
        ("c1", accept(json!({"decision": "maybe"}))),
        ("c1", accept(json!([]))),
        ("c1", accept(json!({"decision": "deny", "reason": "x".repeat(5_000)}))),
    ] {
        let responses = [(call, response), ("c2", accept(json!({"choice": "x"})))];
        let error = client.error("tools/call", retry(&params, &asked, &responses)).await;
        assert_eq!(error["code"], -32602, "{error:#}");
    }
    // What the schema of the tool refuses, the service refuses.
    let responses = [("c1", half[0].1.clone()), ("c2", accept(json!({"choice": 5})))];
    let refused = client.ok("tools/call", retry(&params, &asked, &responses)).await;
    let words = refused["content"][0]["text"].as_str().unwrap();
    assert!(words.starts_with("invalid_answers: "), "{words}");
    assert_eq!(app.deploy.begun(), 0);
    app.finish().await;
}

#[tokio::test]
async fn a_state_is_only_good_for_its_request_and_its_caller() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let (_, first) = app.make_key("default", &Scope::ALL).await;
    let (_, second) = app.make_key("default", &Scope::ALL).await;
    let (_, foreign) = app.make_key("other", &Scope::ALL).await;
    let client = app.asking().with_key(&first);
    let (params, asked) = ask(&client, json!([["c1", "deploy", {}]])).await;
    let responses = [("c1", accept(json!({"decision": "approve"})))];
    let good = retry(&params, &asked, &responses);
    let state = asked["requestState"].as_str().unwrap();
    let with_state = |state: &str| {
        let mut params = good.clone();
        params["requestState"] = json!(state);
        params
    };
    let mut flipped = state.to_owned();
    let last = if flipped.pop() == Some('A') { 'B' } else { 'A' };
    flipped.push(last);
    let mut other_input = good.clone();
    other_input["arguments"]["input"] = json!("x");
    let mut other_tool = good.clone();
    other_tool["name"] = json!("echo");
    for forged in [
        with_state(&flipped),
        with_state(""),
        with_state("rs1.AAAA.AAAA"),
        with_state(&"x".repeat(100_000)),
        other_input,
        other_tool,
    ] {
        let error = client.error("tools/call", forged).await;
        assert_eq!(error["code"], -32602);
        let words = error["message"].as_str().unwrap();
        assert!(words.contains("not made for this caller and this request"), "{words}");
    }
    let other = app.asking().with_key(&second);
    assert_eq!(other.error("tools/call", good.clone()).await["code"], -32602);
    let stranger = app.asking().with_key(&foreign);
    assert_eq!(
        stranger.error("tools/call", good.clone()).await["message"],
        "Unknown tool: asker"
    );
    let mut stateless = good.clone();
    stateless.as_object_mut().unwrap().remove("requestState");
    assert_eq!(client.error("tools/call", stateless).await["code"], -32602);
    assert_eq!(app.deploy.begun(), 0);
    client.ok("tools/call", good).await;
    assert_eq!(app.deploy.begun(), 1);
    app.finish().await;
}

#[tokio::test]
async fn a_state_expires_with_its_calls() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let client = app.asking();
    let (params, asked) = ask(&client, json!([["c1", "deploy", {}]])).await;
    app.clock.advance(TimeDelta::days(8));
    let responses = [("c1", accept(json!({"decision": "approve"})))];
    let error = client.error("tools/call", retry(&params, &asked, &responses)).await;
    let words = error["message"].as_str().unwrap();
    assert!(words.contains("has expired"), "{words}");
    assert_eq!(app.deploy.begun(), 0);
    app.finish().await;
}

/// A retry whose response was lost gets the same run. Other answers come too late. A state is valid
/// for longer than idempotency keys usually are.
#[tokio::test]
async fn a_retry_is_not_executed_again_while_its_state_is_valid() {
    let (app, _database) = McpApp::with_agents(&[("idempotency.retention", "1s")]).await;
    let client = app.asking();
    let (params, asked) = ask(&client, json!([["c1", "deploy", {}]])).await;
    let responses = [("c1", accept(json!({"decision": "approve"})))];
    let good = retry(&params, &asked, &responses);
    let first = client.ok("tools/call", good.clone()).await;
    let other = [("c1", accept(json!({"decision": "deny"})))];
    let refused = client.ok("tools/call", retry(&params, &asked, &other)).await;
    let words = refused["content"][0]["text"].as_str().unwrap();
    assert!(words.starts_with("idempotency_key_reused: "), "{words}");
    // A key that was claimed later has expired.
    let import = async || {
        let request = app.request(reqwest::Method::POST, "/v1/sessions");
        let request = with_json(request.header("idempotency-key", "k"), &json!({}));
        read(request).await.ok()["session_id"].clone()
    };
    let imported = import().await;
    until("the key is valid", async || import().await != imported).await;
    let second = client.ok("tools/call", good).await;
    assert_eq!(first, second);
    assert_eq!(app.deploy.begun(), 1);
    app.finish().await;
}

#[tokio::test]
async fn clients_that_can_t_ask_read_what_the_run_waits_for() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let calls = json!([["c1", "deploy", {}]]).to_string();
    for client in [app.client(), app.asking().legacy()] {
        let result = client.tool("asker", json!({"input": calls})).await;
        let value = &result["structuredContent"];
        assert_eq!(
            (&value["status"], &result["isError"]),
            (&json!("waiting"), &json!(false))
        );
        assert_eq!(value["required_action"]["calls"][0]["tool"], "deploy");
        let run_id = value["run_id"].as_str().unwrap();
        let words = result["content"][0]["text"].as_str().unwrap();
        assert!(words.contains(&format!("POST /v1/runs/{run_id}/answers")), "{words}");
    }
    app.finish().await;
}

/// Nothing is held in memory, and the replicas share the key.
#[tokio::test]
async fn another_replica_takes_the_answers() {
    let database = TestDatabase::new(Engine::Sqlite).await.unwrap();
    let home = tempfile::tempdir().unwrap();
    let key = shared_key(&home);
    let settings = [("http.mcp.state_key_file", key.as_str())];
    let first = McpApp::start(&database, &settings).await;
    first.put_agents().await;
    let (params, asked) = ask(&first.asking(), json!([["c1", "deploy", {"note": "n"}]])).await;
    first.finish().await;
    let second = McpApp::start(&database, &settings).await;
    let responses = [("c1", accept(json!({"decision": "approve"})))];
    let good = retry(&params, &asked, &responses);
    let done = second.asking().ok("tools/call", good.clone()).await;
    assert_eq!(done["structuredContent"]["output"], r#"read: {"note":"n"}"#);
    second.finish().await;
    // A replica with a key of its own can't read the state.
    let third = McpApp::start(&database, &[]).await;
    assert_eq!(third.asking().error("tools/call", good).await["code"], -32602);
    third.finish().await;
}
