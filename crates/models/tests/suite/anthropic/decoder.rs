//! The rules that the decoder keeps about streams as a whole, one test each.

use agent::ports::{ModelErrorClass, ModelEvent};
use agent::state::FinishReason;
use models::CapSettings;
use serde_json::{Value, json};
use values::message::ContentPart;

use super::support::{
    block, decode_with, delta, end, input_delta, ping, plain, read, start, stop, stream, text_delta, tool_use,
};
use crate::support::{error, refusal, said, usage};

#[test]
fn an_end_that_was_announced_is_enough_and_another_is_none() {
    let hello = [
        start(),
        block(0, &json!({"type": "text", "text": ""})),
        text_delta(0, "hello"),
    ];
    let with = |rest: &[Value]| stream(&[&hello[..], rest].concat());
    for rest in [&[end("end_turn"), stop()][..], &[end("end_turn")], &[stop()]] {
        let response = with(rest).1.unwrap();
        assert_eq!(
            (response.content, response.finish_reason),
            (vec![ContentPart::text("hello")], FinishReason::Stop)
        );
    }
    assert_eq!(error(with(&[])).0, ModelErrorClass::Truncated);
    for text in ["", ": comment\n\n", "{\"content\": [", "data: {\"type\": \"mess"] {
        let outcome = read(text.as_bytes());
        assert_eq!(error(outcome).0, ModelErrorClass::Truncated, "{text:?}");
    }
    let hello = block(0, &json!({"type": "text", "text": "hello"}));
    let unended = format!("data: {}\n\ndata: {hello}\n\ndata: {}", start(), end("end_turn"));
    let outcome = read(unended.as_bytes());
    assert_eq!(
        outcome.1.unwrap().finish_reason,
        FinishReason::Stop,
        "no last blank line"
    );
}

#[test]
fn reasons_for_the_end_have_their_neutral_names() {
    for (reason, expected) in [
        (json!("end_turn"), FinishReason::Stop),
        (json!("stop_sequence"), FinishReason::Stop),
        (json!("max_tokens"), FinishReason::Length),
        (json!("model_context_window_exceeded"), FinishReason::Length),
        (json!("tool_use"), FinishReason::ToolCalls),
        (json!("pause_turn"), FinishReason::PauseTurn),
        (json!("refusal"), FinishReason::Refusal),
        (json!("compaction"), FinishReason::PauseTurn),
        (Value::Null, FinishReason::Stop),
    ] {
        let said = if reason == "tool_use" {
            tool_use("a")
        } else {
            json!({"type": "text", "text": "a"})
        };
        let streamed = stream(&[
            start(),
            block(0, &said),
            json!({"type": "message_delta", "delta": {"stop_reason": reason}}),
            stop(),
        ]);
        assert_eq!(streamed.1.unwrap().finish_reason, expected, "{reason}");
        let whole = plain(&json!({"content": [said], "stop_reason": reason}));
        assert_eq!(whole.1.unwrap().finish_reason, expected, "{reason}");
    }
    let call = plain(&json!({"content": [tool_use("a")]}));
    assert_eq!(call.1.unwrap().finish_reason, FinishReason::ToolCalls);
}

#[test]
fn a_refusal_without_text_has_a_reason() {
    let details = json!({"type": "refusal", "explanation": "Not this."});
    let refusal = refusal("Not this.");
    let reported = vec![ModelEvent::RefusalDelta {
        text: "Not this.".to_owned(),
    }];
    let (events, response) = plain(&json!({"content": [], "stop_reason": "refusal", "stop_details": details}));
    assert_eq!(
        (events, response.unwrap().content),
        (reported.clone(), vec![refusal.clone()])
    );
    let ending = json!({"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": details}});
    let (events, response) = stream(&[json!({"type": "message_start", "message": {}}), ending.clone(), stop()]);
    assert_eq!((events, response.unwrap().content), (reported, vec![refusal]));
    let (_, response) = stream(&[start(), text_delta(0, "No."), ending, stop()]);
    assert_eq!(response.unwrap().content, [ContentPart::text("No.")]);
}

