//! What a request sets for its run alone: settings that the session does not inherit, instructions,
//! client tools, traces, and whether anything is published.

use std::sync::Arc;

use agent::record::StepRecord;
use agent_runtime::run::read::run_messages;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use values::message::{Message, Role};
use values::tenant::TenantId;

use super::on_every_store;
use super::waiting::{answer_to, model};
use crate::support::members::{assert_members, extended};
use crate::support::mock_model::{MockModel, Reply, last_user_text, texts};
use crate::support::table::rows;
use crate::support::test_app::{TestApp, run_path, session_path};

on_every_store!(
    settings_for_this_run_leave_those_of_the_session,
    null_makes_the_format_and_the_metadata_the_agents_again,
    instructions_follow_the_prompt_and_are_no_template,
    a_request_chooses_the_traces_of_its_run,
    a_run_that_publishes_nothing_leaves_its_record,
    a_waiting_run_that_publishes_nothing_is_not_answered,
    a_run_that_publishes_nothing_answers_in_a_branch,
    a_call_that_needs_an_approval_fails_a_run_that_publishes_nothing,
    client_tools_of_a_request_last_until_the_answer,
    input_and_output_of_a_run_are_separate,
    parts_of_other_models_are_taken,
);

/// What the last request said: prompt, temperature, tools and format.
fn last_asked(mock: &MockModel) -> Value {
    let request = mock.requests().pop().unwrap();
    let first = &request["messages"][0];
    let system = if first["role"] == "system" {
        &first["content"]
    } else {
        &Value::Null
    };
    let tools = request["tools"].as_array().into_iter().flatten();
    let tools: Vec<_> = tools.map(|tool| &tool["function"]["name"]).collect();
    json!([
        system,
        request["temperature"],
        tools,
        request["response_format"]["type"]
    ])
}

/// A service with the agent `own`, whose model answers with an empty object.
async fn start(database: &TestDatabase) -> (MockModel, TestApp) {
    let mock = MockModel::start(|_| Reply::text("{}")).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let agent = json!({
        "model": "mock/m", "system_prompt": "You are A.", "tools": ["current_time", "calculator"],
        "parameters": {"temperature": 0.25}, "metadata": {"tier": 1},
    });
    app.put_agent("own", agent).await;
    (mock, app)
}

/// Continues a session, as a light run or through the queue. Returns the run and the context that
/// it has left.
async fn turn(app: &TestApp, base: &Value, mode: &str, more: &Value) -> (Value, Value) {
    let body = json!({"agent": "own", "input": "hi", "base_session_id": base, "mode": mode});
    let run = app.post("/v1/runs", &extended(body, more)).await.ok();
    let run = app.ended(&run).await;
    assert_eq!(run["status"], "completed", "{run:#}");
    let session = app.get(&session_path(&run, "")).await;
    (run, session["context_state"].clone())
}

/// Settings that last.
fn lasting() -> Value {
    json!({
        "system_prompt": "You are B.", "parameters": {"temperature": 1.0}, "tools": ["calculator"],
        "response_format": {"type": "json_object"}, "metadata": {"a": 1},
    })
}

