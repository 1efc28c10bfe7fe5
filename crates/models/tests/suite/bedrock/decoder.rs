//! The rules that the decoder keeps, one test each.

use agent::ports::{ModelErrorClass, ModelEvent};
use agent::state::FinishReason;
use models::CapSettings;
use serde_json::{Value, json};
use test_support::bedrock_frames::{delta, event, exception, frame, metadata, start, stop, stream_bytes, text_delta};
use values::message::ContentPart;

use super::support::{decode_with, plain, read, stream, tool_use, whole};
use crate::support::{call, cited, error, generated_id, opaque, redacted, refusal, thought, usage};

#[test]
fn an_end_that_was_announced_is_enough_and_another_is_none() {
    let hello = [json!({"messageStart": {"role": "assistant"}}), text_delta(0, "hello")];
    let with = |rest: &[Value]| stream(&[&hello[..], rest].concat());
    for rest in [&[stop("end_turn"), metadata()][..], &[stop("end_turn")]] {
        let response = with(rest).1.unwrap();
        assert_eq!(
            (response.content, response.finish_reason),
            (vec![ContentPart::text("hello")], FinishReason::Stop)
        );
    }
    for rest in [&[][..], &[metadata()]] {
        assert_eq!(error(with(rest)).0, ModelErrorClass::Truncated);
    }
    for bytes in [&b""[..], b"{\"output\": {", b" \n", &stream_bytes(&hello)[..40], b"\0"] {
        let outcome = read(bytes);
        assert_eq!(error(outcome).0, ModelErrorClass::Truncated, "{bytes:?}");
    }
    let late = with(&[stop("end_turn"), metadata(), text_delta(0, "ignored")]);
    assert_eq!(late.1.unwrap().content, [ContentPart::text("hello")]);
}

#[test]
fn reasons_for_the_end_have_their_neutral_names() {
    for (reason, expected) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("tool_use", FinishReason::ToolCalls),
        ("guardrail_intervened", FinishReason::ContentFilter),
        ("content_filtered", FinishReason::ContentFilter),
        ("refusal", FinishReason::Refusal),
    ] {
        let said = if reason == "tool_use" {
            tool_use("a")
        } else {
            json!({"text": "a"})
        };
        let body = whole(std::slice::from_ref(&said), reason);
        assert_eq!(plain(&body).1.unwrap().finish_reason, expected);
        let begun = if reason == "tool_use" {
            start(0, &said)
        } else {
            text_delta(0, "a")
        };
        let streamed = stream(&[begun, stop(reason), metadata()]);
        assert_eq!(streamed.1.unwrap().finish_reason, expected);
    }
    for (said, expected) in [
        (tool_use("a"), FinishReason::ToolCalls),
        (json!({"text": "a"}), FinishReason::Stop),
    ] {
        assert_eq!(plain(&whole(&[said], "")).1.unwrap().finish_reason, expected);
    }
}

#[test]
fn a_withheld_completion_has_a_reason_and_a_broken_one_is_none() {
    let refusal = refusal("The provider withheld the response: guardrail_intervened");
    for outcome in [
        plain(&whole(&[], "guardrail_intervened")),
        stream(&[stop("guardrail_intervened"), metadata()]),
    ] {
        assert!(
            outcome
                .0
                .iter()
                .any(|event| matches!(event, ModelEvent::RefusalDelta { .. }))
        );
        assert_eq!(outcome.1.unwrap().content, std::slice::from_ref(&refusal));
    }
    for reason in ["malformed_model_output", "malformed_tool_use"] {
        let (events, end) = stream(&[stop(reason), metadata()]);
        let is_count = |event: &ModelEvent| matches!(event, ModelEvent::Usage(usage) if usage.total_tokens == 5);
        assert!(
            events.len() == 1 && events.iter().all(is_count),
            "nothing else is told, so that the call can be repeated: {events:?}"
        );
        assert_eq!(
            end.unwrap_err().message,
            format!("the provider ended its response with {reason}")
        );
        assert!(plain(&whole(&[tool_use("a")], reason)).1.is_err());
    }
}

