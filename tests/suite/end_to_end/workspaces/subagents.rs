//! The files of subagents: a fork that is merged, those of the parent agent, or none.

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::gate::Gate;
use values::json::Value;

use super::{assert_valid, calls, file, files, put_scripted, results, write};
use crate::end_to_end::on_every_store;
use crate::support::mock_model::{MockModel, Reply};
use crate::support::test_app::TestApp;

on_every_store!(
    a_subagent_works_on_a_fork_that_is_merged_at_its_end,
    changes_of_the_same_file_are_a_result_that_names_it,
    a_subagent_shares_the_files_or_has_none,
);

fn find(task: &str) -> (&'static str, Value) {
    ("helper", json!({"task": task}))
}

/// Returns the session of the only subagent of a run.
async fn child_of(app: &TestApp, run: &Value) -> Value {
    let path = format!("/v1/sessions?subagent_of={}", run["session_id"].as_str().unwrap());
    app.get(&path).await["data"][0]["session_id"].clone()
}

async fn a_subagent_works_on_a_fork_that_is_merged_at_its_end(database: TestDatabase) {
    let mock = MockModel::start(|_| Reply::text("unused")).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    put_scripted(
        &app,
        "helper",
        &[calls(&[write("of/helper.txt", "helped\n")])],
        json!({}),
    )
    .await;
    let steps = [calls(&[write("of/lead.txt", "led\n")]), calls(&[find("help")])];
    put_scripted(&app, "lead", &steps, json!({"subagents": [{"agent": "helper"}]})).await;
    let run = app.run_with(json!({"agent": "lead", "input": "go"})).await;
    assert_eq!(run["status"], "completed", "{run:#}");
    let both = ["of/helper.txt", "of/lead.txt"];
    assert_eq!(files(&app, &run["session_id"]).await, both);
    let child = child_of(&app, &run).await;
    assert_eq!(files(&app, &child).await, both);
    assert_eq!(file(&app, &run["session_id"], "of/helper.txt").await, "helped\n");
    assert_valid(&app, &run["session_id"]).await;
    assert_valid(&app, &child).await;
    app.finish().await;
}

async fn changes_of_the_same_file_are_a_result_that_names_it(database: TestDatabase) {
    let gate = Gate::new();
    let held = gate.clone();
    // Both subagents ask their model first, so both have begun before one of them writes.
    let mock = MockModel::start(move |request| {
        assert_eq!(request["messages"].as_array().unwrap().len(), 1);
        Reply::Held(held.clone(), "ready".to_owned())
    })
    .await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    put_scripted(
        &app,
        "helper",
        &[
            calls(&[("waiter", json!({"task": "wait"}))]),
            calls(&[write("same.txt", "helper\n")]),
        ],
        json!({"subagents": [{"agent": "waiter"}]}),
    )
    .await;
    put_scripted(
        &app,
        "other",
        &[
            calls(&[("waiter", json!({"task": "wait"}))]),
            calls(&[write("same.txt", "other\n")]),
        ],
        json!({"subagents": [{"agent": "waiter"}]}),
    )
    .await;
    app.put_agent("waiter", json!({"model": "mock/m"})).await;
    let both = calls(&[find("a"), ("other", json!({"task": "b"}))]);
    put_scripted(
        &app,
        "lead",
        &[both],
        json!({"subagents": [{"agent": "helper"}, {"agent": "other"}]}),
    )
    .await;
    let opening = async {
        gate.until_waiting(2).await;
        gate.open(2);
    };
    let (run, ()) = tokio::join!(app.run_with(json!({"agent": "lead", "input": "go"})), opening);
    assert_eq!(run["status"], "completed", "{run:#}");
    let results = results(&app, &run).await;
    let conflicts: Vec<_> = results.iter().filter(|result| result.contains("same.txt")).collect();
    assert_eq!(conflicts.len(), 1, "{results:?}");
    assert!(conflicts[0].starts_with("done"), "{results:?}");
    let content = file(&app, &run["session_id"], "same.txt").await;
    assert!(
        ["helper\n", "other\n"].contains(&content.as_str()),
        "no markers: {content}"
    );
    app.finish().await;
}

async fn a_subagent_shares_the_files_or_has_none(database: TestDatabase) {
    let mock = MockModel::start(|_| Reply::text("unused")).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    put_scripted(
        &app,
        "helper",
        &[
            calls(&[super::read("lead.txt")]),
            calls(&[write("helper.txt", "helped\n")]),
        ],
        json!({}),
    )
    .await;
    for (workspace, expected) in [("shared", &["helper.txt", "lead.txt"][..]), ("none", &["lead.txt"])] {
        let steps = [calls(&[write("lead.txt", "led\n")]), calls(&[find("help")])];
        put_scripted(
            &app,
            "lead",
            &steps,
            json!({"subagents": [{"agent": "helper", "workspace": workspace}]}),
        )
        .await;
        let run = app.run_with(json!({"agent": "lead", "input": "go"})).await;
        assert_eq!(files(&app, &run["session_id"]).await, expected, "{workspace}");
        let child = child_of(&app, &run).await;
        let of_child = if workspace == "none" {
            &["helper.txt"][..]
        } else {
            expected
        };
        assert_eq!(files(&app, &child).await, of_child, "{workspace}");
    }
    app.finish().await;
}