async fn settings_for_this_run_leave_those_of_the_session(database: TestDatabase) {
    let (mock, app) = start(&database).await;
    let set = json!(["You are B.", 1.0, ["calculator"], "json_object"]);
    let (first, left) = turn(&app, &Value::Null, "sync", &lasting()).await;
    assert_eq!(last_asked(&mock), set);
    assert_members!(left, {"system_prompt": "You are B.", "metadata": {"tier": 1, "a": 1}});

    let nothing = json!({
        "system_prompt": null, "parameters": null, "tools": null, "response_format": null, "metadata": null,
        "for_this_run": ["system_prompt", "parameters", "response_format", "tools", "metadata"],
    });
    let mut base = first["session_id"].clone();
    for mode in ["sync", "async"] {
        let (run, context) = turn(&app, &base, mode, &nothing).await;
        assert_eq!(
            last_asked(&mock),
            json!(["You are A.", 0.25, ["current_time", "calculator"], null])
        );
        assert_eq!(run["metadata"], json!({}));
        for setting in ["system_prompt", "overrides", "response_format", "metadata"] {
            assert_eq!(context[setting], left[setting], "{setting}");
        }
        base = run["session_id"].clone();
    }

    let other = json!({
        "system_prompt": "You are C.", "metadata": {"b": 2}, "for_this_run": ["system_prompt", "metadata"],
    });
    let (run, context) = turn(&app, &base, "sync", &other).await;
    assert_eq!(
        last_asked(&mock),
        json!(["You are C.", 1.0, ["calculator"], "json_object"])
    );
    assert_eq!(run["metadata"], json!({"b": 2}));
    assert_members!(context, {"system_prompt": "You are B.", "metadata": {"tier": 1, "a": 1}});
    turn(&app, &run["session_id"], "sync", &json!({})).await;
    assert_eq!(last_asked(&mock), set);
    app.finish().await;
}

async fn null_makes_the_format_and_the_metadata_the_agents_again(database: TestDatabase) {
    let (mock, app) = start(&database).await;
    let (first, _) = turn(&app, &Value::Null, "sync", &lasting()).await;
    let cleared = json!({"response_format": null, "metadata": null});
    let (second, context) = turn(&app, &first["session_id"], "async", &cleared).await;
    assert_members!(context, {"response_format": {"type": "text"}, "metadata": {"tier": 1}});
    turn(&app, &second["session_id"], "sync", &json!({})).await;
    assert_eq!(last_asked(&mock), json!(["You are B.", 1.0, ["calculator"], null]));
    app.finish().await;
}

async fn instructions_follow_the_prompt_and_are_no_template(database: TestDatabase) {
    let (mock, app) = start(&database).await;
    let agent = json!({"model": "mock/m", "system_prompt": "You are A for {{ variables.who }}."});
    app.put_agent("templated", agent).await;
    app.put_agent("bare", json!({"model": "mock/m"})).await;
    let text = "Write {{ braces }} as they are.";
    let variables = json!({"who": "Ada"});
    for (agent, mode, expected) in [
        ("templated", "sync", format!("You are A for Ada.\n\n{text}")),
        ("templated", "async", format!("You are A for Ada.\n\n{text}")),
        ("own", "sync", format!("You are A.\n\n{text}")),
        ("bare", "sync", text.to_owned()),
    ] {
        let more = json!({"agent": agent, "instructions": text, "variables": variables});
        let (run, context) = turn(&app, &Value::Null, mode, &more).await;
        assert_eq!(last_asked(&mock)[0], expected);
        assert!(!context["system_prompt"].as_str().unwrap().contains(text));
        turn(&app, &run["session_id"], "sync", &json!({"agent": agent})).await;
        assert_ne!(last_asked(&mock)[0], expected);
    }
    let long = json!({"input": "hi", "instructions": "x".repeat((1 << 20) + 1)});
    let refused = app.post("/v1/runs", &long).await;
    refused.assert_problem_at("invalid_field", "/instructions");
    app.finish().await;
}

async fn a_request_chooses_the_traces_of_its_run(database: TestDatabase) {
    let mock = MockModel::start(model).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("adder", json!({"model": "mock/m", "tools": ["calculator"]}))
        .await;
    let calls = json!([["c1", "calculator", {"expression": "1 + 1"}]]).to_string();
    let first = app.run_with(json!({"agent": "adder", "input": calls})).await;
    let asked = async |more: Value| {
        let body = json!({"input": "thanks", "base_session_id": first["session_id"]});
        app.run_with(extended(body, &more)).await;
        let request = mock.requests().pop().unwrap();
        request["messages"].as_array().unwrap().len()
    };
    // The question, the answer and the new message; or also the call and its result.
    assert_eq!(asked(json!({})).await, 3);
    assert_eq!(asked(json!({"traces": "all"})).await, 5);
    assert_eq!(asked(json!({"traces": "none"})).await, 3);
    app.finish().await;
}