#[test]
fn usage_is_a_running_total_and_the_last_one_stands() {
    let late = json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"input_tokens": 30, "output_tokens": 9}});
    let said = block(0, &json!({"type": "text", "text": "a"}));
    let (events, response) = stream(&[start(), ping(), said, end("tool_use"), late, stop()]);
    let is_count = |event: &ModelEvent| matches!(event, ModelEvent::Usage(_));
    let events: Vec<_> = events.into_iter().filter(is_count).collect();
    assert_eq!(
        events,
        [usage(3, 1), usage(3, 9), usage(30, 9)].map(ModelEvent::Usage),
        "each change is told once"
    );
    let response = response.unwrap();
    assert_eq!(
        (response.usage, response.finish_reason),
        (usage(30, 9), FinishReason::Stop)
    );
    assert_eq!(
        (response.model.as_deref(), response.response_id.as_deref()),
        (Some("claude"), Some("msg_1"))
    );
}

#[test]
fn pings_unknown_events_and_unknown_pieces_change_nothing() {
    let noise = [
        ping(),
        json!({"type": "from_the_future", "index": 0, "delta": {"text": "x"}}),
        json!({"no_type": true}),
        delta(0, &json!({"type": "sparkle_delta", "text": "x"})),
        delta(0, &json!({"type": "thinking_delta", "thinking": "x"})),
        delta(0, &json!({})),
        delta(7, &json!({"type": "signature_delta", "signature": "x"})),
        json!({"type": "content_block_stop", "index": 9}),
        json!({"type": "content_block_start", "index": 3}),
        json!({"type": "content_block_start", "index": 4, "content_block": {}}),
    ];
    let opening = [
        start(),
        block(0, &json!({"type": "text", "text": ""})),
        text_delta(0, "a"),
    ];
    let closing = [text_delta(0, "b"), end("end_turn"), stop()];
    let quiet = stream(&[&opening[..], &closing].concat());
    let noisy = stream(&[&opening[..], &noise, &closing].concat());
    assert_eq!((noisy.0, noisy.1.unwrap()), (quiet.0, quiet.1.unwrap()));
}

