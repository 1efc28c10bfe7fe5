//! Problems about open calls: they have bounds, however much the calls have.

use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use crate::support::answer::Answer;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, tool_results};
use crate::support::test_app::{TestApp, session_path};

/// The most bytes of the calls that a problem shows.
const MAX_SHOWN: usize = 64 << 10;
/// More than everything else in a problem takes.
const REST: usize = 8 << 10;
/// The bytes of the arguments of the calls, in their order.
const SIZES: [usize; 6] = [10, 40_000, 20_000, 3_000_000, 3_000_000, 10];

fn model(request: &Value) -> Reply {
    if !tool_results(request).is_empty() {
        return Reply::text("done");
    }
    let call = |(number, size): (usize, &usize)| {
        let arguments = json!({"note": "x".repeat(*size)});
        (format!("c{number}"), "ask".to_owned(), arguments.to_string())
    };
    Reply::ToolCalls(SIZES.iter().enumerate().map(call).collect())
}

/// Checks that a problem has the calls that fit, all stubs, and where the rest is.
fn assert_bounded(answer: &Answer, code: &str, run: &Value) {
    answer.assert_problem(code);
    assert!(answer.body.len() < MAX_SHOWN + REST, "{} bytes", answer.body.len());
    let (problem, whole) = (answer.json(), &run["required_action"]);
    let action = &problem["required_action"];
    let calls = whole["calls"].as_array().unwrap();
    assert_members!(action, {"calls": calls[..3], "omitted_calls": 3, "answers": whole["answers"]});
    assert_eq!(problem["session_id"], run["session_id"]);
    let (detail, session_id) = (problem["detail"].as_str().unwrap(), &run["session_id"]);
    let where_they_are = format!(
        "; the last 3 open calls are not shown here: GET /v1/sessions/{}?include=context_state has them",
        session_id.as_str().unwrap()
    );
    assert!(detail.contains(&where_they_are), "{detail}");
}

#[tokio::test]
async fn a_problem_shows_the_calls_that_fit_and_all_answers_to_fill_in() {
    let (mock, database) = (MockModel::start(model).await, TestDatabase::sqlite());
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let tool = json!({"name": "ask", "parameters": {"type": "object"}});
    app.put_agent("asker", json!({"model": "mock/m", "client_tools": [tool]}))
        .await;
    let run = app.run_with(json!({"agent": "asker", "input": "go"})).await;
    assert_eq!(run["status"], "waiting");
    // The run and its session have all of them.
    let calls = &run["required_action"]["calls"];
    let length = |call: &Value| call["arguments"]["note"].as_str().unwrap().len();
    let lengths: Vec<_> = calls.as_array().unwrap().iter().map(length).collect();
    assert_eq!(lengths, SIZES);
    assert_eq!(run["required_action"].get("omitted_calls"), None);
    let run_id = run["run_id"].as_str().unwrap();
    assert_eq!(
        app.get(&format!("/v1/runs/{run_id}")).await["required_action"],
        run["required_action"]
    );
    let session = session_path(&run, "?include=context_state");
    let session = app.get(&session).await;
    let stored = session["context_state"]["waiting"]["open_calls"].as_array().unwrap();
    assert_eq!(stored.iter().map(length).collect::<Vec<_>>(), SIZES);

    let message = json!({"base_session_id": run["session_id"], "input": "More."});
    assert_bounded(&app.post("/v1/runs", &message).await, "answers_required", &run);
    let answers = format!("/v1/runs/{run_id}/answers");
    let stubs = run["required_action"]["answers"].as_array().unwrap();
    let filled =
        |stub: &Value| json!({"call_id": stub["call_id"], "arguments_hash": stub["arguments_hash"], "result": 1});
    let filled: Vec<_> = stubs.iter().map(filled).collect();
    let partly = app.post(&answers, &json!({"answers": filled[..5]})).await;
    assert_bounded(&partly, "invalid_answers", &run);
    assert_eq!(partly.json()["errors"][0]["pointer"], "/answers");
    // The stubs suffice to answer.
    let done = app.post(&answers, &json!({"answers": filled})).await.ok();
    assert_eq!((&done["status"], mock.asked()), (&json!("completed"), 2), "{done:#}");
    app.finish().await;
}
