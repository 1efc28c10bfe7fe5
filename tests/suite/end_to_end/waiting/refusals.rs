//! Answers that do not fit the open calls. Nothing begins, and the problem has what is to be filled
//! in.

use serde_json::json;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::{WaitingApp, answer_to, mixed};
use crate::end_to_end::on_every_store;
use crate::support::answer::Answer;
use crate::support::members::{assert_members, column, extended};
use crate::support::table::rows;
use crate::support::test_app::{run_path, session_path};
use crate::support::text::assert_contains;

on_every_store!(
    a_message_is_refused_while_a_session_waits,
    answers_that_do_not_fit_are_refused,
    the_form_of_an_answer_is_checked_first,
    answers_to_nothing_are_refused,
    a_call_with_invalid_arguments_needs_nobody,
    agents_with_impossible_rules_are_refused,
    open_calls_and_approvals_are_not_imported,
);

/// Checks that an answer is a problem with the open calls of the run.
fn assert_refused(answer: &Answer, code: &str, run: &Value) {
    answer.assert_problem(code);
    let problem = answer.json();
    assert_eq!(problem["required_action"], run["required_action"], "{problem:#}");
    assert_eq!(problem["session_id"], run["session_id"]);
}

async fn a_message_is_refused_while_a_session_waits(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let run = app.wait_for(mixed()).await;
    let message = |more: Value| {
        let body = json!({"base_session_id": run["session_id"], "input": "Never mind."});
        extended(body, &more)
    };
    for mode in ["sync", "stream", "async"] {
        let refused = app.post("/v1/runs", &message(json!({"mode": mode}))).await;
        assert_refused(&refused, "answers_required", &run);
    }
    assert_eq!((app.mock.asked(), app.deploy.begun()), (1, 0));

    let denied = app.run_with(message(json!({"deny_open": true}))).await;
    assert_members!(denied, {"status": "completed", "output_text": "echo: Never mind."});
    let history = app.history(&denied).await;
    assert_eq!(
        history[2],
        "tool result c1: {\"note\":\"a\"} error c2: The caller denied this call. \
         error c3: The caller denied this call. result c4: {\"note\":\"c\"}"
    );
    // Some answers, and the rest is denied.
    let body = message(json!({
        "deny_open": true, "answers": [answer_to(&run, "c3", json!({"decision": "approve"}))], "conflict": "fork",
    }));
    let partly = app.run_with(body).await;
    let history = app.history(&partly).await;
    assert_contains!(history[2], "error c2: The caller denied", "result c3:");
    // A session that does not wait has nothing to deny.
    let body = json!({"base_session_id": partly["session_id"], "input": "More.", "deny_open": true});
    assert_eq!(app.run_with(body).await["status"], "completed");
    // Without a message, nothing would be left of the request.
    let runs = database.number("select count(*) from runs").await;
    for base in [
        json!({"base_session_id": partly["session_id"]}),
        json!({"agent": "asker"}),
        json!({"agent": "asker", "thread": "new"}),
    ] {
        for mode in ["sync", "async"] {
            let mut body = base.clone();
            body["deny_open"] = json!(true);
            body["mode"] = json!(mode);
            app.post("/v1/runs", &body).await.assert_problem("session_not_waiting");
        }
    }
    assert_eq!(database.number("select count(*) from runs").await, runs);
    app.finish().await;
}

async fn answers_that_do_not_fit_are_refused(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let run = app.wait_for(mixed()).await;
    for [pointer, words, answers] in rows(MISFITS) {
        let refused = app.answer(&run, read_answers(&run, answers)).await;
        assert_refused(&refused, "invalid_answers", &run);
        let errors = refused.json()["errors"].clone();
        assert_eq!(errors[0]["pointer"], pointer, "{answers}: {errors:#}");
        assert_contains!(errors[0]["message"].as_str().unwrap(), words; "{answers}");
    }
    // All that is wrong is told at once.
    let approve = answer_to(&run, "c2", json!({"decision": "approve"}));
    let refused = app.answer(&run, json!([approve])).await;
    assert_eq!(refused.json()["errors"].as_array().unwrap().len(), 2);
    let body = json!({"answers": [], "base_session_id": run["session_id"], "input": "x"});
    let refused = app.post(&run_path(&run, "/answers"), &body).await;
    refused.assert_problem("invalid_field");
    assert_eq!((app.mock.asked(), app.deploy.begun()), (1, 0));
    let runs = app.get("/v1/runs").await;
    assert_eq!(runs["data"].as_array().unwrap().len(), 1);
    app.finish().await;
}

