//! Subagents can't wait: their calls that need an approval are denied, and they have no client
//! tools. The rules of the agents above them apply to their calls.

use serde_json::json;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::{WaitingApp, answer_to, asker};
use crate::end_to_end::on_every_store;
use crate::support::members::assert_members;
use crate::support::text::{assert_contains, assert_lacks};

on_every_store!(
    a_call_of_a_subagent_that_needs_an_approval_is_denied,
    the_rules_of_the_agent_above_apply,
    a_call_of_a_subagent_may_need_an_approval_itself,
);

/// A call of the subagent, whose model makes these calls.
fn delegates(calls: &Value) -> Value {
    json!([["c1", "helper", {"task": calls.to_string()}]])
}

async fn start(database: &TestDatabase, lead: Value, helper: Value) -> WaitingApp {
    let app = WaitingApp::start(database, &[]).await;
    app.put_agent("helper", helper).await;
    app.put_agent("asker", lead).await;
    app
}

async fn a_call_of_a_subagent_that_needs_an_approval_is_denied(database: TestDatabase) {
    let lead = json!({"model": "mock/m", "tools": ["deploy", "look"], "subagents": [{"agent": "helper"}]});
    let app = start(&database, lead, asker()).await;
    let calls = json!([["s1", "deploy", {}], ["s2", "look", {}], ["s3", "ask", {"question": "?"}]]);
    let run = app
        .run_with(json!({"agent": "asker", "input": delegates(&calls).to_string()}))
        .await;
    assert_members!(run, {"status": "completed", "required_action": null});
    let text = run["output_text"].as_str().unwrap();
    assert_contains!(text, "This call of deploy needs an approval of the caller");
    assert!(text.contains("no tool is named \"ask\""), "{text}");
    assert_eq!((app.deploy.begun(), app.look.begun()), (0, 1));
    // The model of the subagent was not offered the client tool.
    let offered = app.mock.requests()[1]["tools"].to_string();
    assert_contains!(offered, "\"look\"");
    assert_lacks!(offered, "\"ask\"");
    app.finish().await;
}

async fn the_rules_of_the_agent_above_apply(database: TestDatabase) {
    let mut lead = asker();
    lead["subagents"] = json!([{"agent": "helper"}]);
    // The helper itself has no rule.
    let helper = json!({"model": "mock/m", "tools": ["deploy", "look"]});
    let app = start(&database, lead, helper).await;
    let calls = json!([["s1", "deploy", {}], ["s2", "look", {}]]);
    let run = app
        .run_with(json!({"agent": "asker", "input": delegates(&calls).to_string()}))
        .await;
    assert_contains!(run["output_text"].as_str().unwrap(), "needs an approval");
    assert_eq!((app.deploy.begun(), app.look.begun()), (0, 1));
    app.finish().await;
}

async fn a_call_of_a_subagent_may_need_an_approval_itself(database: TestDatabase) {
    let lead = json!({
        "model": "mock/m", "tools": ["look"], "subagents": [{"agent": "helper"}],
        "approvals": [{"tools": ["helper"], "approval": "always"}],
    });
    let app = start(&database, lead, json!({"model": "mock/m", "tools": ["look"]})).await;
    let run = app.wait_for(delegates(&json!([["s1", "look", {"note": "x"}]]))).await;
    assert_eq!(app.mock.asked(), 1);
    let approve = answer_to(&run, "c1", json!({"decision": "approve"}));
    let next = app.answer(&run, json!([approve])).await.ok();
    assert_eq!(next["output_text"], r#"read: read: {"note":"x"}"#);
    let path = format!("/v1/sessions?subagent_of={}", next["session_id"].as_str().unwrap());
    let children = app.get(&path).await;
    assert_eq!(children["data"].as_array().unwrap().len(), 1, "{children:#}");
    app.finish().await;
}
