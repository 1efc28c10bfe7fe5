//! The rules that the decoder of chat completions keeps, one test each.

use agent::ports::{ModelErrorClass, ModelEvent};
use agent::state::FinishReason;
use models::CapSettings;
use test_support::wires;
use values::message::{ContentPart, ImagePart};
use values::usage::Usage;

use crate::support::{Decoded, at_url, base64, cited, decode, refusal, said};

pub(super) fn decode_with(content_type: Option<&str>, caps: CapSettings, chunks: &[&[u8]]) -> Decoded {
    decode(wires::decoder(&wires::chat_settings("p"), content_type, caps), chunks)
}

/// Decodes an answer that comes in one piece.
pub(super) fn read(bytes: &[u8]) -> Decoded {
    decode_with(None, CapSettings::default(), &[bytes])
}

/// Decodes a stream of the given data lines.
pub(crate) fn stream(data: &[&str]) -> Decoded {
    let text = data
        .iter()
        .flat_map(|data| ["data: ", *data, "\n\n"])
        .collect::<String>();
    decode_with(Some("text/event-stream"), CapSettings::default(), &[text.as_bytes()])
}

fn class(outcome: &Decoded) -> ModelErrorClass {
    outcome.1.as_ref().unwrap_err().class
}

const HELLO: &str = r#"{"choices":[{"index":0,"delta":{"content":"hello"}}]}"#;
const STOP: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
const DONE: &str = "[DONE]";

fn hello() -> Vec<ModelEvent> {
    vec![said("hello")]
}

#[test]
fn an_end_that_was_announced_is_enough_and_another_is_none() {
    for data in [&[HELLO, STOP, DONE][..], &[HELLO, STOP], &[HELLO, DONE]] {
        let (events, end) = stream(data);
        assert_eq!((events, end.unwrap().finish_reason), (hello(), FinishReason::Stop));
    }
    let role = r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
    let nothing = r#"{"choices":[{"index":0,"delta":{}}]}"#;
    for data in [
        &[HELLO][..],
        &[DONE],
        &[],
        &[role, DONE],
        &[role, nothing, DONE],
        &[nothing, DONE],
    ] {
        assert_eq!(class(&stream(data)), ModelErrorClass::Truncated, "{data:?}");
    }
    let call =
        r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"id":"c","function":{"name":"t","arguments":"{}"}}]}}]}"#;
    assert!(stream(&[role, call, DONE]).1.is_ok(), "a call is an answer");
    for text in [
        "",
        "\n\n",
        ": only a comment\n\n",
        "{\"choices\": [{\"message\": {\"content\": \"hal",
        "data: {\"choi",
    ] {
        let outcome = read(text.as_bytes());
        assert_eq!(class(&outcome), ModelErrorClass::Truncated, "{text:?}");
    }
}

#[test]
fn a_last_event_without_its_blank_line_counts() {
    let text = format!("data: {HELLO}\n\ndata: {STOP}");
    let (_, end) = read(text.as_bytes());
    assert_eq!(end.unwrap().finish_reason, FinishReason::Stop);
}

#[test]
fn an_error_in_mid_stream_wins_over_a_finish() {
    let error =
        r#"{"error":{"code":502,"message":"upstream"},"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#;
    let choice =
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"error","error":{"code":502,"message":"upstream"}}]}"#;
    let flat = r#"{"object":"error","message":"upstream","code":502}"#;
    let list = r#"[{"error":{"code":502,"message":"upstream"}}]"#;
    for data in [
        &[HELLO, error][..],
        &[HELLO, STOP, error, DONE],
        &[HELLO, choice],
        &[HELLO, flat],
        &[HELLO, list],
    ] {
        let (events, end) = stream(data);
        let error = end.unwrap_err();
        assert_eq!(events, hello());
        assert_eq!(
            (error.class, error.status, error.message.as_str()),
            (ModelErrorClass::Server, Some(502), "upstream")
        );
    }
    let text = format!("data: {HELLO}\n\nevent: error\ndata: {{\"message\": \"overloaded\"}}\n\ndata: {STOP}\n\n");
    let outcome = read(text.as_bytes());
    assert_eq!(class(&outcome), ModelErrorClass::Overload);
    let nothing = r#"{"error":null,"choices":[{"index":0,"delta":{"content":"hello"}}]}"#;
    assert!(stream(&[nothing, STOP]).1.is_ok(), "null is no error");
}

#[test]
fn either_form_is_read_despite_the_declared_type() {
    let plain = r#"{"choices":[{"index":0,"message":{"content":"hello"},"finish_reason":"stop"}]}"#;
    let events = format!("\u{FEFF}: hi\n\ndata: {HELLO}\n\ndata: {STOP}\n\ndata: [DONE]\n\n");
    let plain_with_mark = format!("\u{FEFF} \n{plain}");
    for content_type in [
        None,
        Some("application/json"),
        Some("text/event-stream; charset=utf-8"),
        Some("text/plain"),
    ] {
        for text in [plain, &events, &plain_with_mark] {
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            let (got, end) = decode_with(content_type, CapSettings::default(), &bytes);
            let got = format!("{got:?}");
            assert!(got.contains("hello") && end.is_ok(), "{content_type:?} {text}");
        }
    }
}

