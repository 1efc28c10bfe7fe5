//! Whole answers that can't be used: what they have used is told all the same, since it is paid
//! for.

use agent::ports::ModelEvent;
use models::CapSettings;
use serde_json::{Value, json};

use super::worst::DECODERS;

/// A body of the protocol with calls of tools; one without a name is `null`.
fn body(protocol: &str, names: &[Value]) -> Value {
    let calls = |call: &dyn Fn(&Value) -> Value| names.iter().map(call).collect::<Vec<_>>();
    match protocol {
        "chat" => {
            let calls = calls(&|name| json!({"id": "a", "function": {"name": name, "arguments": "{}"}}));
            let usage = json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5});
            json!({"choices": [{"index": 0, "message": {"content": "x", "tool_calls": calls}}], "usage": usage})
        }
        "messages" => {
            let content = calls(&|name| json!({"type": "tool_use", "id": "a", "name": name, "input": {}}));
            let usage = json!({"input_tokens": 3, "output_tokens": 2});
            json!({"type": "message", "content": content, "stop_reason": "tool_use", "usage": usage})
        }
        "gemini" => {
            let parts = calls(&|name| json!({"functionCall": {"name": name, "args": {}}}));
            let usage = json!({"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5});
            json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}], "usageMetadata": usage})
        }
        "converse" => {
            let content = calls(&|name| json!({"toolUse": {"toolUseId": "a", "name": name, "input": {}}}));
            let usage = json!({"inputTokens": 3, "outputTokens": 2, "totalTokens": 5});
            json!({"output": {"message": {"content": content}}, "stopReason": "tool_use", "usage": usage})
        }
        _ => {
            let output =
                calls(&|name| json!({"type": "function_call", "call_id": "a", "name": name, "arguments": "{}"}));
            let usage = json!({"input_tokens": 3, "output_tokens": 2, "total_tokens": 5});
            json!({"object": "response", "status": "completed", "output": output, "usage": usage})
        }
    }
}

#[test]
fn a_rejected_completion_reports_its_usage() {
    let caps = CapSettings {
        tool_calls: 1,
        ..CapSettings::default()
    };
    let (name, none) = (json!("t"), Value::Null);
    for (protocol, make) in DECODERS {
        for (names, is_rejected) in [
            (vec![name.clone()], false),
            (vec![none.clone()], true),
            (vec![name.clone(), json!("u")], true),
        ] {
            let mut decoder = make(Some("application/json"), caps);
            let mut events = Vec::new();
            let bytes = body(protocol, &names).to_string();
            let outcome = decoder
                .push(bytes.as_bytes(), &mut events)
                .and_then(|()| decoder.finish(&mut events));
            assert_eq!(outcome.is_err(), is_rejected, "{protocol}: {names:?}");
            let reported = events.iter().filter_map(|event| match event {
                ModelEvent::Usage(usage) => Some((usage.input_tokens, usage.output_tokens, usage.total_tokens)),
                _ => None,
            });
            assert_eq!(reported.collect::<Vec<_>>(), [(3, 2, 5)], "{protocol}: {names:?}");
        }
    }
}

#[test]
fn an_error_instead_of_a_completion_reports_usage() {
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5});
    let error = json!({"message": "no", "code": 502});
    let (_, make) = DECODERS[0];
    for body in [
        json!({"error": error, "usage": usage}),
        json!({"choices": [{"index": 0, "error": error, "finish_reason": "error"}], "usage": usage}),
    ] {
        let mut decoder = make(Some("application/json"), CapSettings::default());
        let mut events = Vec::new();
        let outcome = decoder
            .push(body.to_string().as_bytes(), &mut events)
            .and_then(|()| decoder.finish(&mut events));
        assert!(outcome.is_err(), "{body}");
        assert!(
            matches!(&events[..], [ModelEvent::Usage(usage)] if usage.total_tokens == 5),
            "{body}: {events:?}"
        );
    }
}
