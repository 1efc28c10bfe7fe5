//! Steps whose calls are of every kind: those that need nobody are executed before the run waits.

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::fake_tool::{Behaviour, FakeTool};
use values::json::Value;
use values::session::hash_arguments;

use super::{WaitingApp, answer_to, asker, mixed, open_calls};
use crate::end_to_end::on_every_store;
use crate::support::members::{assert_members, column};
use crate::support::mock_model::MockModel;
use crate::support::test_app::{TestApp, run_path, session_path};

on_every_store!(
    a_mixed_batch_waits_and_goes_on_with_all_answers,
    a_second_step_may_wait_again,
    the_input_follows_the_results,
    every_driver_waits,
    what_was_executed_before_the_wait_is_not_executed_again,
    a_stopped_run_does_not_wait,
);

async fn a_mixed_batch_waits_and_goes_on_with_all_answers(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let run = app.wait_for(mixed()).await;
    assert_members!(run, {"stop_reason": "answer_required", "error": null, "step_count": 1});
    assert_eq!(run["stop_signal"]["context"], json!({"open": 2}));
    assert_eq!(open_calls(&run), ["c2", "c3"]);
    let [ask, deploy] = [0, 1].map(|index| &run["required_action"]["calls"][index]);
    assert_members!(ask, {"kind": "client", "tool": "ask", "arguments": {"question": "Sure?"}});
    assert_eq!(ask["response_schema"], asker()["client_tools"][0]["response_schema"]);
    let hash = hash_arguments(&json!({"question": "Sure?"})).to_string();
    assert_eq!(ask["arguments_hash"], hash);
    assert_members!(deploy, {"kind": "approval", "tool": "deploy", "may_remember": false});
    assert_eq!(deploy["response_schema"]["properties"]["note"]["type"], "string");
    let stubs = &run["required_action"]["answers"];
    assert_eq!(
        stubs[0],
        json!({"call_id": "c2", "arguments_hash": hash, "result": null})
    );
    assert_eq!(stubs[1]["decision"], Value::Null);
    assert!(stubs[1].as_object().unwrap().contains_key("decision"));
    // The calls that need nobody are done, and the others have not begun.
    assert_eq!((app.look.begun(), app.deploy.begun(), app.mock.asked()), (2, 0, 1));
    assert_eq!(app.shown(&run).await, run);

    assert_open_step(&app, &run).await;
    let answers = json!([
        answer_to(&run, "c3", json!({"decision": "approve"})),
        answer_to(&run, "c2", json!({"result": {"choice": "yes"}})),
    ]);
    let next = app.answer(&run, answers).await.ok();
    let read = r#"read: {"note":"a"} | {"choice":"yes"} | {"note":"b"} | {"note":"c"}"#;
    assert_members!(next, {"status": "completed", "output_text": read, "base_session_id": run["session_id"]});
    assert_eq!((app.look.begun(), app.deploy.begun(), app.mock.asked()), (2, 1, 2));
    assert_eq!(
        app.history(&next).await,
        [
            format!("user {}", mixed()),
            "assistant call c1 call c2 call c3 call c4".to_owned(),
            "tool result c1: {\"note\":\"a\"} result c2: {\"choice\":\"yes\"} result c3: {\"note\":\"b\"} result c4: {\"note\":\"c\"}".to_owned(),
            format!("assistant {read}"),
        ]
    );
    let session = app.get(&session_path(&next, "")).await;
    assert_eq!(session["context_state"].get("waiting"), None);
    assert_eq!(session["execution_count"], 2);
    // Each run counts what it has used itself.
    assert_eq!(run["usage"]["total_tokens"], next["usage"]["total_tokens"]);
    let steps = app.get(&run_path(&next, "/steps")).await;
    let executions = steps["data"][0]["tool_executions"].as_array().unwrap();
    let makers: Vec<_> = executions
        .iter()
        .map(|execution| (execution.get("verdict").cloned(), execution.get("is_foreign").cloned()))
        .collect();
    let (own, of_caller) = ((None, None), (Some(json!("supplied")), Some(json!(true))));
    assert_eq!(makers, [own.clone(), of_caller, own.clone(), own]);
    let verified = app.get(&session_path(&next, "/verify")).await;
    assert_eq!(verified["valid"], true, "{verified:#}");
    app.finish().await;
}

/// Checks what the session and the record of the run have of the open step.
async fn assert_open_step(app: &WaitingApp, run: &Value) {
    // The history is valid: it lacks the open step, which is in the context.
    assert_eq!(app.history(run).await, [format!("user {}", mixed())]);
    let session = app.get(&session_path(run, "")).await;
    let waiting = &session["context_state"]["waiting"];
    assert_members!(waiting, {"open_calls/0/call_id": "c2", "message_count": 1});
    let steps = app.get(&run_path(run, "/steps")).await;
    let step = &steps["data"][0];
    let executed = column(&step["tool_executions"], "call_id");
    assert_eq!(executed, ["c1", "c4"]);
    assert_eq!(step["messages"][0]["content"].as_array().unwrap().len(), 4);
    assert_eq!(column(&step["messages"][1]["content"], "call_id"), executed);
}

