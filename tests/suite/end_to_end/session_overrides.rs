//! Settings of a session that override those of its agent: parameters, prompt and tools.

use reqwest::Method;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::on_every_store;
use crate::support::answer::{read, with_json};
use crate::support::hostile::endless_prompt;
use crate::support::members::{assert_members, extended};
use crate::support::mock_model::{MockModel, Reply};
use crate::support::table::rows;
use crate::support::test_app::TestApp;

on_every_store!(
    what_a_run_sets_holds_for_its_session_until_it_is_set_anew,
    forks_and_imports_retain_what_a_session_sets,
    what_may_not_be_set_is_refused,
    a_session_can_force_a_tool_call,
    subagents_have_none_of_the_tools_that_are_left_out,
    a_key_belongs_to_what_was_set_with_it,
);

async fn start(database: &TestDatabase) -> (MockModel, TestApp) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let agent = json!({
        "model": "mock/m", "system_prompt": "You are A.", "tools": ["current_time", "calculator"],
        "parameters": {"temperature": 0.25, "top_p": 0.5, "max_output_tokens": 40},
    });
    app.put_agent("own", agent).await;
    (mock, app)
}

/// All that a run may set.
fn everything() -> Value {
    json!({
        "parameters": {"temperature": 1.0, "max_output_tokens": 50, "reasoning_effort": "high"},
        "system_prompt": "You are B for {{ variables.who }}.", "tools": ["calculator"],
    })
}

/// The settings of the last request: prompt, temperature, `top_p`, most tokens, effort and tools.
fn last_asked(mock: &MockModel) -> Value {
    let request = mock.requests().pop().unwrap();
    let first = &request["messages"][0];
    let system = if first["role"] == "system" {
        first["content"].clone()
    } else {
        json!("")
    };
    let tools = request["tools"].as_array().into_iter().flatten();
    let tools: Vec<_> = tools.map(|tool| &tool["function"]["name"]).collect();
    json!([
        system,
        request["temperature"],
        request["top_p"],
        request["max_tokens"],
        request["reasoning_effort"],
        tools,
    ])
}

async fn what_a_run_sets_holds_for_its_session_until_it_is_set_anew(database: TestDatabase) {
    let (mock, app) = start(&database).await;
    let agents = json!(["You are A.", 0.25, 0.5, 40, null, ["current_time", "calculator"]]);
    let set = json!(["You are B for Ada.", 1.0, 0.5, 50, "high", ["calculator"]]);
    let without_parameters = json!(["You are B for Ada.", 0.25, 0.5, 40, null, ["calculator"]]);
    let empty = json!(["", 0.25, 0.5, 40, null, []]);
    let mut left = everything();
    left.as_object_mut().unwrap().remove("parameters");
    let emptied = json!({"system_prompt": "", "tools": []});
    let cleared = json!({"parameters": null, "system_prompt": null, "tools": null});
    let turns = [
        (json!({}), &agents, &Value::Null),
        (everything(), &set, &everything()),
        (json!({}), &set, &everything()),
        (json!({"parameters": {}}), &without_parameters, &left),
        (emptied.clone(), &empty, &emptied),
        (json!({}), &empty, &emptied),
        (cleared, &agents, &Value::Null),
    ];
    let mut base = Value::Null;
    // The runs continue each other; every other one goes through the queue.
    for (n, (changes, sent, stored)) in turns.into_iter().enumerate() {
        let body = json!({"agent": "own", "input": "hi", "base_session_id": base, "variables": {"who": "Ada"}});
        let mut body = extended(body, &changes);
        let run = if n % 2 == 0 {
            app.run_with(body).await
        } else {
            body["mode"] = json!("async");
            let run = app.post("/v1/runs", &body).await.ok();
            app.ended(&run).await
        };
        assert_eq!(run["status"], "completed", "{run:#}");
        assert_eq!(last_asked(&mock), *sent, "{changes}");
        base = run["session_id"].clone();
        let session = app.get(&format!("/v1/sessions/{}", base.as_str().unwrap())).await;
        assert_eq!(session["context_state"]["overrides"], *stored, "{changes}");
    }
    app.finish().await;
}

async fn forks_and_imports_retain_what_a_session_sets(database: TestDatabase) {
    let (mock, app) = start(&database).await;
    let body = json!({"agent": "own", "input": "hi", "variables": {"who": "Ada"}});
    let base = app.run_with(extended(body, &everything())).await["session_id"].clone();
    let asked = last_asked(&mock);
    let session = app.get(&format!("/v1/sessions/{}", base.as_str().unwrap())).await;
    let mut import = json!({"agent": "own"});
    for state in ["environment_state", "context_state", "message_history_state"] {
        import[state] = session[state].clone();
    }
    let imported = app.post("/v1/sessions", &import).await.ok();
    assert_eq!(imported["context_state"]["overrides"], everything());
    for base in [&base, &base, &imported["session_id"]] {
        let run = app.run_with(json!({"input": "go on", "base_session_id": base})).await;
        assert_eq!(run["status"], "completed", "{run:#}");
        assert_eq!(last_asked(&mock), asked);
    }

    // Another agent has those of the tools that are its own.
    app.put_agent("other", json!({"model": "mock/m", "tools": ["current_time"]}))
        .await;
    app.run_with(json!({"input": "go on", "base_session_id": base, "agent": "other"}))
        .await;
    assert_eq!(
        last_asked(&mock),
        json!(["You are B for Ada.", 1.0, null, 50, "high", []])
    );

    for (overrides, code) in [
        (json!({"parameters": {"temperature": 3}}), "invalid_field"),
        (json!({"parameters": {"extra": {"seed": 1}}}), "invalid_field"),
        (json!({"mood": "fine"}), "unknown_field"),
        (json!({"system_prompt": "{{ nope"}), "invalid_prompt"),
        (json!({"system_prompt": endless_prompt(5_000)}), "invalid_prompt"),
    ] {
        import["context_state"]["overrides"] = overrides;
        app.post("/v1/sessions", &import).await.assert_problem(code);
    }
    app.finish().await;
}