/// The pointer and words of a refusal, and answers that do not fit.
const MISFITS: &str = r#"
/answers                  | "c3" has no answer           | [YES]
/answers                  | "c2" has no answer           | [APPROVE]
/answers/2/call_id        | no open call has the id "c1" | [YES, APPROVE, {"call_id": "c1", "arguments_hash": "ASKED", "result": {"choice": "yes"}}]
/answers/2/call_id        | another answer               | [YES, APPROVE, YES]
/answers/1/arguments_hash | other arguments              | [YES, {"call_id": "c3", "arguments_hash": "ZEROS", "decision": "approve"}]
/answers/0/arguments_hash | other arguments              | [{"call_id": "c2", "arguments_hash": "DEPLOYED", "result": {"choice": "yes"}}, APPROVE]
/answers/0/decision       | needs a result               | [{ASK, "decision": "approve"}, APPROVE]
/answers/0/decision       | needs a result               | [{ASK, "decision": "edit", "arguments": {}}, APPROVE]
/answers/1/result         | needs a decision             | [YES, {DEPLOY, "result": "done"}]
/answers/0/result         | schema of ask                | [{ASK, "result": {"choice": "perhaps"}}, APPROVE]
/answers/1/arguments      | schema of deploy             | [YES, {DEPLOY, "decision": "edit", "arguments": {"note": 1}}]
/answers/1/remember       | does not allow               | [YES, {DEPLOY, "decision": "approve", "remember": true}]
"#;

/// The code and pointer of a refusal, and answers whose form is wrong.
const MALFORMED: &str = r#"
invalid_field | /answers/0                | [{ASK, "result": null}, APPROVE]
unknown_field | /answers/0/colour         | [{ASK, "result": {"choice": "yes"}, "colour": "red"}]
invalid_field | /answers/0/arguments_hash | [{"call_id": "c2", "arguments_hash": "abc", "result": {"choice": "yes"}}]
missing_field | /answers/0/arguments_hash | [{"call_id": "c2"}]
invalid_field | /answers/0/arguments      | [{DEPLOY, "decision": "edit"}]
invalid_field | /answers                  | []
"#;

