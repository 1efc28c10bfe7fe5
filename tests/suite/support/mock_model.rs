//! A model provider for tests: it speaks chat completions and Anthropic Messages over a real
//! socket, responds as a test scripts and retains every request.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use test_support::gate::Gate;
use test_support::model_server::{self, ModelServer, Piece};
use values::json::Value;

use super::mock_messages;

/// The response of the mock to a request.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    /// Words, in these pieces.
    Text(Vec<String>),
    /// Calls of tools: id, name, arguments.
    ToolCalls(Vec<(String, String, String)>),
    /// An HTTP error with a body.
    Status(u16, String),
    /// Words in pieces with a pause before each, and no end: the connection is cut.
    Cut(Vec<String>),
    /// Words in pieces with a pause after each.
    Slow(Vec<String>, Duration),
    /// Words, once the gate lets them pass.
    Held(Arc<Gate>, String),
    /// Another response, after a pause.
    After(Duration, Box<Self>),
    /// Words in pieces, and the end once the gate lets it pass.
    HeldAtEnd(Arc<Gate>, Vec<String>),
    /// A stream of these events, in the protocol's own form.
    Events(Vec<Value>),
}

impl Reply {
    /// One piece of text.
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(vec![text.to_owned()])
    }

    /// One call.
    pub(crate) fn call(id: &str, name: &str, arguments: &Value) -> Self {
        Self::ToolCalls(vec![(id.to_owned(), name.to_owned(), arguments.to_string())])
    }

    /// One call, for a run that continues until it is stopped: after a pause, so that the run has
    /// few steps.
    pub(crate) fn call_without_haste(id: &str, name: &str, arguments: &Value) -> Self {
        Self::After(Duration::from_millis(50), Box::new(Self::call(id, name, arguments)))
    }
}

/// The running provider. It makes every check of the server that it is built on.
#[derive(Debug)]
pub(crate) struct MockModel {
    server: ModelServer,
}

impl MockModel {
    /// Starts a provider that responds to each request with the function.
    pub(crate) async fn start(answerer: impl Fn(&Value) -> Reply + Send + 'static) -> Self {
        let server = ModelServer::answering(move |captured| {
            let on_the_wire = match captured.path.as_str() {
                "/v1/chat/completions" => on_the_wire,
                "/v1/messages" => mock_messages::on_the_wire,
                _ => return model_server::Reply::new(404, "text/plain", "no such protocol"),
            };
            let request = captured.json();
            on_the_wire(answerer(&request), request["stream"] == true)
        });
        Self { server: server.await }
    }

    /// Starts a provider that writes "echo: " and the last user message.
    pub(crate) async fn echoing() -> Self {
        Self::start(|request| Reply::text(&format!("echo: {}", last_user_text(request)))).await
    }

    /// Starts one that does so, too, but says "done" to "wait", once the gate lets it.
    pub(crate) async fn waiting_behind(gate: &Arc<Gate>) -> Self {
        let gate = Arc::clone(gate);
        Self::start(move |request| match last_user_text(request).as_str() {
            "wait" => Reply::Held(Arc::clone(&gate), "done".to_owned()),
            text => Reply::text(&format!("echo: {text}")),
        })
        .await
    }

    /// Returns the address for `base_url`.
    pub(crate) fn base_url(&self) -> String {
        self.server.url("/v1")
    }

    /// Returns how many requests have come in.
    pub(crate) fn asked(&self) -> usize {
        self.server.asked()
    }

    /// Returns every request so far, parsed.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.server
            .captured()
            .iter()
            .map(model_server::Captured::json)
            .collect()
    }

    /// Returns a header of every request so far.
    pub(crate) fn headers(&self, name: &str) -> Vec<Option<String>> {
        let text = |request: model_server::Captured| Some(request.headers.get(name)?.to_str().unwrap().to_owned());
        self.server.captured().into_iter().map(text).collect()
    }

    /// Returns the bodies of every request so far.
    pub(crate) fn raw_requests(&self) -> Vec<Vec<u8>> {
        self.server.captured().into_iter().map(|request| request.body).collect()
    }
}

/// Returns the text of the last user message of a request.
pub(crate) fn last_user_text(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    let last = messages.iter().rev().find(|message| message["role"] == "user");
    last.map(|message| content_text(&message["content"]))
        .unwrap_or_default()
}