#[test]
fn blocks_are_put_together_by_their_index() {
    let reasoning = |piece: Value| json!({"reasoningContent": piece});
    let source = json!({"title": "t", "location": {"web": {"url": "u"}}});
    let (events, response) = stream(&[
        json!({"messageStart": {"role": "assistant"}}),
        delta(0, &reasoning(json!({"text": "I th"}))),
        delta(0, &reasoning(json!({"text": "ink"}))),
        delta(0, &reasoning(json!({"signature": "a+/"}))),
        delta(0, &reasoning(json!({"signature": "=="}))),
        json!({"contentBlockStop": {"contentBlockIndex": 0}}),
        delta(1, &reasoning(json!({"redactedContent": "UmVk"}))),
        text_delta(2, "Hel"),
        start(4, &tool_use("a")),
        text_delta(2, "lo"),
        delta(4, &json!({"toolUse": {"input": "{\"n\":"}})),
        delta(2, &json!({"citation": source})),
        delta(4, &json!({"toolUse": {"input": " 1.50}"}})),
        json!({"contentBlockStop": {"contentBlockIndex": 4}}),
        start(7, &tool_use("a")),
        json!({"contentBlockStop": {"contentBlockIndex": 7}}),
        json!({"fromTheFuture": {"contentBlockIndex": 0}}),
        stop("tool_use"),
        metadata(),
    ]);
    let response = response.unwrap();
    let wanted = [
        thought("I think", Some("a+/==")),
        redacted("UmVk"),
        cited("Hello", &[source]),
        call("a", "{\"n\": 1.50}"),
        call(&generated_id(1), "{}"),
    ];
    assert_eq!(response.content, wanted);
    assert_eq!(response.provider_fields.unwrap().provider, "p");
    assert_eq!(events.last(), Some(&ModelEvent::Usage(usage(3, 2))));
}

#[test]
fn repeated_calls_and_arguments_count_once() {
    let end = |index: u64| json!({"contentBlockStop": {"contentBlockIndex": index}});
    let input = |index: u64, piece: &str| delta(index, &json!({"toolUse": {"input": piece}}));
    for events in [
        vec![
            start(0, &tool_use("a")),
            input(0, "{\"n\":"),
            input(0, "{\"n\":1}"),
            end(0),
        ],
        vec![
            start(0, &tool_use("a")),
            input(0, "{\"n\":1}"),
            input(0, "{\"n\":1}"),
            end(0),
        ],
        vec![
            start(0, &tool_use("a")),
            input(0, "{\"n\":1}"),
            end(0),
            start(0, &tool_use("a")),
            input(0, "{\"n\":1}"),
            end(0),
        ],
    ] {
        let (_, response) = stream(&[&events[..], &[stop("tool_use"), metadata()]].concat());
        assert_eq!(response.unwrap().content, [call("a", "{\"n\":1}")], "{events:?}");
    }
    let unknown = stream(&[delta(0, &json!({"mystery": {"a": "b"}})), stop("end_turn"), metadata()]);
    assert_eq!(error(unknown).1, "the response has no text and no tool call");
}

#[test]
fn whole_blocks_are_the_same_parts() {
    let source = json!({"title": "t"});
    let content = [
        json!({"reasoningContent": {"reasoningText": {"text": "I think", "signature": "a+/=="}}}),
        json!({"reasoningContent": {"redactedContent": "UmVk"}}),
        json!({"text": "Hello"}),
        json!({"citationsContent": {"content": [{"text": "As "}, {"text": "said"}], "citations": [source]}}),
        json!({"toolUse": {"toolUseId": "a", "name": "t", "input": {"n": 1}, "x": 2}}),
        json!({}),
        json!("there"),
    ];
    let mut with_extras = call("a", "{\"n\":1}");
    if let ContentPart::ToolCall(call) = &mut with_extras {
        call.signature = Some("{\"x\":2}".to_owned());
    }
    let wanted = [
        thought("I think", Some("a+/==")),
        redacted("UmVk"),
        ContentPart::text("Hello"),
        cited("As said", &[source]),
        with_extras,
        ContentPart::text("there"),
    ];
    assert_eq!(plain(&whole(&content, "tool_use")).1.unwrap().content, wanted);
    let unreadable = error(plain(&whole(&[json!({"text": "a"}), json!(7)], "end_turn")));
    assert_eq!(unreadable.1, "the response has content that can't be read");
}

