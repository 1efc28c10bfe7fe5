//! Calls over a real socket: the key, errors, and a conversation that goes back and forth.

use std::sync::Arc;

use agent::ports::{Model, ModelErrorClass, StructuredOutput};
use models::{ClientSettings, ProviderKind, ProviderSettings};
use serde_json::{Value, json};
use test_support::model_server::{Captured, ModelServer, Reply};
use values::message::ContentPart;

use crate::support::{answered, ask, greeting, impatient, model_of, provider, request, result, user};

fn client(server: &ModelServer, settings: &ClientSettings) -> Arc<dyn Model> {
    let provider = ProviderSettings {
        kind: ProviderKind::OllamaChat,
        ..provider("test", server.url(""))
    };
    model_of(provider, settings)
}

/// A stream of one message.
fn answer(message: &Value) -> Reply {
    let end = json!({"message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "stop"});
    let lines = format!("{}\n{end}\n", json!({"message": message, "done": false}));
    Reply::new(200, "application/x-ndjson", lines)
}

#[tokio::test]
async fn the_key_stands_in_a_header() {
    let server = ModelServer::start(vec![answer(&json!({"content": "hello"}))]).await;
    let model = client(&server, &impatient(0));
    assert_eq!(model.structured_output(), StructuredOutput::Native);
    assert_eq!(ask(model.as_ref(), greeting()).await.texts(), "hello");
    let captured = server.captured();
    assert_eq!(captured[0].path, "/api/chat");
    for (name, value) in [
        ("authorization", "Bearer sk-test"),
        ("accept", "application/x-ndjson, application/json"),
    ] {
        assert_eq!(captured[0].headers[name], value);
    }
}

#[tokio::test]
async fn errors_have_their_classes() {
    for (status, message, class, attempts) in [
        (
            404,
            "model 'x' not found, try pulling it first",
            ModelErrorClass::Invalid,
            1,
        ),
        (
            503,
            "server busy, please try again. maximum pending requests exceeded",
            ModelErrorClass::Overload,
            2,
        ),
    ] {
        let failed = Reply::json(status, &json!({"error": message}));
        let server = ModelServer::start(vec![failed.clone(), failed]).await;
        let error = ask(client(&server, &impatient(1)).as_ref(), greeting()).await;
        let error = error.end.unwrap_err();
        assert_eq!((error.class, error.message.as_str()), (class, message));
        assert_eq!(server.asked(), attempts, "{message}");
    }
}

#[tokio::test]
async fn a_turn_of_several_steps_sends_everything_back() {
    let call = json!({"id": "c1", "function": {"name": "t", "arguments": {"n": 1}}});
    let server = ModelServer::start(vec![
        answer(&json!({"thinking": "Look it up.", "tool_calls": [call]})),
        answer(&json!({"content": "hello"})),
    ])
    .await;
    let model = client(&server, &impatient(0));
    let mut messages = vec![user("hi")];
    let response = ask(model.as_ref(), request(messages.clone())).await.end.unwrap();
    messages.push(answered(&response));
    messages.push(result("c1", vec![ContentPart::text("ok")]));
    ask(model.as_ref(), request(messages)).await.end.unwrap();
    let sent: Vec<_> = server.captured().iter().map(Captured::json).collect();
    assert_eq!(
        sent[1]["messages"],
        json!([
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "", "thinking": "Look it up.", "tool_calls": [call]},
            {"role": "tool", "content": "ok", "tool_name": "t", "tool_call_id": "c1"},
        ])
    );
}
