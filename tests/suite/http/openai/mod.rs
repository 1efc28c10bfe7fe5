//! The routes for OpenAI's clients over real sockets: what a client sends, what the model is asked,
//! and what a client reads.

mod chat;
mod conversations;
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
        return Reply::text(&format!("read: {}", results.join(" | ")));
    }
    let text = last_user_text(request);
    if text == "overloaded" {
        return Reply::Status(429, json!({"error": {"message": "slow down"}}).to_string());
    }
    listed_calls(&text).unwrap_or_else(|| Reply::text(&format!("echo: {text}")))
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
