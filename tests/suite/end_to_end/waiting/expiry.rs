//! Open calls that nobody answers in time count as denied.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::wait::until;
use values::json::Value;

use super::{WaitingApp, answer_to, asker};
use crate::end_to_end::on_every_store;
use crate::support::members::assert_members;
use crate::support::test_app::run_path;

on_every_store!(expired_calls_are_denied, the_time_of_a_call_has_limits);

fn expiry(run: &Value, index: usize) -> DateTime<Utc> {
    let text = run["required_action"]["calls"][index]["expires_at"].as_str().unwrap();
    text.parse().unwrap()
}

async fn expired_calls_are_denied(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let mut agent = asker();
    agent["client_tools"][0]["expires_after_seconds"] = json!(1);
    app.put_agent("asker", agent).await;
    let both = app
        .wait_for(json!([["c1", "ask", {"question": "?"}], ["c2", "deploy", {}]]))
        .await;
    let one = app.wait_for(json!([["c1", "ask", {"question": "?"}]])).await;
    until("the call does not expire", async || expiry(&one, 0) < Utc::now()).await;

    // A message works again, and the model reads why.
    let body = json!({"base_session_id": one["session_id"], "input": "Go on."});
    let next = app.run_with(body.clone()).await;
    assert_eq!(next["output_text"], "echo: Go on.");
    let history = app.history(&next).await;
    assert_eq!(
        history[2],
        "tool error c1: This call was denied, because nobody answered it in time."
    );
    // An answer that comes too late is refused, since its author must know that it has no effect.
    let late = answer_to(&one, "c1", json!({"result": {"choice": "yes"}}));
    let refused = app.answer(&one, json!([late])).await;
    refused.assert_problem("invalid_answers");
    let errors = refused.json()["errors"].clone();
    assert_eq!(errors[0]["pointer"], "/answers/0/call_id");
    assert!(errors[0]["message"].as_str().unwrap().contains("expired"), "{errors:#}");
    // No call is left that could be answered.
    assert_eq!(refused.json().get("required_action"), None);

    // The other call still waits: only that one is to be answered.
    let body = json!({"base_session_id": both["session_id"], "input": "Go on."});
    let refused = app.post("/v1/runs", &body).await;
    refused.assert_problem("answers_required");
    let (shown, whole) = (&refused.json()["required_action"], &both["required_action"]);
    for list in ["calls", "answers"] {
        assert_eq!(shown[list], json!([whole[list][1]]), "{shown:#}");
    }
    let approve = answer_to(&both, "c2", json!({"decision": "approve"}));
    let next = app.answer(&both, json!([approve])).await.ok();
    let read = "read: This call was denied, because nobody answered it in time. | {}";
    assert_eq!(next["output_text"], read);
    let steps = app.get(&run_path(&next, "/steps")).await;
    let executions = &steps["data"][0]["tool_executions"];
    assert_members!(executions, {"0/verdict": "expired", "0/is_error": true, "1/verdict": null, "1/is_error": false});
    app.finish().await;
}

async fn the_time_of_a_call_has_limits(database: TestDatabase) {
    let settings = [("runs.answer_expiry", "1h"), ("runs.max_answer_expiry", "2h")];
    let app = WaitingApp::start(&database, &settings).await;
    let mut agent = asker();
    agent["approvals"] = json!([{"tools": ["deploy"], "approval": "always", "expires_after_seconds": 86_400}]);
    app.put_agent("asker", agent).await;
    let begun = Utc::now();
    let run = app
        .wait_for(json!([["c1", "ask", {"question": "?"}], ["c2", "deploy", {}]]))
        .await;
    for (index, hours) in [(0, 1), (1, 2)] {
        let waits = expiry(&run, index) - begun;
        let expected = TimeDelta::hours(hours);
        assert!(waits >= expected && waits < expected + TimeDelta::minutes(5), "{waits}");
    }
    app.finish().await;
}
