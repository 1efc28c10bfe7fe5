//! The rules that the decoder keeps, one test each.

use agent::ports::{ModelErrorClass, ModelEvent};
use agent::state::FinishReason;
use models::CapSettings;
use serde_json::{Value, json};
use test_support::gemini_chunks::{chunk, last, stream_text};
use values::message::{ContentPart, ToolCall};

use super::support::{decode_with, plain, read, signed, stream};
use crate::support::{cited, error, generated_id, opaque, refusal, said, thought, usage};

fn text(text: &str) -> Value {
    json!({"text": text})
}

#[test]
fn an_end_without_a_reason_is_none() {
    let hello = chunk(&[text("hello")]);
    for (end, is_whole) in [
        (vec![], false),
        (vec![last(&[], "STOP")], true),
        (vec![json!({"usageMetadata": {}})], false),
    ] {
        let outcome = stream(&[&[hello.clone()][..], &end].concat());
        if is_whole {
            let response = outcome.1.unwrap();
            assert_eq!(
                (response.content, response.finish_reason),
                (vec![ContentPart::text("hello")], FinishReason::Stop)
            );
        } else {
            assert_eq!(error(outcome).0, ModelErrorClass::Truncated);
        }
    }
    for text in [
        "",
        ": comment\n\n",
        "{\"candidates\": [",
        "[{\"candidates\": []",
        "data: {\"cand",
        "[]",
    ] {
        let outcome = read(text.as_bytes());
        assert_eq!(error(outcome).0, ModelErrorClass::Truncated, "{text:?}");
    }
    let unended = format!("data: {}", last(&[text("hello")], "STOP"));
    let outcome = read(unended.as_bytes());
    assert_eq!(
        outcome.1.unwrap().finish_reason,
        FinishReason::Stop,
        "no last blank line"
    );
}

#[test]
fn a_list_of_chunks_is_a_stream() {
    let whole = json!([chunk(&[text("hel")]), last(&[text("lo")], "STOP")]);
    let (events, response) = plain(&whole);
    assert_eq!(events[..2], [said("hel"), said("lo")]);
    assert_eq!(response.unwrap().content, [ContentPart::text("hello")]);
    assert_eq!(error(plain(&json!([chunk(&[])]))).0, ModelErrorClass::Truncated);
    let broken =
        json!([chunk(&[json!({"text": "a"})]), {"error": {"code": 503, "message": "m", "status": "UNAVAILABLE"}}]);
    assert_eq!(error(plain(&broken)), (ModelErrorClass::Overload, "m".to_owned()));
}

#[test]
fn reasons_for_the_end_have_their_neutral_names() {
    use FinishReason as R;
    let call = json!({"functionCall": {"name": "t", "args": {}}});
    for (reason, with_words, with_call) in [
        (json!("STOP"), R::Stop, R::ToolCalls),
        (json!("MAX_TOKENS"), R::Length, R::Length),
        (json!("SAFETY"), R::ContentFilter, R::ContentFilter),
        (json!("RECITATION"), R::ContentFilter, R::ContentFilter),
        (json!("PROHIBITED_CONTENT"), R::ContentFilter, R::ContentFilter),
        (json!("SPII"), R::ContentFilter, R::ContentFilter),
        (json!("FINISH_REASON_UNSPECIFIED"), R::Stop, R::ToolCalls),
        (Value::Null, R::Stop, R::ToolCalls),
    ] {
        for (part, expected) in [(text("hi"), &with_words), (call.clone(), &with_call)] {
            let mut body = chunk(&[part]);
            body["candidates"][0]["finishReason"] = reason.clone();
            assert_eq!(&plain(&body).1.unwrap().finish_reason, expected, "{body}");
        }
    }
}

