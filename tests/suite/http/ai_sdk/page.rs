//! A page with a chat: it retains messages, sends them, and folds the chunks of the answer. A chunk
//! that the AI SDK would not accept fails the test.

use serde_json::{Value, json};

use crate::http::face_app::FaceApp;
use crate::support::answer::Answer;
use crate::support::members::extended;
use crate::support::test_app::sse_data;

/// A page.
pub(super) struct Page<'a> {
    app: &'a FaceApp,
    pub(super) chat: String,
    /// The messages that the page shows.
    pub(super) messages: Vec<Value>,
    /// The text of the error that the page shows.
    pub(super) error: Option<String>,
    /// The number of messages that the user has sent.
    sent: usize,
}

impl<'a> Page<'a> {
    pub(super) fn open(app: &'a FaceApp, chat: &str) -> Self {
        Self {
            app,
            chat: chat.to_owned(),
            messages: Vec::new(),
            error: None,
            sent: 0,
        }
    }

    pub(super) fn path(&self, rest: &str) -> String {
        format!("/v1/ai-sdk/own/chat/{}/{rest}", self.chat)
    }

    /// Loads the messages as a new page does.
    pub(super) async fn loaded(&self) -> Vec<Value> {
        let messages = self.app.get(&self.path("messages")).await;
        messages.as_array().unwrap().clone()
    }

    /// Adds a message of the user.
    pub(super) fn write(&mut self, text: &str) {
        self.sent += 1;
        let id = format!("{}-u{}", self.chat, self.sent);
        let parts = json!([{"type": "text", "text": text}]);
        self.messages.push(json!({"id": id, "role": "user", "parts": parts}));
    }

    /// Sends a text, and reads the answer to its end. The service then shows the same messages.
    pub(super) async fn ask(&mut self, text: &str) {
        self.write(text);
        self.send().await;
        self.assert_same().await;
    }

    /// Sends the messages, and folds the answer.
    pub(super) async fn send(&mut self) {
        let body = json!({"id": self.chat, "messages": self.messages, "trigger": "submit-message"});
        let answer = self.post(&body).await;
        assert_eq!(answer.header("x-vercel-ai-ui-message-stream"), "v1");
        self.fold(&answer.text());
    }

    /// Posts a body.
    pub(super) async fn post(&self, body: &Value) -> Answer {
        self.app.post("/v1/ai-sdk/own/chat", body).await
    }

    /// Answers the open calls of the last message, whose parts `change` changes, and goes on.
    pub(super) async fn answer(&mut self, change: impl Fn(&mut Value)) {
        let last = self.messages.last_mut().unwrap();
        for part in last["parts"].as_array_mut().unwrap() {
            if part["toolCallId"].is_string() {
                change(part);
            }
        }
        self.send().await;
        self.assert_same().await;
    }

    /// Checks that the service shows what the page shows.
    pub(super) async fn assert_same(&self) {
        let plain = |messages: &[Value]| messages.iter().map(without_marks).collect::<Vec<_>>();
        assert_eq!(plain(&self.loaded().await), plain(&self.messages));
    }

    /// Returns the last message.
    pub(super) fn last(&self) -> &Value {
        self.messages.last().unwrap()
    }

    /// Returns the texts of the last message.
    pub(super) fn text(&self) -> String {
        let parts = self.last()["parts"].as_array().unwrap().iter();
        let texts = parts.filter(|part| part["type"] == "text");
        texts.map(|part| part["text"].as_str().unwrap()).collect()
    }

    /// Returns the state of each call in the last message.
    pub(super) fn states(&self) -> Vec<&str> {
        let parts = self.last()["parts"].as_array().unwrap().iter();
        let calls = parts.filter(|part| part["toolCallId"].is_string());
        calls.map(|call| call["state"].as_str().unwrap()).collect()
    }

    /// Folds a stream into the messages.
    pub(super) fn fold(&mut self, stream: &str) {
        self.error = None;
        let chunks = stream
            .strip_suffix("data: [DONE]\n\n")
            .unwrap_or_else(|| panic!("{stream}"));
        let chunks = sse_data(chunks);
        let mut open = Vec::new();
        for chunk in &chunks {
            self.fold_chunk(chunk, &mut open);
        }
        let last = chunks.last().unwrap()["type"].as_str().unwrap();
        assert!(["finish", "error"].contains(&last), "{stream}");
        assert!(open.is_empty() || last == "error", "{open:?}");
    }

    fn fold_chunk(&mut self, chunk: &Value, open: &mut Vec<String>) {
        let kind = chunk["type"].as_str().unwrap();
        if kind == "start" {
            let is_known = self
                .messages
                .last()
                .is_some_and(|last| last["id"] == chunk["messageId"]);
            if !is_known {
                self.messages
                    .push(json!({"id": chunk["messageId"], "role": "assistant", "parts": []}));
            }
        }
        if let Some(metadata) = chunk.get("messageMetadata") {
            let last = self.messages.last_mut().unwrap();
            last["metadata"] = extended(last.get("metadata").cloned().unwrap_or_else(|| json!({})), metadata);
        }
        if kind == "error" {
            self.error = Some(chunk["errorText"].as_str().unwrap().to_owned());
        }
        let parts = self.messages.last_mut().unwrap()["parts"].as_array_mut().unwrap();
        fold_part(parts, open, kind, chunk);
    }
}

