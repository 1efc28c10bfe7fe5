//! Calls over a real socket: headers, repeats, and a conversation that goes back and forth.

use std::sync::Arc;

use agent::ports::{Model, ModelErrorClass, StructuredOutput};
use models::{ClientSettings, ProviderKind, ProviderSettings};
use serde_json::json;
use test_support::model_server::{ModelServer, Reply};
use values::message::ContentPart;

use super::support::{block, end, start, stop, text_delta};
use crate::support::{answered, ask, greeting, impatient, model_of, provider, request, result, user};

fn client(server: &ModelServer, settings: &ClientSettings) -> Arc<dyn Model> {
    let provider = ProviderSettings {
        kind: ProviderKind::Anthropic,
        ..provider("test", server.url(""))
    };
    model_of(provider, settings)
}

fn events(events: &[serde_json::Value]) -> Reply {
    let frames = events.iter().map(|event| format!("data: {event}\n\n"));
    Reply::events(frames.collect::<String>())
}

fn hello() -> Reply {
    events(&[start(), text_delta(0, "hello"), end("end_turn"), stop()])
}

fn overloaded() -> serde_json::Value {
    json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
}

#[tokio::test]
async fn a_request_carries_the_key_and_the_version() {
    let server = ModelServer::start(vec![hello()]).await;
    let model = client(&server, &impatient(0));
    assert_eq!(model.structured_output(), StructuredOutput::Native);
    let outcome = ask(model.as_ref(), greeting()).await;
    assert_eq!(outcome.texts(), "hello");
    let captured = server.captured();
    let header = |name: &str| captured[0].headers.get(name).map(|value| value.to_str().unwrap());
    assert_eq!(captured[0].path, "/v1/messages");
    assert_eq!(header("x-api-key"), Some("sk-test"));
    assert_eq!(header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(header("content-type"), Some("application/json"));
    assert_eq!(header("authorization"), None);
}

#[tokio::test]
async fn an_overload_is_waited_out_only_before_anything_was_passed_on() {
    let server = ModelServer::start(vec![
        Reply::json(529, &overloaded()),
        events(&[start(), block(0, &json!({"type": "text", "text": ""})), overloaded()]),
        hello(),
    ])
    .await;
    let outcome = ask(client(&server, &impatient(4)).as_ref(), greeting()).await;
    assert_eq!((outcome.texts().as_str(), server.asked()), ("hello", 3));
    assert_eq!(outcome.tokens().1, 4, "what the failed attempt had read counts");

    let server = ModelServer::start(vec![events(&[start(), text_delta(0, "hel"), overloaded()]), hello()]).await;
    let outcome = ask(client(&server, &impatient(4)).as_ref(), greeting()).await;
    assert_eq!((outcome.texts().as_str(), server.asked()), ("hel", 1));
    assert_eq!(outcome.end.unwrap_err().class, ModelErrorClass::Overload);
}

#[tokio::test]
async fn a_turn_of_several_steps_sends_everything_back() {
    let thinking = json!({"type": "thinking", "thinking": "Look it up.", "signature": "c2ln"});
    let search = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "q"}});
    let found =
        json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"encrypted_content": "x=="}]});
    let call = json!({"type": "tool_use", "id": "toolu_1", "name": "t", "input": {"n": 1}});
    let content = json!([thinking, search, found, {"type": "text", "text": "Now this:\n\n"}, call]);
    let paused = json!({"content": [thinking, search], "stop_reason": "pause_turn"});
    let server = ModelServer::start(vec![
        Reply::json(200, &paused),
        Reply::json(200, &json!({"content": content, "stop_reason": "tool_use"})),
        hello(),
    ])
    .await;
    let model = client(&server, &impatient(0));
    let mut messages = vec![user("hi")];
    let first = ask(model.as_ref(), request(messages.clone())).await.end.unwrap();
    assert_eq!(String::from(first.finish_reason.clone()), "pause_turn");
    messages.push(answered(&first));
    let second = ask(model.as_ref(), request(messages.clone())).await.end.unwrap();
    messages.extend([answered(&second), result("toolu_1", vec![ContentPart::text("ok")])]);
    ask(model.as_ref(), request(messages)).await.end.unwrap();

    let sent = server.captured();
    assert_eq!(
        sent[1].json()["messages"][1],
        json!({"role": "assistant", "content": [thinking, search]})
    );
    let both: Vec<_> = [&paused["content"], &content]
        .into_iter()
        .flat_map(|content| content.as_array().unwrap().clone())
        .collect();
    assert_eq!(
        sent[2].json()["messages"][1],
        json!({"role": "assistant", "content": both})
    );
}