#[test]
fn a_body_that_is_no_answer_is_a_protocol_error() {
    for text in [
        "{}",
        "[]",
        "nonsense",
        "<html>",
        r#"{"choices": []}"#,
        r#"{"choices": null}"#,
        r#"{"choices": "no"}"#,
        r#"{"contentType": "application/json", "method": "POST"}"#,
        "data: {}\n\n",
        "data: nonsense\n\n",
        "data: [1]\n\n",
        "data: {\"a\": 1}\n\ndata: [DONE]\n\n",
    ] {
        let outcome = read(text.as_bytes());
        assert_eq!(class(&outcome), ModelErrorClass::Protocol, "{text}");
    }
    assert_eq!(
        class(&read(b"{\"error\": {\"message\": \"m\", \"code\": 429}}")),
        ModelErrorClass::RateLimit
    );
}

#[test]
fn an_unknown_reason_is_a_failure_and_one_other_than_success_stands() {
    let finish = |reason: &str| format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":{reason}}}]}}"#);
    for (reasons, expected) in [
        (&["\"eos\""][..], FinishReason::Stop),
        (&["\"length\"", "null", "\"\""], FinishReason::Length),
        (&["\"stop\"", "\"length\""], FinishReason::Length),
        (&["\"MAX_TOKENS\""], FinishReason::Length),
        (&["\"content_filter\"", "null"], FinishReason::ContentFilter),
        (&["\"null\"", "\"None\"", "\"stop\""], FinishReason::Stop),
    ] {
        let data: Vec<_> = reasons.iter().map(|reason| finish(reason)).collect();
        let data: Vec<_> = [HELLO].into_iter().chain(data.iter().map(String::as_str)).collect();
        assert_eq!(stream(&data).1.unwrap().finish_reason, expected, "{reasons:?}");
    }
    let (events, end) = stream(&[STOP, HELLO]);
    assert_eq!(
        (events, end.unwrap().finish_reason),
        (hello(), FinishReason::Stop),
        "text after the reason counts"
    );
    for reason in [r#"{"type":"error","message":"x"}"#, "7"] {
        let failure = stream(&[HELLO, &finish(reason), DONE]).1.unwrap_err();
        assert_eq!(failure.class, ModelErrorClass::Server, "{reason}");
        assert!(failure.message.ends_with(reason), "{}", failure.message);
    }
    let (events, end) = stream(&[HELLO, &finish("\"error\"")]);
    let failure = end.unwrap_err();
    assert_eq!(
        (events, failure.class, failure.message.as_str()),
        (
            hello(),
            ModelErrorClass::Server,
            "the provider ended its response with error"
        )
    );
}

#[test]
fn usage_is_a_snapshot_wherever_it_stands() {
    let usage =
        |output: u64| format!(r#"{{"choices":[],"usage":{{"prompt_tokens":10,"completion_tokens":{output}}}}}"#);
    let groq = r#"{"choices":[],"x_groq":{"usage":{"prompt_tokens":10,"completion_tokens":9}}}"#;
    let empty = r#"{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0}}"#;
    let expected = |output_tokens: u64| Usage {
        input_tokens: 10,
        output_tokens,
        total_tokens: 10 + output_tokens,
        ..Usage::default()
    };
    let (events, end) = stream(&[&usage(1), HELLO, &usage(5), &usage(5), STOP, groq, empty, DONE]);
    assert_eq!(end.unwrap().usage, expected(9));
    let counts = [expected(1), expected(5), expected(9)].map(ModelEvent::Usage);
    let [one, five, nine] = counts;
    assert_eq!(events, [vec![one], hello(), vec![five, nine]].concat());
}

#[test]
fn reasoning_comes_under_any_name_and_once() {
    for delta in [
        r#"{"reasoning_content":"hm"}"#,
        r#"{"reasoning":"hm"}"#,
        r#"{"reasoning":"hm","reasoning_content":"hm"}"#,
        r#"{"reasoning":"hm","reasoning_details":[{"type":"reasoning.text","text":"hm","index":0}]}"#,
        r#"{"reasoning_details":[{"type":"reasoning.summary","summary":"hm","index":0}]}"#,
        r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]}"#,
        r#"{"content":[{"type":"thinking","thinking":"hm"}]}"#,
    ] {
        let chunk = format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
        let (events, end) = stream(&[&chunk, HELLO, STOP]);
        let reasoning = ModelEvent::ReasoningDelta { text: "hm".to_owned() };
        assert_eq!(events, [vec![reasoning], hello()].concat(), "{delta}");
        let alone = stream(&[&chunk, STOP]).1.unwrap_err();
        assert_eq!(alone.message, "the response has no text and no tool call");
        let words = end.unwrap().content.into_iter().find_map(|part| match part {
            ContentPart::Reasoning(part) => Some(part.text),
            _ => None,
        });
        assert_eq!(words.as_deref(), Some("hm"), "{delta}");
    }
}