#[test]
fn a_withheld_completion_has_a_reason() {
    let candidate = |fields: Value| json!({"candidates": [fields]});
    for (body, reason, content) in [
        (
            candidate(json!({"finishReason": "SAFETY", "safetyRatings": [{"blocked": true}]})),
            FinishReason::ContentFilter,
            vec![refusal("The provider ended the response: SAFETY")],
        ),
        (
            candidate(json!({"content": {}, "finishReason": "SPII", "finishMessage": "Something."})),
            FinishReason::ContentFilter,
            vec![refusal("The provider ended the response: SPII: Something.")],
        ),
        (
            json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 7}}),
            FinishReason::ContentFilter,
            vec![refusal("The provider blocked the prompt: PROHIBITED_CONTENT")],
        ),
        (
            json!({"promptFeedback": {"blockReason": "SAFETY", "blockReasonMessage": "No."}, "candidates": []}),
            FinishReason::ContentFilter,
            vec![refusal("The provider blocked the prompt: SAFETY: No.")],
        ),
        (
            candidate(json!({"content": {"role": "model"}, "finishReason": "MAX_TOKENS"})),
            FinishReason::Length,
            vec![],
        ),
        (
            candidate(json!({"content": {"parts": [{"text": "Hm", "thought": true}]}, "finishReason": "MAX_TOKENS"})),
            FinishReason::Length,
            vec![thought("Hm", None)],
        ),
        (
            candidate(json!({"content": {"parts": [{"text": "So far"}]}, "finishReason": "SAFETY"})),
            FinishReason::ContentFilter,
            vec![ContentPart::text("So far")],
        ),
    ] {
        for outcome in [plain(&body), stream(std::slice::from_ref(&body))] {
            let response = outcome.1.unwrap();
            assert_eq!(
                (response.finish_reason, response.content),
                (reason.clone(), content.clone()),
                "{body}"
            );
            let reported = outcome
                .0
                .iter()
                .any(|event| matches!(event, ModelEvent::RefusalDelta { .. }));
            assert_eq!(
                reported,
                matches!(content.first(), Some(ContentPart::Refusal { .. })),
                "{body}"
            );
        }
    }
}

#[test]
fn a_call_that_the_model_could_not_write_is_no_answer() {
    for reason in [
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "OTHER",
        "TOO_MANY_TOOL_CALLS",
        "LANGUAGE",
    ] {
        let mut body = last(&[], reason);
        body["candidates"][0]["finishMessage"] = Value::from("Malformed function call: print(");
        let message = format!("the provider ended its response with {reason}: Malformed function call: print(");
        let (events, end) = stream(std::slice::from_ref(&body));
        let is_count = |event: &ModelEvent| matches!(event, ModelEvent::Usage(usage) if usage.total_tokens == 5);
        assert!(
            events.len() == 1 && events.iter().all(is_count),
            "nothing else is told, so that the call can be repeated: {events:?}"
        );
        assert_eq!(end.unwrap_err().message, message);
        assert_eq!(error(plain(&body)), (ModelErrorClass::Server, message));
        let with_call = last(&[json!({"functionCall": {"name": "t"}})], reason);
        assert!(plain(&with_call).1.is_err());
    }
}

#[test]
fn words_and_thoughts_are_joined_and_signed_parts_stay_by_themselves() {
    let part = |text: &str, thought: bool, signature: Option<&str>| json!({"text": text, "thought": thought, "thoughtSignature": signature});
    let chunks = [
        chunk(&[part("I ", true, None)]),
        chunk(&[part("think", true, None), part("Hel", false, None)]),
        chunk(&[part("lo", false, None)]),
        chunk(&[part(" there", false, Some("a+/="))]),
        chunk(&[part(", you", false, None)]),
        chunk(&[part("!", false, None), part("", false, None)]),
        chunk(&[json!({"thoughtSignature": "b"})]),
        chunk(&[json!({"thought": true, "thoughtSignature": "c"}), json!({})]),
        last(&[part("", false, Some("d"))], "STOP"),
    ];
    let response = stream(&chunks).1.unwrap();
    let wanted = [
        thought("I think", None),
        ContentPart::text("Hello"),
        signed(" there", "a+/="),
        ContentPart::text(", you!"),
        signed("", "b"),
        thought("", Some("c")),
        signed("", "d"),
    ];
    assert_eq!(response.content, wanted);
    assert_eq!(response.provider_fields.unwrap().provider, "p");
}

#[test]
fn calls_have_their_own_ids_or_get_one() {
    let call = |id: Value, args: Value| json!({"functionCall": {"id": id, "name": "t", "args": args}});
    let mut first = call(json!("a"), json!({"x": 1}));
    first["thoughtSignature"] = json!("c2ln");
    let body = last(
        &[
            first,
            call(json!("a"), json!({})),
            call(Value::Null, Value::Null),
            call(json!(""), json!([1])),
        ],
        "STOP",
    );
    let (events, response) = stream(&[body]);
    let expected = [
        ("a".to_owned(), "{\"x\":1}", Some("{\"thoughtSignature\":\"c2ln\"}")),
        (generated_id(1), "{}", None),
        (generated_id(2), "{}", None),
        (generated_id(3), "[1]", None),
    ];
    let calls = expected.map(|(id, arguments, signature)| ToolCall {
        id,
        name: "t".to_owned(),
        arguments: arguments.to_owned(),
        signature: signature.map(str::to_owned),
    });
    let started = calls.iter().enumerate().flat_map(|(index, call)| {
        let (id, name, arguments) = (call.id.clone(), call.name.clone(), call.arguments.clone());
        [
            ModelEvent::ToolCallStarted { index, id, name },
            ModelEvent::ToolCallDelta { index, arguments },
        ]
    });
    assert_eq!(events[..8], started.collect::<Vec<_>>());
    assert_eq!(response.unwrap().content, calls.map(ContentPart::ToolCall));
}