/// The code and the pointer of a problem, an agent, and fields that a run of it may not set. The
/// agent `forced` does not have the tool `http`, and needs its calculator.
const NOT_TO_BE_SET: &str = r#"
invalid_field  | /parameters/temperature | own    | {"parameters": {"temperature": 3}}
invalid_field  | /parameters/extra       | own    | {"parameters": {"extra": {"seed": 1}}}
unknown_field  | /parameters/heat        | own    | {"parameters": {"heat": 3}}
invalid_prompt |                         | own    | {"system_prompt": "{{ nope"}
invalid_field  | /parameters/tool_choice | own    | {"parameters": {"tool_choice": {"tool": "finish"}}}
invalid_field  | /tools                  | forced | {"tools": ["http"]}
invalid_field  | /tools                  | forced | {"tools": ["current_time"]}
"#;

async fn what_may_not_be_set_is_refused(database: TestDatabase) {
    let (mock, app) = start(&database).await;
    let forced = json!({
        "model": "mock/m", "tools": ["calculator", "current_time"],
        "parameters": {"tool_choice": {"tool": "calculator"}},
    });
    app.put_agent("forced", forced).await;
    let prompts = [endless_prompt(5_000), "x".repeat((1 << 20) + 1)].map(|prompt| json!({"system_prompt": prompt}));
    let prompts = prompts.map(|changes| ("invalid_prompt", "", "own", changes));
    let others = rows(NOT_TO_BE_SET);
    let others = others.map(|[code, at, agent, changes]| (code, at, agent, serde_json::from_str(changes).unwrap()));
    for (code, pointer, agent, changes) in others.chain(prompts) {
        for mode in ["sync", "stream", "async"] {
            let body = extended(json!({"agent": agent, "input": "hi", "mode": mode}), &changes);
            let answer = app.post("/v1/runs", &body).await;
            answer.assert_problem_at(code, pointer);
        }
    }
    assert_eq!(mock.asked(), 0);
    app.finish().await;
}

async fn a_session_can_force_a_tool_call(database: TestDatabase) {
    let (mock, app) = start(&database).await;
    let changes = json!({"parameters": {"tool_choice": "required"}});
    let run = app
        .run_with(extended(json!({"agent": "own", "input": "hi"}), &changes))
        .await;
    assert_eq!(mock.requests().pop().unwrap()["tool_choice"], "required");
    // The agent's other parameters are in force, and the choice is the session's.
    let base = &run["session_id"];
    app.run_with(json!({"input": "hi", "base_session_id": base})).await;
    let request = mock.requests().pop().unwrap();
    assert_members!(request, {"tool_choice": "required", "temperature": 0.25});
    app.finish().await;
}

async fn subagents_have_none_of_the_tools_that_are_left_out(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        let asks = request["model"] == "lead" && request["messages"].as_array().unwrap().len() == 1;
        if asks {
            Reply::call("c1", "below", &json!({"task": "look"}))
        } else {
            Reply::text("done")
        }
    })
    .await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let tools = json!(["current_time", "calculator"]);
    app.put_agent("below", json!({"model": "mock/below", "tools": tools}))
        .await;
    let lead =
        json!({"model": "mock/lead", "tools": tools, "subagents": [{"agent": "below", "description": "Looks."}]});
    app.put_agent("lead", lead).await;
    let run = app
        .run_with(json!({"agent": "lead", "input": "go", "tools": ["calculator"]}))
        .await;
    assert_eq!(run["status"], "completed", "{run:#}");
    let offered: Vec<Vec<_>> = mock
        .requests()
        .iter()
        .map(|request| {
            let tools = request["tools"].as_array().unwrap().iter();
            tools
                .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
                .collect()
        })
        .collect();
    assert_eq!(
        offered,
        [
            vec!["calculator", "below"],
            vec!["calculator"],
            vec!["calculator", "below"]
        ]
    );
    app.finish().await;
}

async fn a_key_belongs_to_what_was_set_with_it(database: TestDatabase) {
    let (mock, app) = start(&database).await;
    for (prompt, expected) in [("One.", 200), ("One.", 200), ("Two.", 422)] {
        let body = json!({"agent": "own", "input": "hi", "system_prompt": prompt});
        let request = app.request(Method::POST, "/v1/runs").header("idempotency-key", "k");
        let answer = read(with_json(request, &body)).await;
        assert_eq!(answer.status, expected, "{prompt}");
    }
    assert_eq!(mock.asked(), 1);
    app.finish().await;
}
