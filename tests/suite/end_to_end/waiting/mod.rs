//! Runs that wait for answers of the caller: client tools and approvals.

mod answered;
mod approvals;
mod batches;
mod events;
mod expiry;
mod inbox;
mod react;
mod refusals;
mod sessions;
mod subagents;
mod takeovers;
mod threads;
mod webhooks;

use std::ops::Deref;
use std::sync::Arc;

use serde_json::json;
use test_support::databases::TestDatabase;
use test_support::fake_tool::{Behaviour, FakeTool};
use values::json::Value;

use crate::support::answer::Answer;
use crate::support::members::extended;
use crate::support::mock_model::{MockModel, Reply, content_text, last_user_text, listed_calls, new_results};
use crate::support::test_app::{TestApp, run_path, session_path};

/// A service with the agent `asker`: it has a client tool `ask`, a tool `deploy` whose calls need
/// an approval, and a tool `look` whose calls need nobody.
struct WaitingApp {
    app: TestApp,
    mock: MockModel,
    look: Arc<FakeTool>,
    deploy: Arc<FakeTool>,
}

impl Deref for WaitingApp {
    type Target = TestApp;

    fn deref(&self) -> &TestApp {
        &self.app
    }
}

impl WaitingApp {
    async fn start(database: &TestDatabase, settings: &[(&str, &str)]) -> Self {
        let mock = MockModel::start(model).await;
        let look = FakeTool::new("look", Behaviour::EchoArguments);
        let deploy = FakeTool::new("deploy", Behaviour::EchoArguments);
        let app = TestApp::start_with_tools(database.url(), &mock, settings, [&look, &deploy]).await;
        app.put_agent("asker", asker()).await;
        Self {
            app,
            mock,
            look,
            deploy,
        }
    }

    /// Runs the agent on an input that makes its model call the tools.
    async fn wait_for(&self, calls: Value) -> Value {
        let run = self
            .run_with(json!({"agent": "asker", "input": calls.to_string()}))
            .await;
        assert_eq!(run["status"], "waiting", "{run:#}");
        run
    }

    /// Answers the calls of a run.
    async fn answer(&self, run: &Value, answers: Value) -> Answer {
        let body = json!({"answers": answers});
        self.post(&run_path(run, "/answers"), &body).await
    }

    /// The last request to the model.
    fn last_request(&self) -> Value {
        self.mock.requests().pop().unwrap()
    }

    /// The messages of the session that a run has made, in short.
    async fn history(&self, run: &Value) -> Vec<String> {
        let page = self.get(&session_path(run, "/messages")).await;
        page["data"].as_array().unwrap().iter().map(shown).collect()
    }

    async fn finish(self) {
        self.app.finish().await;
    }
}

/// The definition of the agent.
fn asker() -> Value {
    json!({
        "model": "mock/m", "tools": ["look", "deploy"],
        "client_tools": [{
            "name": "ask", "description": "Asks the user.",
            "parameters": {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]},
            "response_schema": {"type": "object", "properties": {"choice": {"enum": ["yes", "no"]}}, "required": ["choice"]},
        }],
        "approvals": [{"tools": ["deploy"], "approval": "always"}],
    })
}

/// Calls the tools that the user's last message lists: `[[id, tool, arguments], …]`. Once it has
/// their results, it repeats them.
pub(crate) fn model(request: &Value) -> Reply {
    let results = new_results(request);
    if !results.is_empty() {
        return Reply::text(&format!("read: {}", results.join(" | ")));
    }
    let text = last_user_text(request);
    listed_calls(&text).unwrap_or_else(|| Reply::text(&format!("echo: {text}")))
}

/// A message in short: its role, its calls and its results.
fn shown(message: &Value) -> String {
    let mut line = message["role"].as_str().unwrap().to_owned();
    for part in message["content"].as_array().unwrap() {
        let more = match part["type"].as_str().unwrap() {
            "tool_call" => format!(" call {}", part["id"].as_str().unwrap()),
            "tool_result" => format!(
                " {} {}: {}",
                if part["is_error"] == true { "error" } else { "result" },
                part["call_id"].as_str().unwrap(),
                content_text(&part["content"])
            ),
            _ => format!(" {}", part["text"].as_str().unwrap_or_default()),
        };
        line.push_str(&more);
    }
    line
}

/// The answer to an open call of a run, with more fields.
#[expect(clippy::needless_pass_by_value, reason = "callers write the fields down right there")]
pub(crate) fn answer_to(run: &Value, call_id: &str, more: Value) -> Value {
    let calls = run["required_action"]["calls"].as_array().unwrap();
    let call = calls.iter().find(|call| call["call_id"] == call_id);
    let call = call.unwrap_or_else(|| panic!("{call_id} is not open: {run:#}"));
    let answer = json!({"call_id": call_id, "arguments_hash": call["arguments_hash"]});
    extended(answer, &more)
}

/// The ids of the open calls of a run.
pub(crate) fn open_calls(run: &Value) -> Vec<&str> {
    let calls = run["required_action"]["calls"].as_array().unwrap();
    calls.iter().map(|call| call["call_id"].as_str().unwrap()).collect()
}

/// A call of each kind.
fn mixed() -> Value {
    json!([
        ["c1", "look", {"note": "a"}],
        ["c2", "ask", {"question": "Sure?"}],
        ["c3", "deploy", {"note": "b"}],
        ["c4", "look", {"note": "c"}],
    ])
}