async fn a_run_that_publishes_nothing_leaves_its_record(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let base = app.run(None, "first").await;
    let body = json!({
        "input": "second", "base_session_id": base["session_id"], "publish": false, "metadata": {"ticket": 7},
    });
    let run = app.run_with(body.clone()).await;
    assert_members!(run, {"status": "completed", "session_id": null, "output_text": "echo: second"});
    assert_eq!(base["input"], Value::Null, "the session has it");
    let request = mock.requests().pop().unwrap();
    assert_eq!(texts(&request["messages"]), ["first", "echo: first", "second"]);
    app.until_idle().await;

    let stored = app.get(&run_path(&run, "")).await;
    assert_members!(stored, {
        "status": "completed", "session_id": null, "base_session_id": base["session_id"], "input": null,
        "output": [], "output_text": "", "finish_reason": "stop", "metadata": {"ticket": 7},
    });
    assert_eq!(stored["usage"], run["usage"]);
    assert_eq!(app.get(&run_path(&run, "/steps")).await["data"], json!([]));
    assert_eq!(app.get("/v1/sessions").await["data"].as_array().unwrap().len(), 1);
    let path = format!("/v1/runs?base_session_id={}", base["session_id"].as_str().unwrap());
    assert_eq!(app.get(&path).await["data"][0]["run_id"], run["run_id"]);

    let events = app.stream(body.clone()).await;
    let names: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert!(!names.contains(&"session.committed"), "{names:?}");
    assert_eq!(events.last().unwrap()["data"]["output_text"], "echo: second");
    for more in [json!({"mode": "async"}), json!({"durability": "step"})] {
        let refused = app.post("/v1/runs", &extended(body.clone(), &more)).await;
        refused.assert_problem_at("invalid_field", "/publish");
    }
    app.finish().await;
}

/// A client tool that a request brings.
fn ask() -> Value {
    json!({
        "name": "ask", "description": "Asks the user.",
        "parameters": {"type": "object", "properties": {"question": {"type": "string"}}},
    })
}

/// A request whose model calls the client tool.
fn asking() -> Value {
    let calls = json!([["c1", "ask", {"question": "Sure?"}]]).to_string();
    json!({"agent": "plain", "input": calls, "client_tools": [ask()]})
}

async fn start_plain(database: &TestDatabase) -> (MockModel, TestApp) {
    let mock = MockModel::start(model).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("plain", json!({"model": "mock/m", "tools": ["calculator"]}))
        .await;
    (mock, app)
}

async fn a_waiting_run_that_publishes_nothing_is_not_answered(database: TestDatabase) {
    let (_mock, app) = start_plain(&database).await;
    let run = app.run_with(extended(asking(), &json!({"publish": false}))).await;
    assert_members!(run, {"status": "waiting", "session_id": null, "required_action/calls/0/tool": "ask"});
    app.until_idle().await;
    let stored = app.get(&run_path(&run, "")).await;
    assert_members!(stored, {"status": "waiting", "required_action": null, "output": []});
    let answers = json!({"answers": [answer_to(&run, "c1", json!({"result": "yes"}))]});
    let refused = app.post(&run_path(&run, "/answers"), &answers).await;
    refused.assert_problem("session_not_committed");
    app.finish().await;
}