/// Returns the text of a message's content, whether it is a string or a list of parts.
pub(crate) fn content_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Returns what tools have returned, in the order of a request.
pub(crate) fn tool_results(request: &Value) -> Vec<String> {
    results_in(request["messages"].as_array().unwrap())
}

/// Returns what tools have returned since the last message of the user.
pub(crate) fn new_results(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap();
    let last = messages.iter().rposition(|message| message["role"] == "user");
    results_in(&messages[last.map_or(0, |index| index + 1)..])
}

fn results_in(messages: &[Value]) -> Vec<String> {
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results.map(|message| content_text(&message["content"])).collect()
}

/// Makes the calls that a text lists: `[[id, tool, arguments], …]`.
pub(crate) fn listed_calls(text: &str) -> Option<Reply> {
    let calls: Vec<(String, String, Value)> = serde_json::from_str(text).ok()?;
    let calls = calls.into_iter();
    let calls = calls.map(|(id, tool, arguments)| (id, tool, arguments.to_string()));
    Some(Reply::ToolCalls(calls.collect()))
}

/// Returns the texts of messages.
pub(crate) fn texts(messages: &Value) -> Vec<String> {
    let messages = messages.as_array().unwrap().iter();
    messages.map(|message| content_text(&message["content"])).collect()
}

fn on_the_wire(reply: Reply, streams: bool) -> model_server::Reply {
    let assistant = |content: Value| json!({"role": "assistant", "content": content});
    match reply {
        Reply::Status(status, body) => model_server::Reply::new(status, "application/json", body),
        Reply::Events(events) => event_stream(&events, None, true),
        Reply::Text(pieces) if streams => event_stream(&chunks(&pieces), None, true),
        Reply::Slow(pieces, pause) => event_stream(&chunks(&pieces), Some(&Piece::Wait(pause)), true),
        Reply::Held(gate, text) => event_stream(&chunks(&[text]), None, true).after(Piece::Gate(gate)),
        Reply::After(pause, reply) => on_the_wire(*reply, streams).after(Piece::Wait(pause)),
        Reply::HeldAtEnd(gate, pieces) => {
            let mut reply = event_stream(&chunks(&pieces), None, true);
            reply.pieces.insert(pieces.len(), Piece::Gate(gate));
            reply
        }
        Reply::Cut(pieces) => event_stream(&chunks(&pieces), None, false),
        Reply::ToolCalls(calls) if streams => event_stream(&call_chunks(&calls), None, true),
        Reply::Text(pieces) => plain(&assistant(json!(pieces.concat())), "stop"),
        Reply::ToolCalls(calls) => {
            let mut message = assistant(Value::Null);
            message["tool_calls"] = calls.iter().map(call_json).collect();
            plain(&message, "tool_calls")
        }
    }
}

fn chunks(pieces: &[String]) -> Vec<Value> {
    let deltas = pieces
        .iter()
        .map(|piece| json!({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": null}]}));
    deltas.chain([finish("stop")]).collect()
}

fn call_chunks(calls: &[(String, String, String)]) -> Vec<Value> {
    let deltas = calls.iter().enumerate().map(|(index, call)| {
        let mut call = call_json(call);
        call["index"] = json!(index);
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": null}]})
    });
    deltas.chain([finish("tool_calls")]).collect()
}

fn call_json((id, name, arguments): &(String, String, String)) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}], "usage": usage()})
}

fn plain(message: &Value, reason: &str) -> model_server::Reply {
    let choice = json!({"index": 0, "message": message, "finish_reason": reason});
    let body = json!({"id": "mock", "model": "mock", "choices": [choice], "usage": usage()});
    model_server::Reply::json(200, &body)
}

/// The same for every response, so that tests can count.
fn usage() -> Value {
    json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
}

/// Makes a stream of the chunks, with something before each; one that does not end lacks its last
/// chunk.
fn event_stream(chunks: &[Value], before_each: Option<&Piece>, ends: bool) -> model_server::Reply {
    let mut events: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    if ends {
        events.push("data: [DONE]\n\n".to_owned());
    } else {
        events.pop();
    }
    let pieces = events
        .into_iter()
        .flat_map(|event| before_each.cloned().into_iter().chain([Piece::Bytes(event.into())]));
    model_server::Reply {
        pieces: pieces.collect(),
        ..model_server::Reply::events("")
    }
}
