//! Tools inside runs: results reach the model, errors are results, and every call has exactly one.

use serde_json::json;
use test_support::databases::TestDatabase;

use super::on_every_store;
use crate::support::members::{assert_members, column};
use crate::support::mock_model::{MockModel, Reply, tool_results};
use crate::support::test_app::{TestApp, run_path};

on_every_store!(every_call_gets_exactly_one_result);

async fn every_call_gets_exactly_one_result(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        if !tool_results(request).is_empty() {
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
    assert_members!(result, {"status": "completed", "output_text": "done"});

    let second = &mock.requests()[1];
    let ids = column(&second["messages"], "tool_call_id");
    assert_eq!(ids[ids.len() - 4..], ["a", "b", "c", "d"]);
    let results = tool_results(second);
    assert_eq!((results.len(), results[0].as_str()), (4, "1024"));
    assert!(results[2].contains("teleport"));

    let steps = app.get(&run_path(&result, "/steps")).await;
    let failed = column(&steps["data"][0]["tool_executions"], "is_error");
    assert_eq!(failed, [false, true, true, true]);
    app.finish().await;
}
