//! Streamed runs: the order of events, their numbers, and one terminal event that comes after the
//! commit.

use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::on_every_store;
use crate::support::members::{assert_members, column};
use crate::support::mock_model::{MockModel, Reply, tool_results};
use crate::support::test_app::{TestApp, run_path, session_path};

on_every_store!(
    events_report_the_whole_run_in_order,
    a_failed_run_ends_with_one_terminal_event
);

/// The events of a run of two steps, the first with a tool.
const STORY: [&str; 21] = [
    "run.started",
    "execution.started",
    "step.started",
    "model.requested",
    "tool_call.started",
    "tool_call.delta",
    "model.responded",
    "tool_call.requested",
    "tool_call.completed",
    "step.completed",
    "continuation.evaluated",
    "step.started",
    "model.requested",
    "message.delta",
    "message.delta",
    "model.responded",
    "step.completed",
    "continuation.evaluated",
    "execution.ended",
    "session.committed",
    "run.completed",
];

async fn events_report_the_whole_run_in_order(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        if tool_results(request).is_empty() {
            return Reply::call("c1", "calculator", &json!({"expression": "6*9"}));
        }
        Reply::Text(vec!["six ".to_owned(), "by nine".to_owned()])
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("calc", json!({"model": "mock/m", "tools": ["calculator"]}))
        .await;
    let events = app.stream(json!({"agent": "calc", "input": "6*9?"})).await;

    let names: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(names, STORY);
    let numbers: Vec<_> = events.iter().map(|event| event["sequence"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    assert_eq!(events[3]["data"]["request_id"], events[6]["data"]["request_id"]);
    assert_eq!(events[12]["data"]["request_id"], events[15]["data"]["request_id"]);
    assert_ne!(events[3]["data"]["request_id"], events[12]["data"]["request_id"]);
    let completed = &events[8]["data"];
    assert_members!(completed, {"content/0/text": "54", "is_error": false});
    assert_members!(events[7]["data"], {"call_id": "c1", "name": "calculator", "arguments": r#"{"expression":"6*9"}"#});
    assert_eq!(events[10]["data"]["decision"], "continue");
    assert_members!(events[17]["data"], {"decision": "stop", "reason": "completed"});

    let record = &events[20]["data"];
    assert_members!(record, {"output_text": "six by nine", "step_count": 2});
    let session = app.get(&session_path(record, "")).await;
    assert_eq!(session["root_hash"], events[19]["data"]["root_hash"]);
    assert_eq!(app.get(&run_path(record, "")).await["output_text"], "six by nine");
    let steps = app.get(&run_path(record, "/steps")).await;
    let types = column(&steps["data"], "step_type");
    assert_eq!(types, ["tool_execution", "final_response"]);
    assert_eq!(steps["data"][1]["messages"][0]["role"], "assistant");
    app.finish().await;
}

async fn a_failed_run_ends_with_one_terminal_event(database: TestDatabase) {
    let mock = MockModel::start(|_| Reply::Cut(vec!["half".to_owned(), " an answer".to_owned()])).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let events = app.stream(json!({"agent": "echo", "input": "hi"})).await;

    let terminal: Vec<&Value> = events
        .iter()
        .filter(|event| ["run.completed", "run.failed"].contains(&event["type"].as_str().unwrap()))
        .collect();
    assert_eq!(terminal.len(), 1);
    assert_eq!(terminal[0], events.last().unwrap());
    assert_eq!(terminal[0]["data"]["status"], "failed");
    assert_eq!(terminal[0]["data"]["error"]["code"], "model_answer_truncated");
    assert_eq!(
        terminal[0]["data"]["output_text"], "half an answer",
        "what was produced stays readable"
    );
    app.finish().await;
}