#[test]
fn blocks_of_other_kinds_are_stored() {
    let raw = [
        r#"{"image": {"format": "png", "source": {"bytes": "AAAA"}}}"#,
        r#"{"cachePoint": {"type": "default"}}"#,
        r#"{"guardContent": {"text": {"text": "x"}}}"#,
        r#"{"video": {"n": 1e2}}"#,
        r#"{"toolResult": {"toolUseId": "a", "content": []}}"#,
    ];
    let opaque = |raw: &str| opaque("p", raw);
    let body = format!(
        "{{\"output\":{{\"message\":{{\"content\":[{}]}}}},\"stopReason\":\"end_turn\"}}",
        raw.join(",")
    );
    let response = read(body.as_bytes()).1.unwrap();
    assert_eq!(response.content, raw.map(opaque));
    let called = json!({"toolUse": {"toolUseId": "s", "name": "nova_grounding", "type": "server_tool_use"}});
    let response = stream(&[
        start(0, &called),
        delta(0, &json!({"toolUse": {"input": "{\"q\": 1}"}})),
        start(1, &json!({"toolResult": {"toolUseId": "s", "status": "success"}})),
        delta(1, &json!({"toolResult": [{"text": "found"}]})),
        delta(2, &json!({"hologram": {"depth": 3}})),
        stop("pause_turn"),
        metadata(),
    ])
    .1
    .unwrap();
    let wanted = [
        r#"{"toolUse":{"input":{"q":1},"name":"nova_grounding","toolUseId":"s","type":"server_tool_use"}}"#,
        r#"{"toolResult":{"content":[{"text":"found"}],"status":"success","toolUseId":"s"}}"#,
        r#"{"hologram":{"depth":3}}"#,
    ];
    assert_eq!(response.content, wanted.map(opaque));
}

#[test]
fn exceptions_have_their_classes() {
    use ModelErrorClass as C;
    for (name, payload, class, message) in [
        (
            "throttlingException",
            json!({"message": "Too many requests"}),
            C::RateLimit,
            "Too many requests",
        ),
        ("validationException", json!({"message": "No."}), C::Invalid, "No."),
        (
            "validationException",
            json!({"message": "Input is too long for requested model."}),
            C::Context,
            "Input is too long for requested model.",
        ),
        (
            "serviceUnavailableException",
            json!({"message": "Later."}),
            C::Overload,
            "Later.",
        ),
        (
            "internalServerException",
            json!({}),
            C::Server,
            "internalServerException",
        ),
        ("accessDeniedException", json!({"message": "No."}), C::Auth, "No."),
        (
            "modelTimeoutException",
            json!({"message": "Slow."}),
            C::Timeout,
            "Slow.",
        ),
        (
            "modelStreamErrorException",
            json!({"message": "It broke.", "originalStatusCode": 500, "originalMessage": "why"}),
            C::Server,
            "It broke.: why",
        ),
    ] {
        let bytes = [event(&text_delta(0, "a")), exception(name, &payload)].concat();
        let (events, end) = read(&bytes);
        assert_eq!(events.len(), 1, "{name}");
        let error = end.unwrap_err();
        assert_eq!((error.class, error.message.as_str()), (class, message), "{name}");
        assert!(error.body.unwrap().contains(name));
    }
    let headers = [
        (":message-type", "error"),
        (":error-code", "InternalError"),
        (":error-message", "An error"),
    ];
    let outcome = read(&frame(&headers, ""));
    assert_eq!(error(outcome), (C::Server, "An error".to_owned()));
}

