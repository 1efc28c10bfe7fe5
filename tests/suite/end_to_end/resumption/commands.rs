//! Runs with commands whose process dies: the files are those of the calls that had ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use test_support::wait::until;
use values::json::Value;

use super::world::World;
use crate::end_to_end::on_every_store;
use crate::end_to_end::workspaces::operations::{Operation, plain_shell, sequences};
use crate::end_to_end::workspaces::shell::{LIST, TOOLS};
use crate::support::members::assert_members;
use crate::support::mock_model::{Reply, tool_results};

on_every_store!(
    a_run_that_is_killed_between_steps_ends_with_equal_files,
    a_run_that_is_killed_in_a_command_has_the_files_of_the_calls_before,
    a_job_is_lost_with_its_process_and_the_model_reads_that,
);

fn called(number: usize, (tool, arguments): &(&'static str, Value)) -> Reply {
    Reply::ToolCalls(vec![(format!("c{number}"), (*tool).to_owned(), arguments.to_string())])
}

const AGENT: &str = "worker";

fn agent() -> Value {
    json!({"model": "mock/m", "tools": TOOLS, "durability": "step"})
}

async fn a_run_that_is_killed_between_steps_ends_with_equal_files(database: TestDatabase) {
    let operations = sequences(4, 9).remove(3);
    let oracle = tempfile::tempdir().unwrap();
    let call_and_apply = |operation: &Operation| {
        let call = operation.call(oracle.path());
        operation.apply(oracle.path());
        call
    };
    let calls: Vec<_> = operations.iter().map(call_and_apply).collect();
    let calls: Vec<_> = calls.into_iter().chain([("shell", json!({"command": LIST}))]).collect();
    // The process dies three times, each time while a model is asked.
    let held_at = [2, 5, 8];
    let gates: Vec<_> = held_at.iter().map(|_| Gate::new()).collect();
    let (answering, deaths) = (gates.clone(), AtomicUsize::new(0));
    let world = World::new(database, move |request| {
        let ended = tool_results(request).len();
        let death = deaths.load(Ordering::SeqCst);
        if held_at.get(death) == Some(&ended) {
            deaths.fetch_add(1, Ordering::SeqCst);
            return Reply::Held(Arc::clone(&answering[death]), "unused".to_owned());
        }
        calls.get(ended).map_or(Reply::text("done"), |call| called(ended, call))
    })
    .await;
    let mut replica = world.replica().await;
    replica.put_agent(AGENT, agent()).await;
    let run = replica.begin("go", json!({"agent": AGENT})).await;
    for gate in &gates {
        gate.until_waiting(1).await;
        replica.die(&world).await;
        gate.until_waiting(0).await;
        replica = world.replica().await;
    }
    let ended = replica.ended(&run).await;
    assert_members!(ended, {"status": "completed", "attempts": 4});
    let requests = world.mock.requests();
    let listed = tool_results(&requests[requests.len() - 1]).pop().unwrap();
    assert_eq!(listed, plain_shell(oracle.path(), LIST), "{operations:#?}");
    let session = ended["session_id"].as_str().unwrap();
    assert_eq!(
        replica.get(&format!("/v1/sessions/{session}/verify")).await["valid"],
        true
    );
    replica.finish().await;
}

async fn a_run_that_is_killed_in_a_command_has_the_files_of_the_calls_before(database: TestDatabase) {
    let calls = [
        (
            "shell",
            json!({"command": "mkdir d; echo one > d/one; cd d; export N=1"}),
        ),
        (
            "shell",
            json!({"command": "echo two > two; rm one; cd ..; export N=2; sleep 61"}),
        ),
        ("shell", json!({"command": "ls; echo $N"})),
    ];
    let world = World::new(database, move |request| {
        let ended = tool_results(request).len();
        calls.get(ended).map_or(Reply::text("done"), |call| called(ended, call))
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let commands = directory.path().join("commands");
    let setting: &'static str = Box::leak(commands.to_str().unwrap().to_owned().into_boxed_str());
    let first = world.replica_with(&[("sandbox.directory", setting)]).await;
    first.put_agent(AGENT, agent()).await;
    let run = first.begin("go", json!({"agent": AGENT})).await;
    let has_two = || !plain_shell(&commands, "find . -name two").is_empty();
    until("the command makes no file", async || commands.exists() && has_two()).await;
    first.die(&world).await;
    let second = world.replica().await;
    let ended = second.ended(&run).await;
    assert_eq!(ended["status"], "completed", "{ended:#}");
    let requests = world.mock.requests();
    let results = tool_results(&requests[requests.len() - 1]);
    assert!(results[1].contains("its effect is uncertain"), "{results:#?}");
    assert_eq!(results[2], "one\n1\n");
    second.finish().await;
}

/// Returns a command that ends when a file exists.
fn until_exists(file: &str) -> String {
    format!("until [ -e {file} ]; do sleep 0.05; done")
}

async fn a_job_is_lost_with_its_process_and_the_model_reads_that(database: TestDatabase) {
    let seconds = format!("4000.{}", uuid::Uuid::now_v7().as_u128() % 1_000_000_000);
    let command = format!("echo early > early; setsid sleep {seconds} & wait");
    let calls = [
        ("shell", json!({"command": command, "background": true})),
        ("shell", json!({"command": until_exists("early")})),
        ("shell_job", json!({"id": "job-1"})),
        (
            "shell",
            json!({"command": "ls; sleep 60 & echo again; echo > again", "background": true}),
        ),
        ("shell", json!({"command": until_exists("again")})),
        ("shell_job", json!({"id": "job-2", "action": "stop"})),
    ];
    // The process dies while a model is asked, when the job runs.
    let (gate, deaths) = (Gate::new(), AtomicUsize::new(0));
    let answering = Arc::clone(&gate);
    let world = World::new(database, move |request| {
        let ended = tool_results(request).len();
        if ended == 2 && deaths.fetch_add(1, Ordering::SeqCst) == 0 {
            return Reply::Held(Arc::clone(&answering), "unused".to_owned());
        }
        calls.get(ended).map_or(Reply::text("done"), |call| called(ended, call))
    })
    .await;
    let first = world.replica().await;
    let agent = json!({"model": "mock/m", "tools": ["shell", "shell_job"], "durability": "step"});
    first.put_agent(AGENT, agent).await;
    let run = first.begin("go", json!({"agent": AGENT})).await;
    gate.until_waiting(1).await;
    let is_there = || {
        let arguments = format!("sleep\0{seconds}\0");
        let entries = std::fs::read_dir("/proc").unwrap().flatten();
        let mut lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
        lines.any(|line| line == arguments.as_bytes())
    };
    until("the job begins", async || is_there()).await;
    first.die(&world).await;
    gate.until_waiting(0).await;
    until("the job has outlived its process", async || !is_there()).await;
    let second = world.replica().await;
    let ended = second.ended(&run).await;
    assert_eq!(ended["status"], "completed", "{ended:#}");
    let requests = world.mock.requests();
    let results = tool_results(&requests[requests.len() - 1]);
    assert!(results[0].contains("[job-1 has been running for"), "{results:#?}");
    assert!(results[2].contains("job-1 and its output are gone"), "{results:#?}");
    // What it had written by the last call is there, and its number is not given again.
    assert!(results[3].contains("[job-2 has "), "{results:#?}");
    assert!(results[5].contains("[job-2 has ended after "), "{results:#?}");
    let output = [results[3].as_str(), &results[5]].concat();
    assert!(output.contains("early\n") && output.contains("again\n"), "{results:#?}");
    second.finish().await;
}