#[test]
fn the_text_of_arguments_is_stored_verbatim() {
    let text = r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"t","args":{"b": 1.50, "a":12345678901234567890123,"b":"\u00e9"}}}]},"finishReason":"STOP"}]}"#;
    let response = read(text.as_bytes()).1.unwrap();
    let ContentPart::ToolCall(call) = &response.content[0] else {
        panic!("{response:?}")
    };
    assert_eq!(
        call.arguments,
        r#"{"b": 1.50, "a":12345678901234567890123,"b":"\u00e9"}"#
    );
}

#[test]
fn parts_of_other_kinds_are_stored_verbatim() {
    let parts = [
        r#"{"executableCode": {"language": "PYTHON", "code": "print(1e2)"}, "thoughtSignature": "x"}"#,
        r#"{"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "100.0"}}"#,
        r#"{"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thought": true}"#,
        r#"{"fileData":{"fileUri":"u"}}"#,
        r#"{"toolCall": {"id": "1", "toolType": "GOOGLE_SEARCH_WEB"}}"#,
        r#"{"functionResponse": {"name": "t", "response": {}}}"#,
        r#"{"from_the_future": [1e2]}"#,
    ];
    let text = format!(
        "{{\"candidates\":[{{\"content\":{{\"parts\":[{}]}},\"finishReason\":\"STOP\"}}]}}",
        parts.join(",")
    );
    let response = read(text.as_bytes()).1.unwrap();
    assert_eq!(response.content, parts.map(|raw| opaque("p", raw)));
}

#[test]
fn sources_stand_at_the_last_words() {
    let grounding = json!({"webSearchQueries": ["q"], "groundingChunks": [{"web": {"uri": "u"}}]});
    let source = json!({"startIndex": 1, "endIndex": 2, "uri": "https://h"});
    let with = |mut chunk: Value| {
        let candidate = &mut chunk["candidates"][0];
        candidate["groundingMetadata"] = grounding.clone();
        candidate["citationMetadata"] = json!({"citationSources": [source]});
        candidate["urlContextMetadata"] = json!({});
        chunk
    };
    let cited = |text: &str| cited(text, &[&source, &grounding]);
    let code = json!({"executableCode": {}});
    let response = stream(&[chunk(&[text("a"), code.clone(), text("b")]), with(last(&[], "STOP"))])
        .1
        .unwrap();
    assert_eq!(response.content[2], cited("b"));
    let response = plain(&with(last(&[code], "MAX_TOKENS"))).1.unwrap();
    assert_eq!(response.content[1], cited(""));
}

#[test]
fn usage_is_emitted_when_it_changes() {
    let counted = |mut chunk: Value, input: u64, output: u64| {
        chunk["usageMetadata"] = json!({"promptTokenCount": input, "candidatesTokenCount": output});
        chunk["modelVersion"] = json!("gemini-x");
        chunk["responseId"] = json!("r1");
        chunk
    };
    let (events, response) = stream(&[
        counted(json!({}), 9, 0),
        counted(chunk(&[text("a")]), 9, 1),
        counted(chunk(&[text("b")]), 9, 1),
        counted(last(&[], "STOP"), 7, 2),
        json!({"usageMetadata": {"promptTokenCount": 8, "candidatesTokenCount": 2}}),
    ]);
    let wanted = [
        ModelEvent::Usage(usage(9, 0)),
        said("a"),
        ModelEvent::Usage(usage(9, 1)),
        said("b"),
        ModelEvent::Usage(usage(7, 2)),
        ModelEvent::Usage(usage(8, 2)),
    ];
    assert_eq!(events, wanted);
    let response = response.unwrap();
    assert_eq!(response.usage, usage(8, 2));
    let named = (response.model.as_deref(), response.response_id.as_deref());
    assert_eq!(named, (Some("gemini-x"), Some("r1")));
}

