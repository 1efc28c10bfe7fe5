//! The rules that the decoder keeps, one test each.

use agent::ports::{ModelErrorClass, ModelEvent};
use agent::state::FinishReason;
use models::{CapSettings, ProviderKind};
use serde_json::{Value, json};
use test_support::wires;
use values::message::ContentPart;

use crate::support::{Decoded, call, decode, error, generated_id, said, thought, usage};

/// Decodes a stream of these lines.
fn stream(lines: &[Value]) -> Decoded {
    let lines = lines.iter().map(|line| format!("{line}\n"));
    read("application/x-ndjson", &lines.collect::<String>())
}

fn read(content_type: &str, text: &str) -> Decoded {
    let settings = wires::settings("p", ProviderKind::OllamaChat);
    let decoder = wires::decoder(&settings, Some(content_type), CapSettings::default());
    decode(decoder, &[text.as_bytes()])
}

fn piece(message: &Value) -> Value {
    json!({"model": "m", "message": message, "done": false})
}

fn last(reason: &Value) -> Value {
    json!({"model": "m", "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": reason,
        "prompt_eval_count": 3, "eval_count": 2})
}

#[test]
fn lines_are_pieces_of_a_completion() {
    let lines = [
        piece(&json!({"thinking": "h", "content": ""})),
        piece(&json!({"thinking": "m"})),
        piece(&json!({"content": "hel"})),
        piece(&json!({"content": "lo"})),
        last(&json!("stop")),
    ];
    let (events, response) = stream(&lines);
    let reasoning = |text: &str| ModelEvent::ReasoningDelta { text: text.to_owned() };
    let expected = [
        reasoning("h"),
        reasoning("m"),
        said("hel"),
        said("lo"),
        ModelEvent::Usage(usage(3, 2)),
    ];
    assert_eq!(events, expected);
    let response = response.unwrap();
    assert_eq!(response.content, [thought("hm", None), ContentPart::text("hello")]);
    assert_eq!((response.model.as_deref(), response.usage), (Some("m"), usage(3, 2)));
    assert_eq!(response.finish_reason, FinishReason::Stop);
}

#[test]
fn a_call_without_an_id_gets_one() {
    let function = json!({"name": "t", "arguments": {"a": 1}});
    let named = json!({"id": "c1", "function": function});
    let nameless = json!({"function": function});
    let lines = [piece(&json!({"tool_calls": [named, nameless]})), last(&json!("stop"))];
    let response = stream(&lines).1.unwrap();
    assert_eq!(
        response.content,
        [call("c1", r#"{"a":1}"#), call(&generated_id(1), r#"{"a":1}"#)]
    );
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    let unreadable = [piece(&json!({"tool_calls": ["t"]}))];
    assert_eq!(error(stream(&unreadable)).0, ModelErrorClass::Protocol);
}

#[test]
fn an_end_has_a_reason_and_a_last_line() {
    let hello = piece(&json!({"content": "hello"}));
    for (reason, expected) in [
        (json!("stop"), FinishReason::Stop),
        (Value::Null, FinishReason::Stop),
        (json!("length"), FinishReason::Length),
    ] {
        let response = stream(&[hello.clone(), last(&reason)]).1.unwrap();
        assert_eq!(response.finish_reason, expected, "{reason}");
    }
    let loaded = stream(&[hello.clone(), last(&json!("load"))]);
    assert_eq!(error(loaded).0, ModelErrorClass::Server);
    let (cut, whole) = (format!("{hello}\n{{\"message\": "), hello.to_string());
    for (content_type, text) in [
        ("application/x-ndjson", ""),
        ("application/x-ndjson", cut.as_str()),
        ("application/json", whole.as_str()),
    ] {
        assert_eq!(error(read(content_type, text)).0, ModelErrorClass::Truncated, "{text}");
    }
    let unended = format!("{hello}\n{}", last(&json!("stop")));
    assert!(read("application/x-ndjson", &unended).1.is_ok(), "no last line break");
}

#[test]
fn an_error_ends_a_stream() {
    let lines = [
        piece(&json!({"content": "hel"})),
        json!({"error": "an error was encountered while running the model"}),
    ];
    let (class, message) = error(stream(&lines));
    assert_eq!(class, ModelErrorClass::Server);
    assert_eq!(message, "an error was encountered while running the model");
}
