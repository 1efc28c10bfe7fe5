//! Files and variables of a run that is taken over.

use std::sync::Arc;

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use values::json::Value;

use super::world::World;
use crate::end_to_end::on_every_store;
use crate::support::members::{assert_members, column};
use crate::support::mock_model::{Reply, content_text, tool_results};

on_every_store!(
    a_takeover_has_the_files_and_variables_of_the_earlier_steps,
    a_takeover_merges_the_files_of_its_subagents,
);

fn call(id: &str, tool: &str, arguments: &Value) -> (String, String, String) {
    (id.to_owned(), tool.to_owned(), arguments.to_string())
}

fn write(id: &str, path: &str) -> (String, String, String) {
    call(id, "write_file", &json!({"path": path, "content": path}))
}

const TOOLS: [&str; 3] = ["write_file", "list_files", "variables_set"];

async fn a_takeover_has_the_files_and_variables_of_the_earlier_steps(database: TestDatabase) {
    let model_gate = Gate::new();
    let gate = Arc::clone(&model_gate);
    let world = World::new(database, move |request| match tool_results(request).len() {
        0 => Reply::ToolCalls(vec![
            write("c1", "one.txt"),
            call("c2", "variables_set", &json!({"variables": {"word": "kept"}})),
        ]),
        2 => Reply::Held(Arc::clone(&gate), "unused".to_owned()),
        _ => Reply::text("unused"),
    })
    .await;
    let first = world.replica().await;
    let agent = json!({"model": "mock/m", "tools": TOOLS, "durability": "step", "system_prompt": "{{ variables.word | default('none') }}"});
    first.put_agent("worker", agent).await;
    let run = first.begin("go", json!({"agent": "worker"})).await;
    model_gate.until_waiting(1).await;
    let second = world.successor(first, &model_gate).await;
    let ended = second.ended(&run).await;
    assert_members!(ended, {"status": "completed", "attempts": 2});
    // The second worker has not written the file again, and its prompt has the variable.
    let requests = world.mock.requests();
    let prompts: Vec<_> = requests
        .iter()
        .map(|request| content_text(&request["messages"][0]["content"]))
        .collect();
    assert_eq!(prompts, ["none", "kept", "kept"]);
    let session = ended["session_id"].as_str().unwrap();
    let listed = second.get(&format!("/v1/sessions/{session}/files")).await;
    assert_eq!(listed["data"][0]["path"], "one.txt", "{listed:#}");
    assert_eq!(
        second.get(&format!("/v1/sessions/{session}/verify")).await["valid"],
        true
    );
    second.finish().await;
}

async fn a_takeover_merges_the_files_of_its_subagents(database: TestDatabase) {
    let model_gate = Gate::new();
    let gate = Arc::clone(&model_gate);
    let world = World::new(database, move |request| {
        match (request["model"].as_str().unwrap(), tool_results(request).len()) {
            ("m", 0) => Reply::ToolCalls(vec![write("c1", "lead.txt")]),
            ("m", 1) => Reply::ToolCalls(vec![call("c2", "helper", &json!({"task": "help"}))]),
            ("h", 0) => Reply::ToolCalls(vec![write("h1", "helper.txt")]),
            ("h", 1) => Reply::Held(Arc::clone(&gate), "helped".to_owned()),
            _ => Reply::text("done"),
        }
    })
    .await;
    let first = world.replica().await;
    first
        .put_agent("helper", json!({"model": "mock/h", "tools": TOOLS}))
        .await;
    let lead = json!({"model": "mock/m", "tools": TOOLS, "durability": "step", "subagents": [{"agent": "helper"}]});
    first.put_agent("worker", lead).await;
    let run = first.begin("go", json!({"agent": "worker"})).await;
    model_gate.until_waiting(1).await;
    let second = world.successor(first, &model_gate).await;
    let ended = second.ended(&run).await;
    assert_eq!(ended["status"], "completed", "{ended:#}");
    let session = ended["session_id"].as_str().unwrap();
    let listed = second.get(&format!("/v1/sessions/{session}/files")).await;
    let paths = column(&listed["data"], "path");
    assert_eq!(paths, ["helper.txt", "lead.txt"], "{listed:#}");
    second.finish().await;
}