#[test]
fn all_candidates_are_read_and_noise_changes_nothing() {
    let mut two = last(&[text("a")], "STOP");
    let call = json!({"functionCall": {"name": "t", "args": {}}});
    let other = json!({"index": 1, "content": {"parts": [call]}, "finishReason": "STOP"});
    two["candidates"] = json!([other, null, two["candidates"][0]]);
    let text = format!(": comment\n\nevent: x\ndata: {two}\n\ndata: [DONE]\n\n");
    let response = read(text.as_bytes()).1.unwrap();
    let [ContentPart::ToolCall(call), said] = response.content.as_slice() else {
        panic!("{:?}", response.content);
    };
    assert_eq!((call.name.as_str(), said), ("t", &ContentPart::text("a")));
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    two["candidates"][0]["content"]["parts"] = json!([{"text": "b"}]);
    assert_eq!(error(plain(&two)).1, "the response has several choices with text");
}

#[test]
fn what_is_no_answer_is_an_error() {
    use ModelErrorClass as C;
    for (body, class, message) in [
        (
            json!({"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}),
            C::RateLimit,
            "slow down",
        ),
        (
            json!([{"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}}]),
            C::Invalid,
            "bad",
        ),
        (json!("hello"), C::Protocol, "the response is not a JSON object"),
        (json!({"x": 1}), C::Protocol, "the response has no candidate"),
        (
            last(&[json!({"functionCall": {"args": {}}})], "STOP"),
            C::Protocol,
            "a tool call has no name",
        ),
    ] {
        assert_eq!(error(plain(&body)), (class, message.to_owned()), "{body}");
    }
    let late = json!({"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}});
    let (events, end) = stream(&[chunk(&[text("hel")]), late]);
    assert_eq!(events.len(), 1);
    assert_eq!(end.unwrap_err().class, C::Overload);
    assert_eq!(error(stream(&[json!({"x": 1})])).1, "the stream has no completion");
    let text = format!("event: error\ndata: {}\n\n", json!({"x": 1}));
    let named = read(text.as_bytes());
    assert_eq!(error(named).1, "the stream has no completion");
}

#[test]
fn an_answer_is_bounded() {
    let call = json!({"functionCall": {"name": "t"}});
    let code = json!({"a": 1});
    let caps = CapSettings {
        tool_calls: 2,
        ..CapSettings::default()
    };
    let decode = |chunks: &[Value]| decode_with(None, caps, &[stream_text(chunks).as_bytes()]);
    assert_eq!(
        error(decode(&[chunk(&vec![call; 3])])).1,
        "the response has more than 2 tool calls"
    );
    let many = vec![code; 9_000];
    assert_eq!(
        error(decode(&[chunk(&many), chunk(&many)])).1,
        "the response has more than 16384 parts"
    );
    let mut cited = chunk(&[]);
    cited["candidates"][0]["citationMetadata"]["citationSources"] = (0..20_000).collect();
    assert_eq!(error(decode(&[cited])).1, "the response has more than 16384 parts");
    // What is joined does not count.
    let words: Vec<_> = (0..20_000).map(|_| text("x")).collect();
    let response = decode(&[chunk(&words), last(&[], "STOP")]).1.unwrap();
    assert_eq!(response.content, [ContentPart::text("x".repeat(20_000))]);
    let small = CapSettings {
        event_bytes: 64,
        response_bytes: 256,
        ..CapSettings::default()
    };
    let long = stream_text(&[chunk(&[text(&"x".repeat(99))])]);
    assert_eq!(
        error(decode_with(None, small, &[long.as_bytes()])).0,
        ModelErrorClass::Protocol
    );
    let deep = format!(
        "{{\"candidates\":[{{\"content\":{{\"parts\":[{{\"x\":{}1{}}},{{\"text\":\"a\"}}]}},\"finishReason\":\"STOP\"}}]}}",
        "[".repeat(200_000),
        "]".repeat(200_000)
    );
    assert!(read(deep.as_bytes()).1.is_ok());
}

#[test]
fn tools_that_the_provider_executes_are_counted_once() {
    let code = json!({"executableCode": {"language": "PYTHON", "code": "1"}});
    let outcome = json!({"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}});
    let with = |mut chunk: Value, queries: Value| {
        let candidate = &mut chunk["candidates"][0];
        candidate["groundingMetadata"] = json!({"webSearchQueries": queries});
        candidate["urlContextMetadata"] = json!({"urlMetadata": [{"retrievedUrl": "https://h"}]});
        chunk
    };
    let chunks = [
        chunk(&[code.clone(), outcome.clone(), code, outcome]),
        with(chunk(&[text("a")]), json!(["q"])),
        with(last(&[text("b")], "STOP"), json!(["q", "r"])),
    ];
    let counts = json!({"code_execution": 2, "google_search": 2, "url_context": 1});
    assert_eq!(json!(stream(&chunks).1.unwrap().provider_tool_calls), counts);
    let without = plain(&last(&[text("a")], "STOP")).1.unwrap();
    assert_eq!(json!(without.provider_tool_calls), json!({}));
}