#[test]
fn tokens_of_a_stream_are_no_field_that_goes_back() {
    let piece =
        r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"hello","token_id":4616,"tool_calls":null}}]}"#;
    let response = stream(&[piece, STOP, DONE]).1.unwrap();
    assert_eq!(response.provider_fields, None);
}

#[test]
fn pieces_of_reasoning_become_the_fields_that_go_back() {
    let delta = |delta: &str| format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
    let data = [
        delta(
            r#"{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","signature":"","index":0}]}"#,
        ),
        delta(
            r#"{"reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"b","index":0}],"channel":"x"}"#,
        ),
        delta(
            r#"{"reasoning_details":[{"type":"reasoning.text","signature":"S","format":"f","index":0}],"content":""}"#,
        ),
        delta(r#"{"reasoning_details":[{"type":"reasoning.encrypted", "data":"D","index":0}]}"#),
        delta(r#"{"reasoning_details":[{"type":"reasoning.encrypted", "data":"E","index":0}],"mark":{"b": 1}}"#),
        delta(r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"x"}]}]}"#),
        delta(r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"y"}]}]}"#),
        delta(r#"{"content":[{"type":"text","text":"hello"},{"type":"reference","ids":[1 ]}]}"#),
        STOP.to_owned(),
    ];
    let response = stream(&data.each_ref().map(String::as_str)).1.unwrap();
    let fields = response.provider_fields.unwrap();
    let fields: Vec<_> = fields
        .fields
        .iter()
        .map(|(name, raw)| (name.as_str(), raw.as_str()))
        .collect();
    let details = r#"[{"format":"f","index":0,"signature":"S","text":"ab","type":"reasoning.text"},{"type":"reasoning.encrypted", "data":"D","index":0},{"type":"reasoning.encrypted", "data":"E","index":0}]"#;
    assert_eq!(
        fields,
        [
            ("reasoning", "\"ab\""),
            ("reasoning_details", details),
            ("mark", r#"{"b": 1}"#)
        ]
    );
    let opaque = response.content.iter().filter_map(|part| match part {
        ContentPart::Opaque(part) => Some((part.provider.as_str(), part.raw.as_str())),
        _ => None,
    });
    let thinking = r#"{"thinking":[{"text":"xy","type":"text"}],"type":"thinking"}"#;
    assert_eq!(
        opaque.collect::<Vec<_>>(),
        [("p", thinking), ("p", r#"{"type":"reference","ids":[1 ]}"#)]
    );
}

#[test]
fn refusals_and_sources_are_stored() {
    let delta = |delta: &str| format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
    let source = r#"{"type": "url_citation","url_citation":{"url":"https://example.org"}}"#;
    let data = [
        delta(r#"{"content":"see"}"#),
        delta(&format!(r#"{{"annotations":[{source}]}}"#)),
        delta(r#"{"refusal":"I "}"#),
        delta(r#"{"refusal":"won't"}"#),
        STOP.to_owned(),
    ];
    let (events, end) = stream(&data.each_ref().map(String::as_str));
    let refused = |text: &str| ModelEvent::RefusalDelta { text: text.to_owned() };
    assert_eq!(events[1..], [refused("I "), refused("won't")]);
    assert_eq!(end.unwrap().content, [cited("see", &[source]), refusal("I won't")]);
}

#[test]
fn pictures_that_a_model_makes_are_stored() {
    let image = |source| ContentPart::Image(ImagePart { source, detail: None });
    let piece = r#"{"choices": [{"delta": {"content": "Here.", "images": [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, {"image_url": {"url": "https://h/a.png"}}, 7]}}]}"#;
    let last = r#"{"choices": [{"delta": {"images": []}, "finish_reason": "stop"}]}"#;
    let (_, end) = stream(&[&piece.replace('\n', ""), last, "[DONE]"]);
    let inline = base64("image/png", "AAAA");
    let elsewhere = at_url("https://h/a.png");
    assert_eq!(
        end.unwrap().content,
        [ContentPart::text("Here."), image(inline), image(elsewhere)]
    );
}

#[test]
fn answers_and_events_have_a_largest_size() {
    let caps = CapSettings {
        event_bytes: 200,
        response_bytes: 2_000,
        ..CapSettings::default()
    };
    let long = format!("data: {}\n\n", HELLO.replace("hello", &"x".repeat(300)));
    let many = format!("data: {HELLO}\n\n").repeat(100);
    let plain = format!("{{\"a\": \"{}\"", "x".repeat(3_000));
    for (text, expected) in [
        (&long, "a server-sent event is larger than 200 bytes"),
        (&many, "the response is larger than 2000 bytes"),
        (&plain, "the response is larger than 2000 bytes"),
    ] {
        let (_, end) = decode_with(None, caps, &text.as_bytes().chunks(50).collect::<Vec<_>>());
        let error = end.unwrap_err();
        assert_eq!(
            (error.class, error.message.as_str()),
            (ModelErrorClass::Protocol, expected)
        );
    }
}

#[test]
fn bytes_after_the_end_are_ignored() {
    let (events, end) = stream(&[HELLO, STOP, DONE, HELLO, "nonsense"]);
    assert_eq!((events, end.is_ok()), (hello(), true));
}