async fn a_second_step_may_wait_again(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let first = app.wait_for(json!([["c1", "ask", {"question": "One?"}]])).await;
    // The answer comes with a message, which makes the model ask again.
    let again = json!([["c2", "ask", {"question": "Two?"}]]).to_string();
    let answers = json!([answer_to(&first, "c1", json!({"result": {"choice": "yes"}}))]);
    let body = json!({"answers": answers, "input": again});
    let second = app.post(&run_path(&first, "/answers"), &body).await.ok();
    assert_eq!(
        (&second["status"], open_calls(&second)),
        (&json!("waiting"), vec!["c2"])
    );
    let answers = json!([answer_to(&second, "c2", json!({"result": {"choice": "no"}}))]);
    let third = app.answer(&second, answers).await.ok();
    assert_eq!(third["output_text"], r#"read: {"choice":"no"}"#);
    let history = app.history(&third).await;
    assert_eq!(history.len(), 7, "{history:#?}");
    app.finish().await;
}

async fn the_input_follows_the_results(database: TestDatabase) {
    for durability in ["session", "step"] {
        let app = WaitingApp::start(&database, &[]).await;
        let run = app.wait_for(json!([["c1", "deploy", {"note": "x"}]])).await;
        let body = json!({
            "base_session_id": run["session_id"], "durability": durability, "input": "And then?",
            "answers": [answer_to(&run, "c1", json!({"decision": "approve"}))],
        });
        let next = app.run_with(body).await;
        assert_eq!(next["output_text"], "echo: And then?", "{next:#}");
        assert_eq!(
            app.history(&next).await[1..],
            [
                "assistant call c1",
                "tool result c1: {\"note\":\"x\"}",
                "user And then?",
                "assistant echo: And then?"
            ]
        );
        let request = app.last_request();
        let roles = column(&request["messages"], "role");
        assert_eq!(roles, ["user", "assistant", "tool", "user"]);
        app.finish().await;
    }
}

async fn every_driver_waits(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let script = json!([
        {"text": "Let me ask.", "tool_calls": [
            {"name": "ask", "arguments": {"question": "Sure?"}}, {"name": "look", "arguments": {}},
        ]},
        {"text": "That is all."},
    ]);
    let mut scripted = asker();
    scripted["driver"] = json!("scripted");
    scripted["script"] = script;
    app.put_agent("scripted", scripted).await;
    let run = app.run_with(json!({"agent": "scripted", "input": "go"})).await;
    assert_eq!(run["status"], "waiting", "{run:#}");
    let [call_id] = open_calls(&run)[..] else {
        panic!("{run:#}")
    };
    let answers = json!([answer_to(&run, call_id, json!({"result": {"choice": "no"}}))]);
    let next = app.answer(&run, answers).await.ok();
    assert_members!(next, {"status": "completed", "output_text": "That is all."});

    // A session that one driver has left is continued by another one.
    let run = app.wait_for(json!([["c1", "deploy", {"note": "x"}]])).await;
    let answers = json!([answer_to(&run, "c1", json!({"decision": "approve"}))]);
    let body = json!({"agent": "scripted", "answers": answers});
    let next = app.post(&run_path(&run, "/answers"), &body).await.ok();
    assert_members!(next, {"status": "completed", "output_text": "That is all."});
    assert_eq!(app.deploy.begun(), 1);
    app.finish().await;
}

async fn what_was_executed_before_the_wait_is_not_executed_again(database: TestDatabase) {
    let app = WaitingApp::start(&database, &[]).await;
    let run = app.wait_for(mixed()).await;
    for choice in ["yes", "no"] {
        let answers = json!([
            answer_to(&run, "c2", json!({"result": {"choice": choice}})),
            answer_to(&run, "c3", json!({"decision": "approve"})),
        ]);
        let body = json!({"answers": answers, "conflict": "fork"});
        let next = app.post(&run_path(&run, "/answers"), &body).await.ok();
        assert!(next["output_text"].as_str().unwrap().contains(choice), "{next:#}");
        assert_eq!(next["base_session_id"], run["session_id"]);
    }
    // Two branches: each has executed the approved call, with a key of its own.
    assert_eq!((app.look.begun(), app.deploy.begun()), (2, 2));
    let keys = app.deploy.keys();
    assert_ne!(keys[0], keys[1]);
    let children = app.get(&session_path(&run, "/children")).await;
    assert_eq!(children["data"].as_array().unwrap().len(), 2);
    app.finish().await;
}

/// A tool that ends the run, in the same step, leaves nothing open.
async fn a_stopped_run_does_not_wait(database: TestDatabase) {
    let mock = MockModel::start(super::model).await;
    let look = FakeTool::new("look", Behaviour::End("that is all".to_owned()));
    let deploy = FakeTool::new("deploy", Behaviour::EchoArguments);
    let app = TestApp::start_with_tools(database.url(), &mock, &[], [&look, &deploy]).await;
    app.put_agent("asker", asker()).await;
    let run = app
        .run_with(json!({"agent": "asker", "input": mixed().to_string()}))
        .await;
    assert_members!(run, {"status": "stopped", "required_action": null});
    let messages = app.get(&session_path(&run, "/messages")).await;
    let last = super::shown(messages["data"].as_array().unwrap().last().unwrap());
    assert_eq!(
        last,
        "tool result c1: that is all error c2: The run ended before this tool was called. \
         error c3: The run ended before this tool was called. result c4: that is all"
    );
    assert_eq!(deploy.begun(), 0);
    app.finish().await;
}