#[test]
fn a_block_without_a_neutral_form_is_assembled_from_its_pieces() {
    let piece = |text: &str| delta(0, &json!({"type": "compaction_delta", "content": text}));
    let (_, response) = stream(&[
        start(),
        block(0, &json!({"type": "compaction", "content": null})),
        piece("ab"),
        piece("c"),
        end("compaction"),
        stop(),
    ]);
    let content = response.unwrap().content;
    let [ContentPart::Opaque(part)] = content.as_slice() else {
        panic!("{content:?}");
    };
    assert_eq!(part.raw.as_str(), r#"{"content":"abc","type":"compaction"}"#);
}

#[test]
fn an_event_named_error_without_data_is_no_error() {
    for data in ["", "[DONE]"] {
        let text = format!(
            "event: error\ndata: {data}\n\ndata: {}\n\ndata: {}\n\ndata: {}\n\n",
            block(0, &json!({"type": "text", "text": "hello"})),
            end("end_turn"),
            stop()
        );
        let (_, response) = read(text.as_bytes());
        assert_eq!(response.unwrap().finish_reason, FinishReason::Stop, "{data:?}");
    }
}

#[test]
fn an_error_in_mid_stream_ends_the_answer() {
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let hello = said("hello");
    let (events, end_of_it) = stream(&[
        start(),
        text_delta(0, "hello"),
        overloaded.clone(),
        end("end_turn"),
        stop(),
    ]);
    let error_of_it = end_of_it.unwrap_err();
    assert!(events.contains(&hello), "{events:?}");
    assert_eq!(
        (error_of_it.class, error_of_it.message.as_str(), error_of_it.status),
        (ModelErrorClass::Overload, "Overloaded", None)
    );
    assert!(error_of_it.body.unwrap().contains("overloaded_error"));
    assert_eq!(error(plain(&overloaded)).0, ModelErrorClass::Overload);
    let nameless = json!({"error": {"type": "api_error", "message": "broke"}});
    assert_eq!(
        error(stream(&[nameless])),
        (ModelErrorClass::Server, "broke".to_owned())
    );
    let named = read(b"event: error\ndata: upstream broke\n\n");
    assert_eq!(error(named), (ModelErrorClass::Server, "upstream broke".to_owned()));
}

#[test]
fn a_body_that_is_no_answer_is_a_protocol_error() {
    for (body, message) in [
        (r#"{"choices": []}"#, "the response is not a message"),
        (r#"{"content": "words"}"#, "the response is not a message"),
        ("[]", "the response is not a JSON object"),
        ("<html>", "the response is not a JSON object"),
        ("data: nonsense\n\n", "the response is not a JSON object"),
        ("data: {\"type\": \"ping\"}\n\n", "the stream has no message"),
        ("data: {\"type\": \"message_stop\"}\n\n", "the stream has no message"),
        (
            r#"{"content": [{"type": "tool_use", "id": "a"}]}"#,
            "a tool call has no name",
        ),
    ] {
        let outcome = read(body.as_bytes());
        assert_eq!(
            error(outcome),
            (ModelErrorClass::Protocol, message.to_owned()),
            "{body}"
        );
    }
    let stray = stream(&[start(), input_delta(4, "{")]);
    assert_eq!(error(stray).1, "a piece of a tool call belongs to no call");
}

#[test]
fn either_form_is_read_despite_the_declared_type() {
    let whole = json!({"type": "message", "content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn"});
    let framed = format!("event: message\ndata: {whole}\n\n");
    for body in [whole.to_string(), format!("\u{FEFF} {whole}"), framed] {
        for declared in [None, Some("application/json"), Some("text/event-stream; charset=utf-8")] {
            let outcome = decode_with(declared, CapSettings::default(), &[body.as_bytes()]);
            let declared = outcome
                .1
                .unwrap_or_else(|error| panic!("{body} as {declared:?}: {error}"));
            assert_eq!(declared.content, [ContentPart::text("a")]);
        }
    }
}

#[test]
fn answers_and_calls_have_a_largest_size() {
    let caps = CapSettings {
        event_bytes: 1_000,
        response_bytes: 2_000,
        tool_calls: 2,
        ..CapSettings::default()
    };
    let run = |text: &str| error(decode_with(None, caps, &text.as_bytes().chunks(50).collect::<Vec<_>>())).1;
    let frame = |event: &Value| format!("data: {event}\n\n");
    assert_eq!(
        run(&frame(&text_delta(0, &"x".repeat(1_500)))),
        "a server-sent event is larger than 1000 bytes"
    );
    assert_eq!(
        run(&frame(&ping()).repeat(200)),
        "the response is larger than 2000 bytes"
    );
    let calls: String = (0..3).map(|index| frame(&block(index, &tool_use("a")))).collect();
    assert_eq!(run(&calls), "the response has more than 2 tool calls");
    let body = json!({"content": [tool_use("a"), tool_use("b"), tool_use("c")]});
    assert_eq!(run(&body.to_string()), "the response has more than 2 tool calls");
}

#[test]
fn bytes_after_the_end_are_ignored() {
    let said = text_delta(0, "a");
    let (_, response) = stream(&[
        start(),
        said,
        end("end_turn"),
        stop(),
        text_delta(0, "x"),
        json!("nonsense"),
    ]);
    assert_eq!(response.unwrap().content, [ContentPart::text("a")]);
}

#[test]
fn bodies_of_gateways_are_understood() {
    for (body, expected) in [
        (
            json!({"type": "message", "content": "hello", "stop_reason": "end_turn"}),
            vec![ContentPart::text("hello")],
        ),
        (
            json!({"error": {}, "content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn"}),
            vec![ContentPart::text("hello")],
        ),
    ] {
        assert_eq!(plain(&body).1.unwrap().content, expected, "{body}");
    }
    for body in [
        json!({"object": "error", "message": "rate limit", "code": 429}),
        json!({"type": "error", "error": {"type": "rate_limit_error", "message": "rate limit"}}),
    ] {
        assert_eq!(
            error(plain(&body)),
            (ModelErrorClass::RateLimit, "rate limit".to_owned()),
            "{body}"
        );
    }
}
