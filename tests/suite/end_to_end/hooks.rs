//! Hooks of stored agents: refused where they can't work, in force where they can, and nothing that
//! redaction finds is anywhere.

use agent_runtime::app::{App, Extensions};
use reqwest::StatusCode;
use serde_json::{Value, json};
use test_support::databases::TestDatabase;

use super::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, tool_results};
use crate::support::table::rows;
use crate::support::test_app::{TestApp, config_for, run_path, session_path};
use crate::support::text::assert_contains;

on_every_store!(
    hooks_that_can_not_work_are_refused_when_the_agent_is_stored,
    hooks_of_a_stored_agent_are_in_force,
    a_limit_of_cost_without_a_price_fails_the_run_before_it_costs_anything,
    redaction_leaves_the_secret_nowhere,
    redaction_leaves_nothing_of_an_answer_that_fails_midway,
    what_a_critic_uses_is_in_the_record,
);

const SECRET: &str = "sk-4711";

/// The code and words of a problem, and a hook that has it.
const UNUSABLE: &str = r#"
unknown_hook | no hook is named "audit"; known are                                       | {"name": "audit"}
invalid_hook | the configuration of the hook "limits" is wrong: it sets no limit         | {"name": "limits"}
invalid_hook | the hook "redaction" is wrong: the pattern "a" can't be used:             | {"name": "redaction", "config": {"patterns": [{"name": "a", "regex": "("}]}}
"#;

async fn hooks_that_can_not_work_are_refused_when_the_agent_is_stored(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    for [code, detail, hook] in rows(UNUSABLE) {
        let hook: Value = serde_json::from_str(hook).unwrap();
        let body = json!({"model": "mock/m", "hooks": [{"name": "limits", "config": {"max_steps": 1}}, hook]});
        let answer = app.put("/v1/agents/hooked", &body).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{hook}");
        answer.assert_problem(code);
        assert_contains!(answer.json()["detail"].as_str().unwrap(), detail);
        assert_eq!(app.try_get("/v1/agents/hooked").await.status, StatusCode::NOT_FOUND);
    }
    app.finish().await;
}

async fn hooks_of_a_stored_agent_are_in_force(database: TestDatabase) {
    let mock = MockModel::start(|_| Reply::call("c1", "calculator", &json!({"expression": "1 + 1"}))).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let hooks = json!([
        {"name": "context_config", "priority": 1, "config": {"system_prompt": "Be brief."}},
        {"name": "limits", "config": {"max_steps": 2}},
    ]);
    let definition = json!({"model": "mock/m", "tools": ["calculator"], "hooks": hooks});
    app.put_agent("hooked", definition).await;
    assert_eq!(app.get("/v1/agents/hooked").await["hooks"][0]["name"], "context_config");
    let mut base = Value::Null;
    // Each run has all of its steps: nothing of one is counted in the next.
    for _ in 0..2 {
        let mut body = json!({"agent": "hooked", "input": "go"});
        if !base.is_null() {
            body["base_session_id"] = base;
        }
        let run = app.run_with(body).await;
        assert_members!(run, {"status": "stopped", "stop_reason": "steps_limit_reached", "step_count": 2});
        base = run["session_id"].clone();
    }
    assert!(
        mock.requests()
            .iter()
            .all(|request| request["messages"][0]["content"] == "Be brief.")
    );
    let session = app.get(&format!("/v1/sessions/{}", base.as_str().unwrap())).await;
    assert_eq!(session["context_state"]["system_prompt"], "Be brief.");
    app.finish().await;
}

async fn a_limit_of_cost_without_a_price_fails_the_run_before_it_costs_anything(database: TestDatabase) {
    let mock = MockModel::echoing().await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let hooks = json!([{"name": "limits", "config": {"max_cost": 0.5}}]);
    app.put_agent("thrifty", json!({"model": "mock/m", "hooks": hooks}))
        .await;
    let run = app.run_with(json!({"agent": "thrifty", "input": "go"})).await;
    assert_members!(run, {"status": "failed", "error/code": "hooks_not_made"});
    assert_eq!(
        run["error"]["message"],
        "the configuration of the hook \"limits\" is wrong: max_cost: no price is known for mock/m, so its cost can't be limited"
    );
    assert!(mock.requests().is_empty());
    app.finish().await;
}

