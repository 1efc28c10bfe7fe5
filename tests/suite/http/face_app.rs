//! A service with an agent for the clients of other protocols, and the model behind it.

use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::fake_tool::{Behaviour, FakeTool};
use test_support::gate::Gate;

use crate::support::members::extended;
use crate::support::mock_model::{MockModel, Reply, last_user_text, listed_calls, new_results};
use crate::support::test_app::TestApp;

/// A service with the agent `own`: its tool `look` is executed at once, and a call of `deploy`
/// needs an approval.
pub(super) struct FaceApp {
    pub(super) app: TestApp,
    pub(super) mock: MockModel,
    pub(super) look: Arc<FakeTool>,
    pub(super) deploy: Arc<FakeTool>,
    /// Holds back the end of each completion of `hold`.
    pub(super) gate: Arc<Gate>,
}

impl Deref for FaceApp {
    type Target = TestApp;

    fn deref(&self) -> &TestApp {
        &self.app
    }
}

impl FaceApp {
    pub(super) async fn start(database: &TestDatabase) -> Self {
        Self::start_with(database, &[]).await
    }

    pub(super) async fn start_with(database: &TestDatabase, settings: &[(&str, &str)]) -> Self {
        let gate = Gate::new();
        let held = Arc::clone(&gate);
        let mock = MockModel::start(move |request| model(request, &held)).await;
        let look = FakeTool::new("look", Behaviour::EchoArguments);
        let deploy = FakeTool::new("deploy", Behaviour::EchoArguments);
        let app = TestApp::start_with_tools(database.url(), &mock, settings, [&look, &deploy]).await;
        app.put_agent("own", agent()).await;
        Self {
            app,
            mock,
            look,
            deploy,
            gate,
        }
    }

    /// Starts a service whose agent also has the tool `mine`, which the caller executes.
    pub(super) async fn start_with_client_tool(database: &TestDatabase) -> Self {
        let app = Self::start(database).await;
        let mine = json!({"name": "mine", "description": "Mine.", "parameters": {"type": "object"}});
        app.put_agent("own", extended(agent(), &json!({"client_tools": [mine]})))
            .await;
        app
    }

    /// What the model was asked last.
    pub(super) fn last_request(&self) -> Value {
        self.mock.requests().pop().unwrap()
    }

    pub(super) async fn finish(self) {
        self.app.finish().await;
    }
}

/// The definition of the agent `own`.
pub(super) fn agent() -> Value {
    json!({
        "model": "mock/m", "system_prompt": "You are A.", "tools": ["look", "deploy"],
        "approvals": [{"tools": ["deploy"], "approval": "always"}],
    })
}

/// Calls the tools that the user's last message lists. Once it has their results, repeats them.
fn model(request: &Value, gate: &Arc<Gate>) -> Reply {
    let results = new_results(request);
    if !results.is_empty() {
        let is_json = request["response_format"]["type"] == "json_schema";
        let text = format!("read: {}", results.join(" | "));
        if text.contains("777") {
            return Reply::HeldAtEnd(Arc::clone(gate), vec![text]);
        }
        return Reply::text(if is_json { r#"{"a": 1}"# } else { &text });
    }
    let text = last_user_text(request);
    match text.as_str() {
        "overloaded" => return Reply::Status(429, json!({"error": {"message": "slow down"}}).to_string()),
        "hold" => return Reply::HeldAtEnd(Arc::clone(gate), vec!["some ".to_owned(), "words".to_owned()]),
        "narrate" => return narrated(),
        "ponder" => return pondered(),
        "muse" => return mused(),
        "cut" => return cut(),
        "stammer" => return stammered(),
        _ => (),
    }
    listed_calls(&text).unwrap_or_else(|| Reply::text(&format!("echo: {text}")))
}

/// Words before a call of `look`.
fn narrated() -> Reply {
    chunks(&[
        json!({"content": "Let me see."}),
        json!({"tool_calls": [called("look", r#"{"ms": 1}"#)]}),
    ])
}

/// Reasoning and words before a call of `mine`.
fn pondered() -> Reply {
    chunks(&[
        json!({"reasoning_content": "h"}),
        json!({"reasoning_content": "m"}),
        json!({"content": "Let me "}),
        json!({"content": "see."}),
        json!({"tool_calls": [called("mine", r#"{"x": 1}"#)]}),
    ])
}

/// Reasoning and words before two calls of `look`.
fn mused() -> Reply {
    let mut second = called("look", r#"{"ms": 2}"#);
    (second["index"], second["id"]) = (json!(1), json!("c2"));
    chunks(&[
        json!({"reasoning_content": "hm"}),
        json!({"content": "Let me see."}),
        json!({"tool_calls": [called("look", r#"{"ms": 1}"#)]}),
        json!({"tool_calls": [second]}),
    ])
}

/// Calls with broken arguments, and one of a tool that nobody has.
fn stammered() -> Reply {
    let calls = [
        ("c1", "look", r#"{"ms"#),
        ("c2", "mine", r#"{"x": "#),
        ("c3", "nothing", "{}"),
    ];
    let calls = calls.map(|(id, tool, arguments)| (id.to_owned(), tool.to_owned(), arguments.to_owned()));
    Reply::ToolCalls(calls.into())
}

/// JSON without its end.
fn cut() -> Reply {
    let choice = json!({"index": 0, "delta": {"content": "{\"a"}, "finish_reason": "length"});
    Reply::Events(vec![json!({"choices": [choice]})])
}

fn called(name: &str, arguments: &str) -> Value {
    json!({"index": 0, "id": "c1", "type": "function", "function": {"name": name, "arguments": arguments}})
}

/// Makes a stream of these pieces, which ends with a call.
fn chunks(deltas: &[Value]) -> Reply {
    let chunk =
        |delta: &Value, reason: Value| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": reason}]});
    let end = chunk(&json!({}), json!("tool_calls"));
    let deltas = deltas.iter().map(|delta| chunk(delta, Value::Null));
    Reply::Events(deltas.chain([end]).collect())
}
