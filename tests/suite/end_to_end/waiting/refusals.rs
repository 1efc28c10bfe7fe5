//! Answers that do not fit the open calls. Nothing begins, and the problem has what is to be filled
//! in.

use serde_json::json;
use test_support::databases::TestDatabase;
use values::json::Value;

use super::{WaitingApp, answer_to, mixed};
use crate::end_to_end::on_every_store;
use crate::support::answer::Answer;
use crate::support::gated::id;

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
        let mut body = json!({"base_session_id": run["session_id"], "input": "Never mind."});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    for mode in ["sync", "stream", "async"] {
        let refused = app.post("/v1/runs", &message(json!({"mode": mode}))).await;
        assert_refused(&refused, "answers_required", &run);
    }
    assert_eq!((app.mock.asked(), app.deploy.begun()), (1, 0));

    let denied = app.run_with(message(json!({"deny_open": true}))).await;
    assert_eq!(
        (&denied["status"], &denied["output_text"]),
        (&json!("completed"), &json!("echo: Never mind."))
    );
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
    assert!(
        history[2].contains("error c2: The caller denied") && history[2].contains("result c3:"),
        "{history:#?}"
    );
    // A session that does not wait has nothing to deny.
    let body = json!({"base_session_id": partly["session_id"], "input": "More.", "deny_open": true});
    assert_eq!(app.run_with(body).await["status"], "completed");
    // Without a message, nothing would be left of the request.
    let runs = app.get("/v1/runs").await["data"].as_array().unwrap().len();
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
    assert_eq!(app.get("/v1/runs").await["data"].as_array().unwrap().len(), runs);
    app.finish().await;
}

async fn answers_that_do_not_fit_are_refused(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let run = app.wait_for(mixed()).await;
    for (answers, pointer, words) in misfits(&run) {
        let refused = app.answer(&run, answers.clone()).await;
        assert_refused(&refused, "invalid_answers", &run);
        let errors = refused.json()["errors"].clone();
        assert_eq!(errors[0]["pointer"], pointer, "{answers}: {errors:#}");
        assert!(
            errors[0]["message"].as_str().unwrap().contains(words),
            "{answers}: {errors:#}"
        );
    }
    // All that is wrong is told at once.
    let approve = answer_to(&run, "c2", json!({"decision": "approve"}));
    let refused = app.answer(&run, json!([approve])).await;
    assert_eq!(refused.json()["errors"].as_array().unwrap().len(), 2);
    let body = json!({"answers": [], "base_session_id": run["session_id"], "input": "x"});
    let refused = app.post(&format!("/v1/runs/{}/answers", id(&run)), &body).await;
    refused.assert_problem("invalid_field");
    assert_eq!((app.mock.asked(), app.deploy.begun()), (1, 0));
    let runs = app.get("/v1/runs").await;
    assert_eq!(runs["data"].as_array().unwrap().len(), 1);
    app.finish().await;
}

fn with(mut answer: Value, field: &str, value: Value) -> Value {
    answer[field] = value;
    answer
}

/// Answers that do not fit, each with where and why.
fn misfits(run: &Value) -> Vec<(Value, &'static str, &'static str)> {
    let ask = |more: Value| answer_to(run, "c2", more);
    let deploy = |more: Value| answer_to(run, "c3", more);
    let yes = || ask(json!({"result": {"choice": "yes"}}));
    let approve = || deploy(json!({"decision": "approve"}));
    vec![
        (json!([yes()]), "/answers", "\"c3\" has no answer"),
        (json!([approve()]), "/answers", "\"c2\" has no answer"),
        (
            json!([yes(), approve(), with(yes(), "call_id", json!("c1"))]),
            "/answers/2/call_id",
            "no open call has the id \"c1\"",
        ),
        (json!([yes(), approve(), yes()]), "/answers/2/call_id", "another answer"),
        (
            json!([yes(), with(approve(), "arguments_hash", json!("0".repeat(64)))]),
            "/answers/1/arguments_hash",
            "other arguments",
        ),
        (
            json!([
                with(yes(), "arguments_hash", approve()["arguments_hash"].clone()),
                approve()
            ]),
            "/answers/0/arguments_hash",
            "other arguments",
        ),
        (
            json!([ask(json!({"decision": "approve"})), approve()]),
            "/answers/0/decision",
            "needs a result",
        ),
        (
            json!([ask(json!({"decision": "edit", "arguments": {}})), approve()]),
            "/answers/0/decision",
            "needs a result",
        ),
        (
            json!([yes(), deploy(json!({"result": "done"}))]),
            "/answers/1/result",
            "needs a decision",
        ),
        (
            json!([ask(json!({"result": {"choice": "perhaps"}})), approve()]),
            "/answers/0/result",
            "schema of ask",
        ),
        (
            json!([yes(), deploy(json!({"decision": "edit", "arguments": {"note": 1}}))]),
            "/answers/1/arguments",
            "schema of deploy",
        ),
        (
            json!([yes(), deploy(json!({"decision": "approve", "remember": true}))]),
            "/answers/1/remember",
            "does not allow",
        ),
    ]
}

