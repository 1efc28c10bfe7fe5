//! Errors of a shape of their own, instead of a completion and in the middle of one.

use agent::ports::ModelErrorClass as Class;
use serde_json::{Value, json};
use test_support::samples::DECODERS;

use super::support::{decoded, error};

/// Decodes a response, which ends in an error.
fn class(protocol: usize, kind: &str, text: &str) -> Class {
    error(decoded(protocol, Some(kind), &[text.as_bytes()])).0
}

fn events(frames: &[&Value]) -> String {
    let frames = frames.iter().map(|frame| format!("data: {frame}\n\n"));
    frames.collect::<Vec<_>>().concat()
}

/// Returns errors of many shapes with their classes.
fn errors() -> Vec<(Value, Class)> {
    let rows: Vec<(Value, String)> = serde_json::from_str(include_str!("error_frames.json")).unwrap();
    let classes = [Class::RateLimit, Class::Context, Class::Server];
    let named = |name: &str| classes.into_iter().find(|class| format!("{class:?}") == name).unwrap();
    rows.into_iter().map(|(error, name)| (error, named(&name))).collect()
}

#[test]
fn an_error_of_any_shape_is_one_instead_of_a_completion() {
    for (fault, expected) in errors() {
        for (protocol, (name, _)) in DECODERS.iter().enumerate() {
            let body = class(protocol, "application/json", &fault.to_string());
            assert_eq!(body, expected, "{name}: {fault}");
            // The protocol of Bedrock marks errors in streams.
            if *name != "converse" {
                let stream = class(protocol, "text/event-stream", &events(&[&fault]));
                assert_eq!(stream, expected, "{name}: {fault}");
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
    for (fault, expected) in errors() {
        for (protocol, begun) in begun.iter().enumerate() {
            let text = events(&[begun, &fault]) + "data: [DONE]\n\n";
            let got = class(protocol, "text/event-stream", &text);
            assert_eq!(got, expected, "{}: {fault}", DECODERS[protocol].0);
        }
    }
    let status = json!({"status_code": 1000, "status_msg": "unknown error"});
    let late = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": null}], "base_resp": status});
    let text = events(&[&begun[0], &late]) + "data: [DONE]\n\n";
    assert_eq!(class(0, "text/event-stream", &text), Class::Server);
}

#[test]
fn frames_that_are_no_errors_change_nothing() {
    let piece = json!({"content": "hi"});
    let frames = [
        json!({"object": "chat.completion.status", "message": "loading"}),
        json!({"type": "progress", "message": "searching"}),
        json!({"usage": {"prompt_tokens": 1, "completion_tokens": 1}, "message": ""}),
        json!({"choices": [], "detail": "none"}),
        json!({"choices": [{"index": 0, "delta": piece, "finish_reason": "stop"}],
               "base_resp": {"status_code": 0, "status_msg": ""}}),
    ];
    let text = events(&frames.iter().collect::<Vec<_>>());
    decoded(0, Some("text/event-stream"), &[text.as_bytes()]).1.unwrap();
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