#[tokio::test]
async fn hooks_of_a_configured_agent_that_can_not_work_are_reported_at_the_start() {
    let (mock, database) = (MockModel::echoing().await, TestDatabase::sqlite());
    for (hook, reported) in [
        ("name = \"audit\"", "no hook is named \"audit\""),
        (
            "name = \"limits\"",
            "the configuration of the hook \"limits\" is wrong: it sets no limit",
        ),
    ] {
        let agents = tempfile::tempdir().unwrap();
        let text = format!("name = \"hooked\"\nmodel = \"mock/m\"\n[[hooks]]\n{hook}\n");
        std::fs::write(agents.path().join("hooked.toml"), text).unwrap();
        let settings = [("agents.directory", agents.path().to_str().unwrap())];
        let config = config_for(database.url(), &mock, &settings);
        let error = App::build(&config, Extensions::default()).await.unwrap_err();
        let story = format!("{error:#}");
        assert!(story.contains(reported) && story.contains("hooked"), "{story}");
    }
}

/// Fails if anything that can be read of the run, or that the model was sent, holds the secret.
async fn assert_gone(app: &TestApp, mock: &MockModel, events: &[Value]) -> Value {
    let shown = serde_json::to_string(events).unwrap();
    assert!(!shown.contains(SECRET), "{shown}");
    let run = events.last().unwrap()["data"].clone();
    let run_id = run["run_id"].as_str().unwrap();
    app.until_stored(run_id).await;
    let mut pages = vec![format!("/v1/runs/{run_id}"), format!("/v1/runs/{run_id}/steps")];
    if run["status"] == "completed" {
        pages.push(session_path(&run, ""));
    }
    for page in pages {
        let text = app.get(&page).await.to_string();
        assert!(!text.contains(SECRET), "{page}: {text}");
    }
    let sent = serde_json::to_string(&mock.requests()).unwrap();
    assert!(!sent.contains(SECRET), "{sent}");
    run
}

fn discreet() -> Value {
    let pattern = json!({"name": "key", "regex": "sk-[0-9]+"});
    json!({
        "model": "mock/m",
        "tools": ["calculator"],
        "hooks": [{"name": "redaction", "priority": 100, "config": {"patterns": [pattern]}}],
    })
}

async fn redaction_leaves_the_secret_nowhere(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        if !tool_results(request).is_empty() {
            let pieces = ["the key is s", "k-47", "11."].map(str::to_owned);
            return Reply::Text(pieces.to_vec());
        }
        Reply::call("c1", "calculator", &json!({"expression": SECRET}))
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("discreet", discreet()).await;
    let input = format!("My key is {SECRET}.");
    let events = app.stream(json!({"agent": "discreet", "input": input})).await;
    let run = assert_gone(&app, &mock, &events).await;
    assert_members!(run, {"status": "completed", "output_text": "the key is [redacted:key]."});
    let requests = mock.requests();
    assert_eq!(requests.len(), 2);
    let call = &requests[1]["messages"][1]["tool_calls"][0]["function"]["arguments"];
    assert_eq!(call, r#"{"expression":"[redacted:key]"}"#);
    app.finish().await;
}

async fn redaction_leaves_nothing_of_an_answer_that_fails_midway(database: TestDatabase) {
    let pieces = ["the key is sk-", "4711 and"].map(str::to_owned).to_vec();
    let mock = MockModel::start(move |_| Reply::Cut(pieces.clone())).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    app.put_agent("discreet", discreet()).await;
    let events = app.stream(json!({"agent": "discreet", "input": SECRET})).await;
    let run = assert_gone(&app, &mock, &events).await;
    assert_members!(run, {"status": "failed", "output_text": "the key is [redacted:key] and"});
    app.finish().await;
}

async fn what_a_critic_uses_is_in_the_record(database: TestDatabase) {
    let mock = MockModel::start(|request| {
        let is_critic = request["messages"][0]["role"] == "system";
        Reply::text(if is_critic { r#"{"good": true}"# } else { "roses" })
    });
    let mock = mock.await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let hooks = json!([{"name": "self_critique", "config": {"criteria": "It rhymes."}}]);
    app.put_agent("poet", json!({"model": "mock/m", "hooks": hooks})).await;
    let run = app.run_with(json!({"agent": "poet", "input": "go"})).await;
    assert_members!(run, {"status": "completed", "output_text": "roses"});
    // An answer of the mock is 15 tokens: one is the agent's, one the critic's.
    assert_eq!(run["usage"]["total_tokens"], 30);
    let stored = app.get(&run_path(&run, "")).await;
    assert_eq!(stored["usage"], run["usage"]);
    app.finish().await;
}
