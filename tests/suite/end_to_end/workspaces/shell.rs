//! Commands and file tools in runs: what they do is committed, restored elsewhere, forked, and
//! taken over.
//!
//! The oracle is a plain directory in which the same operations are done without the service.

use std::fs;
use std::path::Path;
use std::process::Command;

use agent_runtime::json::Value;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::json;

use super::{assert_valid, calls, put_scripted, results, tree, write};
use crate::end_to_end::on_every_store;
use crate::support::databases::TestDatabase;
use crate::support::mock_model::{MockModel, Reply};
use crate::support::test_app::TestApp;

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

/// What a run does to its files.
#[derive(Debug, Clone)]
pub(in crate::end_to_end) enum Operation {
    /// A file tool writes a file. Commands leave the kind of these files alone.
    Tool {
        name: &'static str,
        text: u16,
    },
    Shell(String),
}

fn operation() -> impl Strategy<Value = Operation> {
    let name = || prop::sample::select(vec!["a", "b", "c"]);
    let path = move || prop::collection::vec(name(), 1..4).prop_map(|names| names.join("/"));
    let shell = prop_oneof![
        3 => (path(), any::<u16>()).prop_map(|(path, text)| format!("mkdir -p \"$(dirname s/{path})\" && echo {text} > s/{path}")),
        1 => (path(), any::<u16>()).prop_map(|(path, text)| format!("echo {text} >> s/{path}")),
        2 => path().prop_map(|path| format!("rm -rf s/{path}")),
        1 => path().prop_map(|path| format!("mkdir -p s/{path}")),
        1 => (path(), name()).prop_map(|(path, target)| format!("ln -s {target} s/{path}")),
        1 => (path(), path()).prop_map(|(from, to)| format!("mv s/{from} s/{to}")),
        1 => path().prop_map(|path| format!("[ ! -f s/{path} ] || chmod +x s/{path}")),
        1 => (name(), any::<u16>()).prop_map(|(name, text)| format!("echo {text} >> t/{name}")),
        1 => name().prop_map(|name| format!("rm -f t/{name}")),
        1 => Just("cp -r s s2 && rm -rf s && mv s2 s".to_owned()),
    ];
    prop_oneof![
        1 => (name(), any::<u16>()).prop_map(|(name, text)| Operation::Tool { name, text }),
        2 => shell.prop_map(Operation::Shell),
    ]
}

/// Draws sequences of operations, the same ones in every run of the test.
pub(in crate::end_to_end) fn sequences(count: usize, length: usize) -> Vec<Vec<Operation>> {
    let mut runner = TestRunner::deterministic();
    let strategy = prop::collection::vec(operation(), length..=length);
    let mut draw = || strategy.new_tree(&mut runner).unwrap().current();
    (0..count).map(|_| draw()).collect()
}

impl Operation {
    /// The call that does it, in a run.
    pub(in crate::end_to_end) fn call(&self) -> (&'static str, Value) {
        match self {
            Self::Tool { name, text } => write(&format!("t/{name}"), &text.to_string()),
            Self::Shell(command) => ("shell", json!({"command": format!("mkdir -p s t; {command}")})),
        }
    }

    /// Does it in a directory.
    pub(in crate::end_to_end) fn apply(&self, directory: &Path) {
        match self {
            Self::Tool { name, text } => {
                fs::create_dir_all(directory.join("t")).unwrap();
                fs::write(directory.join("t").join(name), text.to_string()).unwrap();
            }
            Self::Shell(command) => drop(plain_shell(directory, &format!("mkdir -p s t; {command}"))),
        }
    }
}

/// Does operations in a run on a session and in a directory. Returns the session of the run.
pub(super) async fn take_turn(
    app: &TestApp,
    agent: &str,
    base: &Value,
    operations: &[Operation],
    directory: &Path,
) -> Value {
    let steps = operations.iter().map(|operation| calls(&[operation.call()]));
    let tools = json!({"tools": ["write_file", "shell"]});
    put_scripted(app, agent, &steps.collect::<Vec<_>>(), tools).await;
    let run = app
        .run_with(json!({"agent": agent, "input": "go", "base_session_id": base}))
        .await;
    assert_eq!(run["status"], "completed", "{run:#}");
    for operation in operations {
        operation.apply(directory);
    }
    assert_valid(app, &run["session_id"]).await;
    run["session_id"].clone()
}

/// Runs a command without any sandbox, and returns what it prints.
pub(in crate::end_to_end) fn plain_shell(directory: &Path, command: &str) -> String {
    let output = Command::new("/bin/bash")
        .args(["-c", command])
        .current_dir(directory)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
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
    let tools = json!({"tools": ["write_file", "shell"]});
    let list = calls(&[("shell", json!({"command": LIST}))]);
    put_scripted(&here, "lister", &[list], tools.clone()).await;
    for (case, operations) in sequences(3, 14).into_iter().enumerate() {
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
    assert!(
        text.contains("run.completed") && !text.contains("tool_call.output"),
        "{events:#?}"
    );
    app.finish().await;
}
