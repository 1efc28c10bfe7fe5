//! Open calls of the `ReAct` driver: its model asks for a tool in its text, and reads the answer as
//! an observation.

use std::sync::Arc;

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::fake_tool::{Behaviour, FakeTool};
use values::json::Value;

use super::{answer_to, open_calls};
use crate::end_to_end::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply, content_text, last_user_text};
use crate::support::test_app::{TestApp, run_path};

on_every_store!(
    decisions_and_results_are_observations,
    another_driver_answers_the_same_call,
);

/// Deploys, asks the user, and then repeats what it has observed.
fn model(request: &Value) -> Reply {
    let messages = request["messages"].as_array().unwrap();
    let texts = messages.iter().map(|message| content_text(&message["content"]));
    let observed: Vec<_> = texts.filter(|text| text.starts_with("Observation")).collect();
    let act = |tool: &str, arguments: Value| {
        let decision = json!({"thought": "Next.", "action": {"tool": tool, "arguments": arguments}});
        Reply::text(&decision.to_string())
    };
    if request["tools"].is_array() {
        let last = messages.last().unwrap();
        return Reply::text(&format!(
            "{} says {}",
            last["role"].as_str().unwrap(),
            content_text(&last["content"])
        ));
    }
    match observed.len() {
        0 => act("deploy", json!({"note": "x"})),
        1 => act("ask", json!({})),
        _ => Reply::text(&json!({"answer": observed.join(" | ")}).to_string()),
    }
}

/// A service with an agent of each driver, whose calls of `deploy` need an approval.
async fn start(database: &TestDatabase) -> (TestApp, MockModel, Arc<FakeTool>) {
    let mock = MockModel::start(model).await;
    let deploy = FakeTool::new("deploy", Behaviour::EchoArguments);
    let app = TestApp::start_with_tools(database.url(), &mock, &[], [&deploy]).await;
    for driver in ["react", "tool_calling"] {
        let agent = json!({
            "model": "mock/m", "driver": driver, "tools": ["deploy"], "client_tools": [{"name": "ask"}],
            "approvals": [{"tools": ["deploy"], "approval": "always"}],
        });
        app.put_agent(driver, agent).await;
    }
    (app, mock, deploy)
}

/// The only open call of a run.
fn open_call(run: &Value) -> &str {
    assert_eq!(run["status"], "waiting", "{run:#}");
    let calls = open_calls(run);
    assert_eq!(calls.len(), 1);
    calls[0]
}

/// Answers the only open call of a run, and returns the run that follows.
async fn answer(app: &TestApp, run: &Value, answer: Value) -> Value {
    let body = json!({"answers": [answer_to(run, open_call(run), answer)], "conflict": "fork"});
    app.post(&run_path(run, "/answers"), &body).await.ok()
}

async fn decisions_and_results_are_observations(database: TestDatabase) {
    let (app, mock, deploy) = start(&database).await;
    let first = app.run_with(json!({"agent": "react", "input": "Deploy it."})).await;
    assert_eq!(first["required_action"]["calls"][0]["tool"], "deploy");
    assert_eq!((open_call(&first).is_empty(), deploy.begun()), (false, 0));

    let second = answer(&app, &first, json!({"decision": "approve"})).await;
    assert_eq!(second["required_action"]["calls"][0]["kind"], "client");
    assert_eq!((mock.asked(), deploy.begun()), (2, 1));
    let done = answer(&app, &second, json!({"result": "yes"})).await;
    let observed = r#"Observation: {"note":"x"} | Observation: yes"#;
    assert_members!(done, {"status": "completed", "output_text": observed});

    // From the same session: the call is denied, and the caller's tool has failed.
    let denied = answer(&app, &first, json!({"decision": "deny", "reason": "Not on a Friday."})).await;
    let failed = answer(&app, &denied, json!({"result": "nobody is here", "is_error": true})).await;
    let read = failed["output_text"].as_str().unwrap();
    assert!(
        read.contains("Not on a Friday.") && read.ends_with("Observation (error): nobody is here"),
        "{read}"
    );
    assert_eq!(deploy.begun(), 1);

    // No request offers tools as such, and each decision is followed by its observation.
    for request in mock.requests() {
        assert!(request["tools"].is_null(), "{request:#}");
        let messages = request["messages"].as_array().unwrap();
        assert_eq!(
            last_user_text(&request),
            content_text(&messages.last().unwrap()["content"])
        );
    }
    app.finish().await;
}

async fn another_driver_answers_the_same_call(database: TestDatabase) {
    let (app, mock, deploy) = start(&database).await;
    let first = app.run_with(json!({"agent": "react", "input": "Deploy it."})).await;
    let body = json!({
        "agent": "tool_calling", "base_session_id": first["session_id"],
        "answers": [answer_to(&first, open_call(&first), json!({"decision": "approve"}))],
    });
    let next = app.run_with(body).await;
    assert_eq!(next["output_text"], r#"tool says {"note":"x"}"#, "{next:#}");
    assert_eq!((mock.asked(), deploy.begun()), (2, 1));
    app.finish().await;
}