/// Changes the parts of a message as a chunk says.
fn fold_part(parts: &mut Vec<Value>, open: &mut Vec<String>, kind: &str, chunk: &Value) {
    let id = || chunk["id"].as_str().unwrap().to_owned();
    match kind {
        "start-step" => parts.push(json!({"type": "step-start"})),
        "reset-step" => {
            let start = parts.iter().rposition(|part| part["type"] == "step-start").unwrap();
            parts.truncate(start + 1);
            open.clear();
        }
        "text-start" | "reasoning-start" => {
            open.push(id());
            let kind = kind.strip_suffix("-start");
            parts.push(json!({"type": kind, "text": "", "state": "done", "chunk": id()}));
        }
        "text-delta" | "reasoning-delta" => {
            assert!(open.contains(&id()), "{chunk}");
            let part = parts.iter_mut().rfind(|part| part["chunk"] == chunk["id"]).unwrap();
            part["text"] = json!(
                [&part["text"], &chunk["delta"]]
                    .map(|text| text.as_str().unwrap())
                    .concat()
            );
        }
        "text-end" | "reasoning-end" => {
            let count = open.len();
            open.retain(|open| *open != id());
            assert_eq!(open.len(), count - 1, "{chunk}");
        }
        "data-usage" | "data-subagent" => {
            let part = json!({"type": kind, "id": chunk["id"], "data": chunk["data"]});
            match parts
                .iter_mut()
                .find(|part| part["type"] == kind && part["id"] == chunk["id"])
            {
                Some(known) => *known = part,
                None => parts.push(part),
            }
        }
        "tool-input-start" | "tool-input-available" | "tool-input-error" => {
            let name = chunk["toolName"].as_str().unwrap();
            let is_known = parts.iter().any(|part| part["toolCallId"] == chunk["toolCallId"]);
            if !is_known {
                parts.push(json!({"type": format!("tool-{name}"), "toolCallId": chunk["toolCallId"]}));
            }
            let part = call(parts, &chunk["toolCallId"]);
            if kind == "tool-input-available" {
                (part["state"], part["input"]) = (json!("input-available"), chunk["input"].clone());
            } else if kind == "tool-input-error" {
                (part["state"], part["input"]) = (json!("output-error"), chunk["input"].clone());
                part["errorText"] = chunk["errorText"].clone();
            } else {
                (part["state"], part["raw"]) = (json!("input-streaming"), json!(""));
            }
        }
        "tool-input-delta" => {
            let part = call(parts, &chunk["toolCallId"]);
            let raw = [&part["raw"], &chunk["inputTextDelta"]]
                .map(|text| text.as_str().unwrap())
                .concat();
            // The AI SDK also reads JSON that has no end yet.
            if let Ok(input) = serde_json::from_str::<Value>(&raw) {
                part["input"] = input;
            }
            part["raw"] = json!(raw);
        }
        _ if kind.starts_with("tool-") => fold_call(parts, kind, chunk),
        _ => (),
    }
}

fn fold_call(parts: &mut [Value], kind: &str, chunk: &Value) {
    let call_id = chunk.get("toolCallId").unwrap_or(&chunk["approvalId"]);
    let part = call(parts, call_id);
    match kind {
        "tool-approval-request" => {
            (part["state"], part["approval"]) = (json!("approval-requested"), json!({"id": chunk["approvalId"]}));
        }
        "tool-approval-response" => {
            part["state"] = json!("approval-responded");
            part["approval"]["approved"] = chunk["approved"].clone();
        }
        "tool-output-available" => {
            (part["state"], part["output"]) = (json!("output-available"), chunk["output"].clone());
        }
        "tool-output-error" => {
            (part["state"], part["errorText"]) = (json!("output-error"), chunk["errorText"].clone());
        }
        "tool-output-denied" => part["state"] = json!("output-denied"),
        _ => (),
    }
}

/// Finds a call, which must be there.
fn call<'p>(parts: &'p mut [Value], call_id: &Value) -> &'p mut Value {
    let found = parts.iter_mut().rfind(|part| part["toolCallId"] == *call_id);
    found.unwrap_or_else(|| panic!("no tool invocation found: {call_id}"))
}

/// Returns a message as a page compares it: without the ids of chunks, and what only the user's
/// page knows of an approval.
fn without_marks(message: &Value) -> Value {
    let mut message = message.clone();
    for part in message["parts"].as_array_mut().unwrap() {
        let fields = part.as_object_mut().unwrap();
        if fields["type"] == "text" || fields["type"] == "reasoning" {
            let is_open = |name: &str, value: &Value| name == "state" && value != "done";
            fields.retain(|name, value| ["type", "text"].contains(&name.as_str()) || is_open(name, value));
        }
        fields.remove("raw");
        if let Some(approval) = fields.get_mut("approval").and_then(Value::as_object_mut) {
            approval.remove("reason");
        }
    }
    message
}

/// Marks a call that waits for an approval as decided.
pub(super) fn decide(part: &mut Value, approved: bool) {
    if part["state"] == "approval-requested" {
        part["state"] = json!("approval-responded");
        part["approval"]["approved"] = json!(approved);
        part["approval"]["reason"] = json!("because");
    }
}

/// Gives a call of the page's own tool its output.
pub(super) fn output(part: &mut Value, value: &Value) {
    if part["state"] == "input-available" {
        part["state"] = json!("output-available");
        part["output"] = value.clone();
    }
}
