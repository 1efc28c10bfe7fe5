//! The official conformance suite for clients. It starts this test binary as its client.

use std::env;
use std::fs::File;
use std::time::Duration;

use serde_json::json;
use test_support::environment::variable;
use test_support::languages::mcp_clients;
use tokio::process::Command;
use tokio::time::timeout;
use values::json::Value;

use super::McpApp;
use crate::support::test_app::{plain_client, run_path};

/// The variable that names the scenario to the client.
const SCENARIO: &str = "MCP_CONFORMANCE_SCENARIO";
/// The variable with the context of the scenario, as JSON.
const CONTEXT: &str = "MCP_CONFORMANCE_CONTEXT";
/// The test that is the client.
const CLIENT: &str = "mcp::conformance::the_client_of_the_suite";
/// Longer than the suite takes on a busy machine, where it is fifty times slower.
const PATIENCE: Duration = Duration::from_mins(30);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_conforms_to_both_eras() {
    for revision in ["2026-07-28", "2025-11-25"] {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/mcp");
        let expected = format!("{folder}/conformance-{revision}.yml");
        run_suite(&["--requirements", revision, "--expected-failures", &expected]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_gets_access_tokens_as_the_suite_demands() {
    run_suite(&["--scenario", "auth/client-credentials-basic"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn models_read_the_schemas_of_tools_as_their_protocol_takes_them() {
    let expected = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/mcp/conformance-schemas.yml");
    for revision in ["2026-07-28", "2025-11-25"] {
        let scenario = [
            "--scenario",
            "json-schema-2020-12-preservation",
            "--spec-version",
            revision,
        ];
        run_suite(&[&scenario[..], &["--expected-failures", expected]].concat()).await;
    }
}

/// Has the suite check this test binary as a client.
async fn run_suite(args: &[&str]) {
    let Some((node, modules)) = mcp_clients() else { return };
    let suite = modules.join("@modelcontextprotocol/conformance/dist/index.js");
    let client = env::current_exe().unwrap();
    let command = format!("{} {CLIENT} --exact --ignored --nocapture", client.display());
    let limit = PATIENCE.as_millis().to_string();
    let folder = tempfile::tempdir().unwrap();
    let run = Command::new(&node)
        .arg(&suite)
        // It starts all of its clients at once and has no option to start fewer. They wait for
        // each other in its folder, and its time limit includes that.
        .args(["client", "--verbose", "--timeout", &limit, "--command", &command])
        .args(args)
        .current_dir(folder.path())
        .kill_on_drop(true)
        .output();
    let output = timeout(PATIENCE, run).await.expect("the suite takes too long").unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let end = text.len().saturating_sub(20_000);
    let is_skipped = text.contains("SKIPPED: scenario");
    assert!(
        output.status.success() && !is_skipped,
        "{args:?}: …{}",
        &text[text.ceil_char_boundary(end)..]
    );
}

/// Has an agent list the tools of the suite's server and call each of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the conformance suite runs this"]
async fn the_client_of_the_suite() {
    let Some(scenario) = variable(SCENARIO) else { return };
    let _turn = turn();
    let url = local(&env::args().next_back().unwrap());
    let (credentials, secret) = credentials(&scenario, &url).await;
    let secrets = [("tools.secrets.suite.file", secret.path().to_str().unwrap())];
    let app = McpApp::alone_with(
        &[(
            "suite",
            &url,
            &format!("prefix = ''\nconnect_timeout = '10m'\ntimeout = '10m'\n{credentials}"),
        )],
        &secrets,
    )
    .await;
    app.call_tool(None, "none", json!({})).await;
    let request = app.mock.requests().pop().unwrap();
    let tools = request["tools"].as_array().cloned().unwrap_or_default();
    for tool in &tools {
        let (name, schema) = (&tool["function"]["name"], &tool["function"]["parameters"]);
        let wanted = wanted_calls(name, &tools);
        for arguments in &wanted {
            app.call_tool(None, name.as_str().unwrap(), arguments.clone()).await;
        }
        if !wanted.is_empty() {
            continue;
        }
        let mut run = app.call_tool(None, name.as_str().unwrap(), example(schema)).await;
        for _ in 0..4 {
            if run["status"] != "waiting" {
                break;
            }
            let path = run_path(&run, "/answers");
            run = app.post(&path, &answers(&run)).await.ok();
        }
        println!("{name}: {}", run["output_text"]);
    }
    app.finish().await;
}

/// Waits until no other client is at work: the servers of the suite close a connection that is
/// unused for five seconds, as it is if clients wait for each other in the middle of their work.
/// The lock ends with the process.
fn turn() -> File {
    let file = File::create("turn").unwrap();
    file.lock().unwrap();
    file
}

/// The arguments of the calls of a tool that the suite wants.
fn wanted_calls(tool: &Value, tools: &[Value]) -> Vec<Value> {
    if tool == "json_schema_echo" {
        // The suite compares the schema of its other tool with the one that the model has read.
        let mut others = tools.iter().filter(|other| other["function"]["name"] != *tool);
        return vec![json!({"schema": others.next().unwrap()["function"]["parameters"]})];
    }
    let context: Value = serde_json::from_str(&variable(CONTEXT).unwrap_or_default()).unwrap_or_default();
    let calls = context["toolCalls"].as_array().cloned().unwrap_or_default();
    let calls = calls.into_iter().filter(|call| call["name"] == *tool);
    calls.map(|mut call| without_nulls(call["arguments"].take())).collect()
}

/// The arguments without those that are null. The schemas of the suite do not allow null, so the
/// service would refuse the call. The suite accepts that such an argument is left out.
fn without_nulls(mut arguments: Value) -> Value {
    if let Some(members) = arguments.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    arguments
}

/// How the client authenticates, and the file with its secret.
async fn credentials(scenario: &str, url: &str) -> (String, tempfile::NamedTempFile) {
    let context = variable(CONTEXT).unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let secret = tempfile::NamedTempFile::new().unwrap();
    let text = context["client_secret"].as_str().unwrap_or("no secret");
    std::fs::write(secret.path(), text).unwrap();
    if scenario != "auth/client-credentials-basic" {
        return (String::new(), secret);
    }
    // An operator reads the address of the token endpoint in the documents of the server.
    let server = url.trim_end_matches("/mcp");
    let resource = document(&format!("{server}/.well-known/oauth-protected-resource/mcp")).await;
    let issuer = resource["authorization_servers"][0]
        .as_str()
        .unwrap()
        .trim_end_matches('/');
    let metadata = document(&format!("{issuer}/.well-known/oauth-authorization-server")).await;
    let (token_url, id) = (
        local(metadata["token_endpoint"].as_str().unwrap()),
        &context["client_id"],
    );
    let definition = format!("[oauth]\ntoken_url = {token_url:?}\nclient_id = {id}\nclient_secret = 'suite'\n");
    (definition, secret)
}

async fn document(url: &str) -> Value {
    let response = plain_client().get(url).send().await.unwrap();
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

/// The address that the guard is to allow.
fn local(url: &str) -> String {
    url.replace("localhost", "127.0.0.1")
}

/// Arguments that fit a schema: all of its properties.
fn example(schema: &Value) -> Value {
    if let Some(default) = schema.get("default").or_else(|| schema.get("const")) {
        return default.clone();
    }
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    let properties = schema["properties"].as_object();
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(5),
        Some("boolean") => json!(true),
        Some("string") => json!("text"),
        Some("array") => json!([]),
        Some("null") => Value::Null,
        _ => properties
            .into_iter()
            .flatten()
            .map(|(name, schema)| (name.clone(), example(schema)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

/// The answers to the questions of a run.
fn answers(run: &Value) -> Value {
    let calls = run["required_action"]["calls"].as_array().unwrap();
    let answers = calls.iter().map(|call| {
        let result = example(&call["response_schema"]);
        json!({"call_id": call["call_id"], "arguments_hash": call["arguments_hash"], "result": result})
    });
    json!({"answers": answers.collect::<Vec<_>>()})
}
