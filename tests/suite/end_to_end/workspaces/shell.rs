//! Commands and file tools in runs: what they do is committed, restored elsewhere, forked, and
//! taken over.
//!
//! The oracle is a plain directory in which the same operations are done without the service.

use std::path::Path;

use serde_json::json;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::operations::{Operation, cases, plain_shell, sequences};
use super::{assert_valid, calls, outcomes, put_scripted, results, tree};
use crate::end_to_end::on_every_store;
use crate::support::mock_model::{MockModel, Reply};
use crate::support::test_app::TestApp;
use crate::support::text::{assert_contains, assert_lacks};

on_every_store!(
    whatever_tools_and_commands_do_is_restored_elsewhere,
    a_command_s_output_is_streamed,
);

/// Prints everything in the working directory: kinds, targets, rights and contents.
pub(in crate::end_to_end) const LIST: &str = r#"find . -mindepth 1 | LC_ALL=C sort | while read -r p; do
if [ -L "$p" ]; then echo "$p -> $(readlink "$p")"
elif [ -d "$p" ]; then echo "$p/"
elif [ -x "$p" ]; then echo "$p* $(cat "$p")"
else echo "$p $(cat "$p")"; fi; done"#;

/// The tools of operations.
pub(in crate::end_to_end) const TOOLS: [&str; 4] = ["write_file", "edit_file", "apply_patch", "shell"];
/// How many sequences of operations are played at least.
const CASES: usize = 10;

/// Does operations in a run on a session and in a directory. Returns the session of the run.
pub(super) async fn take_turn(
    app: &TestApp,
    agent: &str,
    base: &Value,
    operations: &[Operation],
    directory: &Path,
) -> Value {
    let (mut steps, mut expected) = (Vec::new(), Vec::new());
    for operation in operations {
        steps.push(calls(&[operation.call(directory)]));
        expected.push(operation.apply(directory));
    }
    put_scripted(app, agent, &steps, json!({"tools": TOOLS})).await;
    let run = app
        .run_with(json!({"agent": agent, "input": "go", "base_session_id": base}))
        .await;
    assert_eq!(run["status"], "completed", "{run:#}");
    for (index, (text, succeeded)) in outcomes(app, &run).await.into_iter().enumerate() {
        if let Some(expected) = expected[index] {
            assert_eq!(succeeded, expected, "{text}\n{}", steps[index]);
        }
    }
    assert_valid(app, &run["session_id"]).await;
    run["session_id"].clone()
}

/// Lists the files of a session by a command in a run that continues it. Returns the list and the
/// run.
async fn listed(app: &TestApp, base: &Value) -> (String, Value) {
    let run = app
        .run_with(json!({"agent": "lister", "input": "go", "base_session_id": base}))
        .await;
    assert_eq!(run["status"], "completed", "{run:#}");
    (results(app, &run).await.remove(0), run)
}

async fn whatever_tools_and_commands_do_is_restored_elsewhere(database: TestDatabase) {
    let mock = MockModel::start(|_| Reply::text("unused")).await;
    let here = TestApp::start(database.url(), &mock, &[]).await;
    let elsewhere = TestApp::start(database.url(), &mock, &[]).await;
    let tools = json!({"tools": ["shell"]});
    let list = calls(&[("shell", json!({"command": LIST}))]);
    put_scripted(&here, "lister", &[list], tools.clone()).await;
    for (case, operations) in sequences(cases(CASES), 14).into_iter().enumerate() {
        let oracle = tempfile::tempdir().unwrap();
        let mut base = Value::Null;
        for (turn, operations) in operations.chunks(7).enumerate() {
            let name = format!("worker-{case}-{turn}");
            base = take_turn(&here, &name, &base, operations, oracle.path()).await;
            let expected = plain_shell(oracle.path(), LIST);
            let (there, listing) = listed(&elsewhere, &base).await;
            assert_eq!(there.replace("(no output)", ""), expected, "{operations:#?}");
            // A command that only reads leaves the tree as it is.
            let before = tree(&here, &base).await;
            assert_eq!(tree(&here, &listing["session_id"]).await, before);
            // A fork changes nothing in its sibling.
            put_scripted(
                &here,
                "fork",
                &[calls(&[("shell", json!({"command": "rm -rf s t; echo > f"}))])],
                tools.clone(),
            )
            .await;
            let fork = elsewhere
                .run_with(json!({"agent": "fork", "input": "go", "base_session_id": base}))
                .await;
            assert_ne!(tree(&here, &fork["session_id"]).await, before);
            assert_eq!(tree(&here, &base).await, before);
            assert_eq!(listed(&here, &base).await.0.replace("(no output)", ""), expected);
        }
    }
    elsewhere.finish().await;
    here.finish().await;
}

async fn a_command_s_output_is_streamed(database: TestDatabase) {
    let mock = MockModel::start(|_| Reply::text("unused")).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let command = json!({"command": "echo one; sleep 0.5; echo two; exit 4"});
    put_scripted(
        &app,
        "worker",
        &[calls(&[("shell", command)])],
        json!({"tools": ["shell"]}),
    )
    .await;
    let events = app.stream(json!({"agent": "worker", "input": "go"})).await;
    let of = |wanted: &str| {
        events
            .iter()
            .filter(|event| event["type"] == wanted)
            .collect::<Vec<_>>()
    };
    let output = of("tool_call.output");
    let texts: String = output
        .iter()
        .map(|event| event["data"]["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, "one\ntwo\n", "{events:#?}");
    assert!(output.len() > 1, "{output:#?}");
    let completed = &of("tool_call.completed")[0]["data"];
    assert_eq!(completed["content"][0]["text"], "one\ntwo\n[exit code 4]");
    assert_eq!(output[0]["data"]["call_id"], completed["call_id"]);
    // A hook that must see the results first holds the output back.
    let redacting = json!({"tools": ["shell"], "hooks": [{"name": "redaction", "config": {"patterns": [{"name": "word", "regex": "two"}]}}]});
    let command = json!({"command": "echo one; sleep 0.5; echo two"});
    put_scripted(&app, "redacting", &[calls(&[("shell", command)])], redacting).await;
    let events = app.stream(json!({"agent": "redacting", "input": "go"})).await;
    let text = serde_json::to_string(&events).unwrap();
    assert_contains!(text, "run.completed"; "{events:#?}");
    assert_lacks!(text, "tool_call.output"; "{events:#?}");
    app.finish().await;
}
