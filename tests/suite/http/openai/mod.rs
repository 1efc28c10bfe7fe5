//! The routes for OpenAI's clients over real sockets: what a client sends, what the model is asked,
//! and what a client reads.

mod calls;
mod chat;
mod conversation_items;
mod conversations;
mod reasoning;
mod requests;
mod responses;
mod state;
mod tools;

use std::ops::Deref;
use std::sync::Arc;

use reqwest::{Method, RequestBuilder, header};
use serde_json::{Value, json};
use test_support::databases::TestDatabase;
use test_support::fake_tool::{Behaviour, FakeTool};

use crate::end_to_end::on_every_store as on_every_database;
use crate::support::answer::{Answer, read, with_json};
use crate::support::members::extended;
use crate::support::mock_model::{MockModel, Reply, last_user_text, listed_calls, new_results};
use crate::support::test_app::TestApp;

/// A service with the agent `own`: its tool `look` is executed at once, and a call of `deploy`
/// needs an approval.
struct OpenAiApp {
    app: TestApp,
    mock: MockModel,
    look: Arc<FakeTool>,
    deploy: Arc<FakeTool>,
}

impl Deref for OpenAiApp {
    type Target = TestApp;

    fn deref(&self) -> &TestApp {
        &self.app
    }
}

impl OpenAiApp {
    async fn start(database: &TestDatabase) -> Self {
        Self::start_with(database, &[]).await
    }

    async fn start_with(database: &TestDatabase, settings: &[(&str, &str)]) -> Self {
        let mock = MockModel::start(model).await;
        let look = FakeTool::new("look", Behaviour::EchoArguments);
        let deploy = FakeTool::new("deploy", Behaviour::EchoArguments);
        let app = TestApp::start_with_tools(database.url(), &mock, settings, [&look, &deploy]).await;
        let agent = json!({
            "model": "mock/m", "system_prompt": "You are A.", "tools": ["look", "deploy"],
            "approvals": [{"tools": ["deploy"], "approval": "always"}],
        });
        app.put_agent("own", agent).await;
        Self {
            app,
            mock,
            look,
            deploy,
        }
    }

    /// Asks for a response of the agent, with more fields.
    async fn respond(&self, more: &Value) -> Answer {
        self.post("/v1/responses", &extended(json!({"model": "own"}), more))
            .await
    }

    /// Asks for a response that must come.
    async fn response(&self, more: &Value) -> Value {
        self.respond(more).await.ok()
    }

    /// Completes a conversation, with more fields.
    async fn complete(&self, more: &Value) -> Answer {
        self.post("/v1/chat/completions", &extended(json!({"model": "own"}), more))
            .await
    }

    /// Creates a conversation. Returns its id.
    async fn conversation(&self) -> Value {
        self.post("/v1/conversations", &json!({})).await.ok()["id"].clone()
    }

    /// What the model was asked last.
    fn last_request(&self) -> Value {
        self.mock.requests().pop().unwrap()
    }

    async fn finish(self) {
        self.app.finish().await;
    }
}

/// Calls the tools that the user's last message lists. Once it has their results, repeats them.
fn model(request: &Value) -> Reply {
    let results = new_results(request);
    if !results.is_empty() {
        let is_json = request["response_format"]["type"] == "json_schema";
        let text = format!("read: {}", results.join(" | "));
        return Reply::text(if is_json { r#"{"a": 1}"# } else { &text });
    }
    let text = last_user_text(request);
    match text.as_str() {
        "overloaded" => return Reply::Status(429, json!({"error": {"message": "slow down"}}).to_string()),
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

/// The items of a response of one type.
fn items<'v>(response: &'v Value, kind: &str) -> Vec<&'v Value> {
    let items = response["output"].as_array().unwrap().iter();
    items.filter(|item| item["type"] == kind).collect()
}

/// The text of a response.
fn text(response: &Value) -> String {
    let parts = items(response, "message").into_iter();
    let parts = parts.flat_map(|message| message["content"].as_array().unwrap());
    parts.filter_map(|part| part["text"].as_str()).collect()
}

/// Checks an error in OpenAI's form.
#[track_caller]
fn assert_error(answer: &Answer, status: u16, code: &str, param: &Value) {
    assert_eq!(answer.status.as_u16(), status, "{}", answer.text());
    let error = &answer.json()["error"];
    assert_eq!(
        (&error["code"], &error["param"]),
        (&json!(code), param),
        "{}",
        answer.text()
    );
    assert!(
        error["message"].is_string() && error["type"].is_string(),
        "{}",
        answer.text()
    );
    assert_eq!(answer.header("content-type"), "application/json");
    assert_ne!(answer.header("x-request-id"), "");
}

/// Makes a request with a key.
fn keyed(app: &TestApp, secret: &str, method: Method, path: &str) -> RequestBuilder {
    let request = app.request(method, path);
    request.header(header::AUTHORIZATION, format!("Bearer {secret}"))
}

/// Posts JSON with a key.
async fn post_with(app: &TestApp, secret: &str, path: &str, body: &Value) -> Answer {
    read(with_json(keyed(app, secret, Method::POST, path), body)).await
}