/// Reads answers of a table to the calls of a run.
fn read_answers(run: &Value, text: &str) -> Value {
    let [asked, deployed] = ["c2", "c3"].map(|call| answer_to(run, call, json!({}))["arguments_hash"].clone());
    let text = text
        .replace("YES", r#"{ASK, "result": {"choice": "yes"}}"#)
        .replace("APPROVE", r#"{DEPLOY, "decision": "approve"}"#)
        .replace("ASKED", asked.as_str().unwrap())
        .replace("DEPLOYED", deployed.as_str().unwrap())
        .replace("ZEROS", &"0".repeat(64))
        .replace("ASK", &format!(r#""call_id": "c2", "arguments_hash": {asked}"#))
        .replace("DEPLOY", &format!(r#""call_id": "c3", "arguments_hash": {deployed}"#));
    serde_json::from_str(&text).unwrap()
}

async fn the_form_of_an_answer_is_checked_first(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let run = app.wait_for(mixed()).await;
    for [code, pointer, answers] in rows(MALFORMED) {
        let refused = app.answer(&run, read_answers(&run, answers)).await;
        refused.assert_problem_at(code, pointer);
    }
    assert_eq!((app.mock.asked(), app.deploy.begun()), (1, 0));
    app.finish().await;
}

async fn answers_to_nothing_are_refused(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let run = app.wait_for(json!([["c1", "deploy", {}]])).await;
    let answers = json!([answer_to(&run, "c1", json!({"decision": "approve"}))]);
    let next = app.answer(&run, answers.clone()).await.ok();

    let refused = app.answer(&next, answers.clone()).await;
    refused.assert_problem("run_not_waiting");
    let problem = refused.json();
    assert_members!(problem, {"run_id": next["run_id"], "run_status": "completed"});
    // Stale answers: of the session before.
    let body = json!({"base_session_id": next["session_id"], "answers": answers});
    let refused = app.post("/v1/runs", &body).await;
    refused.assert_problem("session_not_waiting");
    assert_eq!(refused.json()["session_id"], next["session_id"]);
    let refused = app
        .post("/v1/runs", &json!({"agent": "asker", "answers": answers}))
        .await;
    refused.assert_problem("session_not_waiting");
    let unknown = "/v1/runs/00000000-0000-7000-8000-000000000000/answers";
    app.post(unknown, &json!({"answers": answers}))
        .await
        .assert_problem("run_not_found");
    // Answers to a later step of the same conversation.
    let body =
        json!({"base_session_id": next["session_id"], "input": json!([["c1", "deploy", {"note": "2"}]]).to_string()});
    let later = app.run_with(body).await;
    assert_eq!(later["status"], "waiting");
    let refused = app.answer(&later, answers).await;
    refused.assert_problem_at("invalid_answers", "/answers/0/arguments_hash");
    assert_eq!(app.deploy.begun(), 1);
    app.finish().await;
}

async fn a_call_with_invalid_arguments_needs_nobody(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let calls = json!([["c1", "ask", {"question": 1}], ["c2", "deploy", {"note": 1}], ["c3", "nothing", {}]]);
    let run = app
        .run_with(json!({"agent": "asker", "input": calls.to_string()}))
        .await;
    assert_members!(run, {"status": "completed", "required_action": null});
    let text = run["output_text"].as_str().unwrap();
    assert_eq!(text.matches("do not fit the schema").count(), 2, "{text}");
    app.finish().await;
}

/// The pointer of a problem, and fields of an agent that have it.
const IMPOSSIBLE: &str = r#"
/client_tools   | {"tools": ["look"], "client_tools": [{"name": "look"}]}
/client_tools   | {"client_tools": [{"name": "ask"}, {"name": "ask"}]}
/client_tools   | {"client_tools": [{"name": "asker"}], "subagents": [{"agent": "asker"}]}
/client_tools   | {"client_tools": [{"name": "ask", "parameters": {"type": "array"}}]}
/approvals      | {"approvals": [{"tools": [], "approval": "always"}]}
/approvals      | {"approvals": [{"tools": ["a"], "approval": "always", "arguments": {"x": "*"}}]}
/provider_tools | {"client_tools": [{"name": "ask"}], "provider_tools": {"mock": [{"name": "ask"}]}}
"#;

async fn agents_with_impossible_rules_are_refused(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    for [pointer, fields] in rows(IMPOSSIBLE) {
        let fields = serde_json::from_str(fields).unwrap();
        let definition = extended(json!({"model": "mock/m"}), &fields);
        let refused = app.put("/v1/agents/impossible", &definition).await;
        refused.assert_problem_at("invalid_field", pointer);
    }
    // A request may leave a client tool out, and can't add one.
    let body = json!({"agent": "asker", "input": "hello", "tools": ["look"]});
    let run = app.run_with(body).await;
    let offered = app.last_request()["tools"].clone();
    let names = column(&offered, "function/name");
    assert_eq!(names, ["look"]);
    assert_eq!(run["status"], "completed");
    let refused = app
        .post("/v1/runs", &json!({"agent": "asker", "input": "x", "tools": ["other"]}))
        .await;
    refused.assert_problem("invalid_field");
    app.finish().await;
}

async fn open_calls_and_approvals_are_not_imported(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let run = app.wait_for(json!([["c1", "deploy", {}]])).await;
    let session = app.get(&session_path(&run, "")).await;
    for (field, value) in [
        ("waiting", session["context_state"]["waiting"].clone()),
        (
            "remembered_approvals",
            json!([{"tool": "deploy", "rule": "0".repeat(64)}]),
        ),
    ] {
        let body = json!({"agent": "asker", "context_state": {field: value}});
        let refused = app.post("/v1/sessions", &body).await;
        refused.assert_problem_at("invalid_field", &format!("/context_state/{field}"));
    }
    app.finish().await;
}
