//! Decisions about calls: approved, denied, edited, remembered, and by the pattern of an argument.

use serde_json::json;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::{WaitingApp, answer_to, asker, open_calls};
use crate::end_to_end::on_every_store;
use crate::support::members::assert_members;
use crate::support::test_app::{run_path, session_path};

on_every_store!(
    a_denied_call_is_not_executed,
    an_edited_call_is_executed_and_the_model_knows,
    an_approval_is_remembered_along_the_line,
    arguments_decide_about_an_approval,
    a_client_tool_may_fail_or_be_denied,
);

async fn a_denied_call_is_not_executed(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let run = app
        .wait_for(json!([["c1", "deploy", {"note": "rm"}], ["c2", "deploy", {"note": "ls"}]]))
        .await;
    let answers = json!([
        answer_to(&run, "c1", json!({"decision": "deny", "reason": "Too dangerous."})),
        answer_to(&run, "c2", json!({"decision": "deny"})),
    ]);
    let next = app.answer(&run, answers).await.ok();
    let read = "read: The caller denied this call: Too dangerous. | The caller denied this call.";
    assert_members!(next, {"status": "completed", "output_text": read});
    assert_eq!(app.deploy.begun(), 0);
    let steps = app.get(&run_path(&next, "/steps")).await;
    let execution = &steps["data"][0]["tool_executions"][0];
    assert_members!(execution, {"verdict": "denied", "is_error": true});
    // The run before asked the model for the calls.
    assert_members!(steps, {"data/0/model_requests": [], "data/1/model_requests/0/attempts": 1});
    let steps = app.get(&run_path(&run, "/steps")).await;
    assert_members!(steps, {"data/0/model_requests/0/attempts": 1});
    app.finish().await;
}

async fn an_edited_call_is_executed_and_the_model_knows(database: TestDatabase) {
    for durability in ["session", "step"] {
        let app = WaitingApp::start(&database, &[]).await;
        let run = app.wait_for(json!([["c1", "deploy", {"note": "rm -r /"}]])).await;
        let edit = answer_to(
            &run,
            "c1",
            json!({"decision": "edit", "arguments": {"note": "rm -r tmp"}}),
        );
        let body = json!({"base_session_id": run["session_id"], "answers": [edit], "durability": durability});
        let next = app.run_with(body).await;
        let read = "read: [The caller changed the arguments of this call to {\"note\":\"rm -r tmp\"}. \
                    This is its result:]\n{\"note\":\"rm -r tmp\"}";
        assert_eq!(next["output_text"], read, "{next:#}");
        // The call itself stays as the model made it.
        let messages = app.get(&session_path(&next, "/messages")).await;
        assert_eq!(messages["data"][1]["content"][0]["arguments"], r#"{"note":"rm -r /"}"#);
        app.finish().await;
    }
}

async fn an_approval_is_remembered_along_the_line(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let mut agent = asker();
    agent["approvals"] = json!([{"tools": ["deploy", "look"], "approval": "always", "remember": true}]);
    app.put_agent("asker", agent.clone()).await;
    let call = |tool: &str| json!([["c1", tool, {}]]);
    let run = app.wait_for(call("deploy")).await;
    assert_eq!(run["required_action"]["calls"][0]["may_remember"], true);
    let remember = answer_to(&run, "c1", json!({"decision": "approve", "remember": true}));
    let next = app.answer(&run, json!([remember])).await.ok();
    let then = async |base: &Value, tool: &str| {
        let body = json!({"base_session_id": base["session_id"], "input": call(tool).to_string()});
        app.run_with(body).await
    };
    // The approval covers the tool, here and in what continues this session, and no other tool.
    let later = then(&next, "deploy").await;
    assert_eq!(later["status"], "completed");
    assert_eq!(then(&later, "deploy").await["status"], "completed");
    assert_eq!(then(&later, "look").await["status"], "waiting");
    assert_eq!(app.deploy.begun(), 3);
    let session = app.get(&session_path(&later, "")).await;
    assert_eq!(session["context_state"]["remembered_approvals"][0]["tool"], "deploy");
    // A branch from before the approval does not have it.
    let once = answer_to(&run, "c1", json!({"decision": "approve"}));
    let body = json!({"base_session_id": run["session_id"], "answers": [once], "conflict": "fork"});
    let other = app.run_with(body).await;
    assert_eq!(then(&other, "deploy").await["status"], "waiting");
    // A changed rule asks again.
    agent["approvals"][0]["expires_after_seconds"] = json!(60);
    app.put_agent("asker", agent).await;
    assert_eq!(then(&later, "deploy").await["status"], "waiting");
    app.finish().await;
}

async fn arguments_decide_about_an_approval(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let mut agent = asker();
    agent["approvals"] = json!([
        {"tools": ["deploy"], "approval": "never", "arguments": {"/note": "ls *"}},
        {"tools": ["de*"], "approval": "always"},
    ]);
    app.put_agent("asker", agent).await;
    let calls = json!([["c1", "deploy", {"note": "ls -l"}], ["c2", "deploy", {"note": "rm x"}], ["c3", "deploy", {}]]);
    let run = app.wait_for(calls).await;
    assert_eq!(open_calls(&run), ["c2", "c3"]);
    assert_eq!(app.deploy.begun(), 1);
    app.finish().await;
}

async fn a_client_tool_may_fail_or_be_denied(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let run = app
        .wait_for(json!([["c1", "ask", {"question": "1"}], ["c2", "ask", {"question": "2"}]]))
        .await;
    let answers = json!([
        // The result of a failure need not fit the schema.
        answer_to(&run, "c1", json!({"result": "The user is away.", "is_error": true})),
        answer_to(&run, "c2", json!({"decision": "deny", "reason": "Not now."})),
    ]);
    let next = app.answer(&run, answers).await.ok();
    let history = app.history(&next).await;
    assert_eq!(
        history[2],
        "tool error c1: The user is away. error c2: The caller denied this call: Not now."
    );
    let steps = app.get(&run_path(&next, "/steps")).await;
    assert_eq!(steps["data"][0]["errors"][0]["code"], "tool_client_failed");
    app.finish().await;
}