async fn the_form_of_an_answer_is_checked_first(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let run = app.wait_for(mixed()).await;
    let deploy = |more: Value| answer_to(&run, "c3", more);
    let yes = || answer_to(&run, "c2", json!({"result": {"choice": "yes"}}));
    let approve = || deploy(json!({"decision": "approve"}));
    for (answers, code, pointer) in [
        (
            json!([with(yes(), "result", Value::Null), approve()]),
            "invalid_field",
            "/answers/0",
        ),
        (
            json!([with(yes(), "colour", json!("red"))]),
            "unknown_field",
            "/answers/0/colour",
        ),
        (
            json!([with(yes(), "arguments_hash", json!("abc"))]),
            "invalid_field",
            "/answers/0/arguments_hash",
        ),
        (json!([{"call_id": "c2"}]), "missing_field", "/answers/0/arguments_hash"),
        (
            json!([deploy(json!({"decision": "edit"}))]),
            "invalid_field",
            "/answers/0/arguments",
        ),
        (json!([]), "invalid_field", "/answers"),
    ] {
        let refused = app.answer(&run, answers.clone()).await;
        refused.assert_problem(code);
        assert_eq!(refused.json()["errors"][0]["pointer"], pointer, "{answers}");
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
    assert_eq!(
        (&problem["run_id"], &problem["run_status"]),
        (&next["run_id"], &json!("completed"))
    );
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
    refused.assert_problem("invalid_answers");
    assert_eq!(refused.json()["errors"][0]["pointer"], "/answers/0/arguments_hash");
    assert_eq!(app.deploy.begun(), 1);
    app.finish().await;
}

async fn a_call_with_invalid_arguments_needs_nobody(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let calls = json!([["c1", "ask", {"question": 1}], ["c2", "deploy", {"note": 1}], ["c3", "nothing", {}]]);
    let run = app
        .run_with(json!({"agent": "asker", "input": calls.to_string()}))
        .await;
    assert_eq!(
        (&run["status"], &run["required_action"]),
        (&json!("completed"), &Value::Null),
        "{run:#}"
    );
    let text = run["output_text"].as_str().unwrap();
    assert_eq!(text.matches("do not fit the schema").count(), 2, "{text}");
    app.finish().await;
}

async fn agents_with_impossible_rules_are_refused(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let ask = || json!({"name": "ask"});
    for (fields, pointer) in [
        (
            json!({"tools": ["look"], "client_tools": [{"name": "look"}]}),
            "/client_tools",
        ),
        (json!({"client_tools": [ask(), ask()]}), "/client_tools"),
        (
            json!({"client_tools": [{"name": "asker"}], "subagents": [{"agent": "asker"}]}),
            "/client_tools",
        ),
        (
            json!({"client_tools": [{"name": "ask", "parameters": {"type": "array"}}]}),
            "/client_tools",
        ),
        (
            json!({"approvals": [{"tools": [], "approval": "always"}]}),
            "/approvals",
        ),
        (
            json!({"approvals": [{"tools": ["a"], "approval": "always", "arguments": {"x": "*"}}]}),
            "/approvals",
        ),
        (
            json!({"client_tools": [ask()], "provider_tools": {"mock": [{"name": "ask"}]}}),
            "/provider_tools",
        ),
    ] {
        let mut definition = json!({"model": "mock/m"});
        definition
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        let refused = app.put("/v1/agents/impossible", &definition).await;
        refused.assert_problem("invalid_field");
        assert_eq!(refused.json()["errors"][0]["pointer"], pointer, "{fields}");
    }
    // A request may leave a client tool out, and can't add one.
    let body = json!({"agent": "asker", "input": "hello", "tools": ["look"]});
    let run = app.run_with(body).await;
    let offered = app.last_request()["tools"].clone();
    let names: Vec<_> = offered
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["function"]["name"].clone())
        .collect();
    assert_eq!((names, &run["status"]), (vec![json!("look")], &json!("completed")));
    let refused = app
        .post("/v1/runs", &json!({"agent": "asker", "input": "x", "tools": ["other"]}))
        .await;
    refused.assert_problem("invalid_field");
    app.finish().await;
}

async fn open_calls_and_approvals_are_not_imported(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let run = app.wait_for(json!([["c1", "deploy", {}]])).await;
    let session = app
        .get(&format!("/v1/sessions/{}", run["session_id"].as_str().unwrap()))
        .await;
    for (field, value) in [
        ("waiting", session["context_state"]["waiting"].clone()),
        (
            "remembered_approvals",
            json!([{"tool": "deploy", "rule": "0".repeat(64)}]),
        ),
    ] {
        let body = json!({"agent": "asker", "context_state": {field: value}});
        let refused = app.post("/v1/sessions", &body).await;
        refused.assert_problem("invalid_field");
        assert_eq!(
            refused.json()["errors"][0]["pointer"],
            format!("/context_state/{field}")
        );
    }
    app.finish().await;
}