async fn a_run_that_publishes_nothing_answers_in_a_branch(database: TestDatabase) {
    let (_mock, app) = start_plain(&database).await;
    let waiting = app.run_with(asking()).await;
    let answers = json!({"answers": [answer_to(&waiting, "c1", json!({"result": "yes"}))]});
    let path = run_path(&waiting, "/answers");
    let unpublished = extended(answers.clone(), &json!({"publish": false}));
    let refused = app.post(&path, &unpublished).await;
    refused.assert_problem_at("invalid_field", "/publish");
    let forked = extended(unpublished, &json!({"conflict": "fork"}));
    let run = app.post(&path, &forked).await.ok();
    assert_members!(run, {
        "status": "completed", "session_id": null, "base_session_id": waiting["session_id"], "output_text": "read: yes",
    });
    app.until_idle().await;
    // The call is open still.
    let stored = app.get(&run_path(&waiting, "")).await;
    assert_members!(stored, {"status": "waiting", "required_action/calls/0/tool": "ask"});
    let run = app.post(&path, &answers).await.ok();
    assert_members!(run, {"status": "completed", "output_text": "read: yes"});
    app.finish().await;
}

async fn a_call_that_needs_an_approval_fails_a_run_that_publishes_nothing(database: TestDatabase) {
    let (_mock, app) = start_plain(&database).await;
    let agent = json!({
        "model": "mock/m", "tools": ["calculator"], "approvals": [{"tools": ["*"], "approval": "always"}],
    });
    app.put_agent("careful", agent).await;
    let calls = json!([["c1", "calculator", {"expression": "1 + 1"}]]).to_string();
    let run = app
        .run_with(json!({"agent": "careful", "input": calls, "publish": false}))
        .await;
    app.until_idle().await;
    for shown in [&run, &app.get(&run_path(&run, "")).await] {
        assert_members!(shown, {
            "status": "failed", "error/code": "answers_required", "error/phase": "execute", "required_action": null,
        });
    }
    app.finish().await;
}

/// Requests with client tools that are refused: the pointer, and the fields.
const REFUSED_TOOLS: &str = r#"
/client_tools/0/name       | {"client_tools": [{"name": "calculator"}]}
/client_tools/1/name       | {"client_tools": [{"name": "a"}, {"name": "a"}]}
/client_tools/0/name       | {"client_tools": [{"name": "no name"}]}
/client_tools/0/parameters | {"client_tools": [{"name": "a", "parameters": {"type": "string"}}]}
/parameters/tool_choice    | {"client_tools": [{"name": "a"}], "parameters": {"tool_choice": {"tool": "b"}}}
/parameters/tool_choice    | {"client_tools": [{"name": "a"}], "parameters": {"tool_choice": {"tool": "a"}}}
"#;

async fn client_tools_of_a_request_last_until_the_answer(database: TestDatabase) {
    let (mock, app) = start_plain(&database).await;
    let tools = || last_asked(&mock)[2].clone();
    let choice = json!({"parameters": {"tool_choice": {"tool": "ask"}}, "for_this_run": ["parameters"]});
    let run = app.run_with(extended(asking(), &choice)).await;
    assert_eq!(
        (&run["status"], tools()),
        (&json!("waiting"), json!(["calculator", "ask"]))
    );
    let session = app.get(&session_path(&run, "")).await;
    assert_eq!(session["context_state"]["waiting"]["client_tools"], json!([ask()]));

    let content = json!([
        {"type": "text", "text": "Like this:"},
        {"type": "image", "source": {"kind": "url", "url": "data:image/png;base64,AAAA"}},
    ]);
    let answer = answer_to(&run, "c1", json!({"content": content}));
    let answers = json!({"answers": [answer], "conflict": "fork"});
    let next = app.post(&run_path(&run, "/answers"), &answers).await.ok();
    assert_eq!(
        (&next["status"], tools()),
        (&json!("completed"), json!(["calculator", "ask"]))
    );
    let page = app.get(&session_path(&next, "/messages")).await;
    let image = json!({"kind": "base64", "media_type": "image/png", "data": "AAAA"});
    assert_members!(page["data"][2], {
        "role": "tool", "content/0/content/0/text": "Like this:", "content/0/content/1/source": image,
    });
    let session = app.get(&session_path(&next, "")).await;
    assert_eq!(session["context_state"]["waiting"], Value::Null);

    app.run_with(json!({"input": "on", "base_session_id": next["session_id"]}))
        .await;
    assert_eq!(tools(), json!(["calculator"]));
    let other = app
        .post(
            &run_path(&run, "/answers"),
            &extended(answers, &json!({"client_tools": []})),
        )
        .await
        .ok();
    assert_eq!(
        (&other["status"], tools()),
        (&json!("completed"), json!(["calculator"]))
    );

    for [pointer, fields] in rows(REFUSED_TOOLS) {
        let body = extended(
            json!({"agent": "plain", "input": "hi"}),
            &serde_json::from_str(fields).unwrap(),
        );
        app.post("/v1/runs", &body)
            .await
            .assert_problem_at("invalid_field", pointer);
    }
    app.finish().await;
}