#[test]
fn what_is_no_answer_is_an_error() {
    use ModelErrorClass as C;
    for (body, class, message) in [
        (
            json!({"message": "throttled, too many requests"}),
            C::RateLimit,
            "throttled, too many requests",
        ),
        (json!({"x": 1}), C::Protocol, "the response has no message"),
        (json!("hello"), C::Protocol, "the response is not a JSON object"),
        (
            whole(&[json!({"toolUse": {"toolUseId": "a"}})], "tool_use"),
            C::Protocol,
            "a tool call has no name",
        ),
    ] {
        assert_eq!(error(plain(&body)), (class, message.to_owned()), "{body}");
    }
    let stray = stream(&[delta(0, &json!({"toolUse": {"input": "{}"}}))]);
    assert_eq!(error(stray).1, "a piece of a tool call belongs to no call");
    let headers = [(":message-type", "event"), (":event-type", "contentBlockDelta")];
    for data in ["[1]", "", "[DONE]"] {
        let outcome = read(&frame(&headers, data));
        assert_eq!(
            error(outcome).1,
            "an event of the stream is not a JSON object",
            "{data:?}"
        );
    }
    let unknown = stream(&[json!({"error": {"message": "no exception"}})]);
    assert_eq!(error(unknown).0, C::Truncated);
    let sse = read(b"data: {}\n\n");
    assert_eq!(error(sse).0, C::Protocol);
}

#[test]
fn each_damaged_byte_of_a_message_is_found() {
    let first = event(&text_delta(0, "hello"));
    let bytes = [first.clone(), stream_bytes(&[stop("end_turn"), metadata()])].concat();
    for position in 0..first.len() {
        let mut damaged = bytes.clone();
        damaged[position] ^= 1;
        let (events, end) = read(&damaged);
        assert_eq!(events, [], "{position}");
        let class = end.unwrap_err().class;
        let is_found = matches!(class, ModelErrorClass::Protocol | ModelErrorClass::Truncated);
        assert!(is_found, "{position}: {class:?}");
    }
}

#[test]
fn an_answer_is_bounded() {
    let caps = CapSettings {
        tool_calls: 2,
        event_bytes: 512,
        response_bytes: 1_024,
        ..CapSettings::default()
    };
    let decode = |bytes: &[u8]| error(decode_with(caps, &[bytes])).1;
    let calls: Vec<_> = (0..3).map(|index| start(index, &tool_use("a"))).collect();
    assert_eq!(decode(&stream_bytes(&calls)), "the response has more than 2 tool calls");
    let long = event(&text_delta(0, &"x".repeat(512)));
    let too_large = "a message of the event stream is larger than 512 bytes";
    assert_eq!(decode(&long), too_large);
    // The length alone is enough: nothing is waited for.
    assert_eq!(decode(&[0x00, 0xFF, 0xFF, 0xFF]), too_large);
    assert_eq!(
        decode(&[0, 0, 0, 15]),
        "the event stream is damaged: a message of 15 bytes"
    );
    let many = stream_bytes(&vec![text_delta(0, "x"); 20]);
    assert_eq!(decode(&many), "the response is larger than 1024 bytes");
    let blocks: Vec<_> = (0..16_385).map(|index| delta(index, &json!({"x": 1}))).collect();
    assert_eq!(error(stream(&blocks)).1, "the response has more than 16384 parts");
    let sources = vec![delta(0, &json!({"citation": 1})); 16_385];
    assert_eq!(error(stream(&sources)).1, "the response has more than 16384 parts");
    let deep = format!("{{\"x\":{}1{}}}", "[".repeat(200_000), "]".repeat(200_000));
    let deep = format!("{{\"output\":{{\"message\":{{\"content\":[{deep}]}}}},\"stopReason\":\"max_tokens\"}}");
    assert!(read(deep.as_bytes()).1.is_ok());
}
