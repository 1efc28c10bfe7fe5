//! Tools inside runs: results reach the model, errors are results, and every call has exactly one.

use serde_json::json;

use super::on_every_store;
use crate::support::databases::TestDatabase;
use crate::support::mock_model::{MockModel, Reply, content_text};
use crate::support::test_app::TestApp;

on_every_store!(every_call_gets_exactly_one_result);

async fn every_call_gets_exactly_one_result(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        if request["messages"]
            .as_array()
            .unwrap()
            .iter()
            .any(|message| message["role"] == "tool")
        {
            return Reply::text("done");
        }
        let calls = [
            ("a", "calculator", r#"{"expression": "2^10"}"#),
            ("b", "calculator", "{\"expression\": "),
            ("c", "teleport", "{}"),
            ("d", "calculator", r#"{"expr": 1}"#),
        ];
        Reply::ToolCalls(
            calls
                .iter()
                .map(|(id, name, arguments)| ((*id).to_owned(), (*name).to_owned(), (*arguments).to_owned()))
                .collect(),
        )
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("calc", json!({"model": "mock/m", "tools": ["calculator"]}))
        .await;
    let result = app.run_with(json!({"agent": "calc", "input": "go"})).await;
    assert_eq!(
        (&result["status"], &result["output_text"]),
        (&json!("completed"), &json!("done"))
    );

    let second = &mock.requests()[1];
    let results: Vec<_> = second["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .collect();
    let ids: Vec<_> = results
        .iter()
        .map(|message| message["tool_call_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["a", "b", "c", "d"]);
    assert_eq!(content_text(&results[0]["content"]), "1024");
    assert!(content_text(&results[2]["content"]).contains("teleport"));

    let run_id = result["run_id"].as_str().unwrap();
    let steps = app.get(&format!("/v1/runs/{run_id}/steps")).await;
    let failed: Vec<_> = steps["data"][0]["tool_executions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["is_error"].as_bool().unwrap())
        .collect();
    assert_eq!(failed, [false, true, true, true]);
    app.finish().await;
}
