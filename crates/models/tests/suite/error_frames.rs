//! Errors of a shape of their own, instead of a completion and in the middle of one.

use agent::ports::{ModelErrorClass as Class, ModelEvent};
use models::CapSettings;
use serde_json::{Value, json};

use test_support::samples::DECODERS;

/// Decodes a response, which ends in an error.
fn class(protocol: usize, kind: &str, text: &str) -> Class {
    let (name, make) = DECODERS[protocol];
    let mut decoder = make(Some(kind), CapSettings::default());
    let mut events = Vec::new();
    let pushed = decoder.push(text.as_bytes(), &mut events);
    let ended = pushed.and_then(|()| decoder.finish(&mut events));
    assert!(ended.is_err(), "{name}: {text}: {events:?}");
    ended.unwrap_err().error.class
}

fn events(frames: &[&Value]) -> String {
    let frames = frames.iter().map(|frame| format!("data: {frame}\n\n"));
    frames.collect::<Vec<_>>().concat()
}

/// Returns errors of many shapes with their classes.
fn errors() -> Vec<(Value, Class)> {
    vec![
        (json!({"detail": "Rate limit exceeded"}), Class::RateLimit),
        (json!({"message": "Too many requests", "code": 429}), Class::RateLimit),
        (
            json!({"code": "rate_limit_exceeded", "message": "slow"}),
            Class::RateLimit,
        ),
        (
            json!({"errors": [{"code": 429, "message": "Too many requests"}], "success": false}),
            Class::RateLimit,
        ),
        (
            json!({"error_code": 336_501, "error_msg": "Rate limit reached for RPM"}),
            Class::RateLimit,
        ),
        (
            json!({"message": "This model's maximum context length is 8192 tokens, not 9000.",
                   "type": "invalid_request_error", "code": "context_length_exceeded"}),
            Class::Context,
        ),
        (
            json!({"base_resp": {"status_code": 1002, "status_msg": "rate limit exceeded(RPM)"}}),
            Class::RateLimit,
        ),
        (json!([{"error": {"code": 429, "message": "slow"}}]), Class::RateLimit),
        (json!({"detail": "Internal error: engine dead"}), Class::Server),
    ]
}

#[test]
fn an_error_of_any_shape_is_one_instead_of_a_completion() {
    for (error, expected) in errors() {
        for (protocol, (name, _)) in DECODERS.iter().enumerate() {
            let body = class(protocol, "application/json", &error.to_string());
            assert_eq!(body, expected, "{name}: {error}");
            // The protocol of Bedrock marks errors in streams.
            if *name != "converse" {
                let stream = class(protocol, "text/event-stream", &events(&[&error]));
                assert_eq!(stream, expected, "{name}: {error}");
            }
        }
    }
}

#[test]
fn an_error_of_any_shape_ends_a_stream() {
    let begun = [
        json!({"choices": [{"index": 0, "delta": {"content": "Half"}, "finish_reason": null}]}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "Half"}}),
        json!({"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": "Half"}),
        json!({"candidates": [{"index": 0, "content": {"parts": [{"text": "Half"}]}}]}),
    ];
    for (error, expected) in errors() {
        for (protocol, begun) in begun.iter().enumerate() {
            let text = events(&[begun, &error]) + "data: [DONE]\n\n";
            let got = class(protocol, "text/event-stream", &text);
            assert_eq!(got, expected, "{}: {error}", DECODERS[protocol].0);
        }
    }
    let status = json!({"status_code": 1000, "status_msg": "unknown error"});
    let late = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": null}], "base_resp": status});
    let text = events(&[&begun[0], &late]) + "data: [DONE]\n\n";
    assert_eq!(class(0, "text/event-stream", &text), Class::Server);
}

#[test]
fn frames_that_are_no_errors_change_nothing() {
    let (_, make) = DECODERS[0];
    let piece = json!({"content": "hi"});
    let frames = [
        json!({"object": "chat.completion.status", "message": "loading"}),
        json!({"type": "progress", "message": "searching"}),
        json!({"usage": {"prompt_tokens": 1, "completion_tokens": 1}, "message": ""}),
        json!({"choices": [], "detail": "none"}),
        json!({"choices": [{"index": 0, "delta": piece, "finish_reason": "stop"}],
               "base_resp": {"status_code": 0, "status_msg": ""}}),
    ];
    let mut decoder = make(Some("text/event-stream"), CapSettings::default());
    let mut made = Vec::new();
    let text = events(&frames.iter().collect::<Vec<_>>());
    decoder.push(text.as_bytes(), &mut made).unwrap();
    decoder.finish(&mut made).unwrap();
    assert!(matches!(made.last(), Some(ModelEvent::Completed(_))), "{made:?}");
}

#[test]
fn an_error_after_a_comment_needs_no_field() {
    let error = json!({"error": {"message": "It is too long.", "code": "context_length_exceeded"}});
    let pretty = serde_json::to_string_pretty(&error).unwrap();
    for text in [
        format!(": keep-alive\n\n{error}\n"),
        format!(": keep-alive\n\n{error}"),
        format!(": keep-alive\n\n{pretty}\n\n"),
        format!(": keep-alive\n\n{error}\ndata: [DONE]\n\n"),
    ] {
        assert_eq!(class(0, "text/event-stream", &text), Class::Context, "{text}");
    }
}
