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

use reqwest::{Method, RequestBuilder, header};
use serde_json::{Value, json};

use super::face_app::FaceApp;
use crate::end_to_end::on_every_store as on_every_database;
use crate::support::answer::{Answer, read, with_json};
use crate::support::members::extended;
use crate::support::test_app::TestApp;

impl FaceApp {
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