async fn input_and_output_of_a_run_are_separate(database: TestDatabase) {
    let (_mock, app) = start_plain(&database).await;
    let read = async |run: &Value| {
        let run_id = run["run_id"].as_str().unwrap().parse().unwrap();
        let found = run_messages(&app.app.runs, &TenantId::anonymous(), run_id).await;
        let found = found.unwrap().unwrap();
        let of_steps = |steps: Vec<StepRecord>| steps.into_iter().flat_map(|step| step.messages).collect();
        let answered = of_steps(found.answered.into_iter().map(|answered| answered.step).collect());
        let roles = |messages: Vec<Arc<Message>>| messages.iter().map(|message| message.role).collect();
        let roles: [Vec<Role>; 3] = [answered, found.input, of_steps(found.steps)].map(roles);
        roles
    };
    let user = Role::User;
    let first = app.run_with(asking()).await;
    assert_eq!(read(&first).await, [vec![], vec![user], vec![Role::Assistant]]);
    let answers = json!({"answers": [answer_to(&first, "c1", json!({"result": "yes"}))], "input": "Go on."});
    let second = app.post(&run_path(&first, "/answers"), &answers).await.ok();
    let answered = vec![Role::Assistant, Role::Tool];
    assert_eq!(read(&second).await, [answered, vec![user], vec![Role::Assistant]]);
    let calls = json!([["c2", "calculator", {"expression": "1 + 1"}]]).to_string();
    let third = app
        .run_with(json!({"input": calls, "base_session_id": second["session_id"]}))
        .await;
    let steps = vec![Role::Assistant, Role::Tool, Role::Assistant];
    assert_eq!(read(&third).await, [vec![], vec![user], steps]);
    app.finish().await;
}

async fn parts_of_other_models_are_taken(database: TestDatabase) {
    let mock = MockModel::start(|request| Reply::text(&last_user_text(request))).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let image = |url: &str| json!({"type": "image", "source": {"kind": "url", "url": url}});
    let said = json!([{"type": "reasoning", "text": "Hm."}, {"type": "refusal", "text": "No."}]);
    let run = app
        .run_with(json!({"agent": "echo", "input": [
            {"role": "user", "content": [image("data:image/jpg;charset=x;base64,/9j/")]},
            {"role": "assistant", "content": said},
            {"role": "user", "content": "hi"},
        ]}))
        .await;
    assert_eq!(run["output_text"], "hi");
    let page = app.get(&session_path(&run, "/messages")).await;
    let source = json!({"kind": "base64", "media_type": "image/jpeg", "data": "/9j/"});
    assert_eq!(page["data"][0]["content"][0]["source"], source);
    assert_eq!(page["data"][1]["content"], said);
    for (content, pointer) in [
        (json!([image("data:,hi")]), "/input/0/content/0/source/url"),
        (
            json!([image("data:image/png;base64,?")]),
            "/input/0/content/0/source/data",
        ),
        (said, "/input/0/content/0"),
    ] {
        let body = json!({"agent": "echo", "input": [{"role": "user", "content": content}]});
        app.post("/v1/runs", &body)
            .await
            .assert_problem_at("invalid_field", pointer);
    }
    app.finish().await;
}
