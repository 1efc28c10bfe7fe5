//! The worst that a provider can send: every decoder reads it, as a stream and as one body, in
//! bounded time and on a small stack.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use models::anthropic::MessagesDecoder;
use models::bedrock::ConverseDecoder;
use models::gemini::GeminiDecoder;
use models::openai_chat::ChatDecoder;
use models::openai_responses::ResponsesDecoder;
use models::{CapSettings, Decoder};
use test_support::small_frames::of_aws;
use values::ids::UuidV7Source;

/// Less than any thread of the service has.
const STACK_BYTES: usize = 512 << 10;
/// What each answer may take on a slow machine; quadratic work would take hours.
const LONGEST: Duration = Duration::from_secs(30);

/// Makes the decoder of an answer that is a stream or one body.
pub(super) type Make = fn(Option<&str>, CapSettings) -> Box<dyn Decoder>;

pub(super) const DECODERS: [(&str, Make); 5] = [
    ("chat", |kind, caps| {
        let decoder = ChatDecoder::new("p", kind, caps, Arc::new(UuidV7Source));
        Box::new(decoder.splitting_think_tags())
    }),
    ("messages", |kind, caps| {
        Box::new(MessagesDecoder::new("p", kind, caps, Arc::new(UuidV7Source)))
    }),
    ("responses", |kind, caps| {
        Box::new(ResponsesDecoder::new("p", kind, caps, Arc::new(UuidV7Source)))
    }),
    ("gemini", |kind, caps| {
        Box::new(GeminiDecoder::new("p", kind, caps, Arc::new(UuidV7Source)))
    }),
    // Its first byte tells the form of an answer.
    ("converse", |_, caps| {
        Box::new(ConverseDecoder::of_aws("p", caps, Arc::new(UuidV7Source)))
    }),
];

/// Where the decoder of Gemini looks inside.
const IN_GEMINI: &[(&str, &str)] = &[
    (r#"{"candidates":"#, "}"),
    (r#"{"usageMetadata":"#, "}"),
    (r#"{"promptFeedback":"#, "}"),
    (r#"{"candidates":[{"content":"#, "}]}"),
    (r#"{"candidates":[{"content":{"parts":"#, "}}]}"),
    (r#"{"candidates":[{"content":{"parts":[{"text":"#, "}]}}]}"),
    (r#"{"candidates":[{"content":{"parts":[{"executableCode":"#, "}]}}]}"),
    (
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":"#,
        r#"}}]},"finishReason":"STOP"}]}"#,
    ),
    (r#"{"candidates":[{"citationMetadata":{"citations":"#, "}}]}"),
    (r#"{"candidates":[{"groundingMetadata":"#, "}]}"),
    (r#"{"candidates":[{"groundingMetadata":{"webSearchQueries":"#, "}}]}"),
    (r#"{"candidates":[{"urlContextMetadata":{"urlMetadata":"#, "}}]}"),
];

/// Where the decoder of Converse looks inside, in one body.
const IN_CONVERSE: &[(&str, &str)] = &[
    (r#"{"output":"#, "}"),
    (r#"{"output":{"message":{"role":"assistant","content":"#, "}}}"),
    (
        r#"{"output":{"message":{"role":"assistant","content":[{"text":"#,
        r#"}]}},"stopReason":"end_turn"}"#,
    ),
    (
        r#"{"output":{"message":{"role":"assistant","content":[{"toolUse":{"name":"f","input":"#,
        r#"}}]}},"stopReason":"tool_use"}"#,
    ),
    (
        r#"{"output":{"message":{"role":"assistant","content":[{"reasoningContent":"#,
        "}]}}}",
    ),
];

/// Returns what surrounds a value of each protocol: the places where a decoder looks inside.
fn positions(name: &str) -> Vec<(&'static str, &'static str)> {
    let everywhere = [
        ("", ""),
        (r#"{"a":"#, "}"),
        (r#"{"usage":"#, "}"),
        (r#"{"error":"#, "}"),
    ];
    let of_protocol: &[_] = match name {
        "chat" => &[
            (r#"{"choices":"#, "}"),
            (r#"{"choices":[{"index":0,"delta":"#, r#","finish_reason":"stop"}]}"#),
            (r#"{"choices":[{"index":0,"delta":{"content":"#, "}}]}"),
            (r#"{"choices":[{"index":0,"delta":{"tool_calls":"#, "}}]}"),
            (
                r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"name":"f","arguments":"#,
                "}}]}}]}",
            ),
            (r#"{"choices":[{"index":0,"delta":{"reasoning_details":"#, "}}]}"),
            (
                r#"{"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"t","x":"#,
                "}]}}]}",
            ),
            (
                r#"{"choices":[{"index":0,"delta":{"content":[{"type":"thinking","thinking":"#,
                "}]}}]}",
            ),
            (r#"{"choices":[{"index":0,"message":{"executed_tools":"#, "}}]}"),
        ],
        "messages" => &[
            (r#"{"type":"message","content":"#, "}"),
            (r#"{"type":"message","content":[{"type":"x","y":"#, "}]}"),
            (
                r#"{"type":"message","content":[{"type":"tool_use","name":"f","input":"#,
                "}]}",
            ),
            (r#"{"type":"content_block_start","index":0,"content_block":"#, "}"),
            (r#"{"type":"content_block_delta","delta":"#, "}"),
            (r#"{"type":"content_block_delta","delta":{"type":"x_delta","y":"#, "}}"),
            (r#"{"type":"message_delta","usage":{"iterations":"#, "}}"),
        ],
        "gemini" => IN_GEMINI,
        "converse" => IN_CONVERSE,
        _ => &[
            (r#"{"object":"response","output":"#, "}"),
            (r#"{"type":"response.completed","response":{"output":"#, "}}"),
            (r#"{"type":"response.output_item.done","item":"#, "}"),
            (
                r#"{"type":"response.output_item.done","item":{"type":"message","content":"#,
                "}}",
            ),
            (
                r#"{"type":"response.output_item.done","item":{"type":"reasoning","summary":"#,
                "}}",
            ),
            (
                r#"{"type":"response.output_item.done","item":{"type":"function_call","name":"f","arguments":"#,
                "}}",
            ),
            (r#"{"type":"response.output_text.delta","delta":"#, "}"),
            (
                r#"{"type":"response.content_part.done","part":{"type":"output_text","annotations":"#,
                "}}",
            ),
        ],
    };
    everywhere.into_iter().chain(of_protocol.iter().copied()).collect()
}

/// Returns values that are nested, long or many.
fn values() -> Vec<String> {
    let many = |item: &str, count: usize| vec![item; count].join(",");
    vec![
        "[".repeat(25_000) + &"]".repeat(25_000),
        "{\"a\":".repeat(25_000) + "0" + &"}".repeat(25_000),
        "[".repeat(75_000),
        format!("[{}]", many("0", 50_000)),
        format!("[{}]", many("{}", 25_000)),
        format!("[{}]", many(r#"{"type":"text","text":"x"}"#, 5_000)),
        format!("{{{}}}", many("\"\":0", 25_000)),
        format!("\"{}\"", "\\u0000".repeat(12_500)),
        "9".repeat(75_000),
        "1e999999999".to_owned(),
    ]
}

/// Decodes a response, and ignores the result.
fn decode(make: Make, kind: Option<&str>, bytes: &[u8]) {
    decode_within(CapSettings::default(), make, kind, bytes);
}

/// Decodes a response within limits, and ignores the result.
pub(super) fn decode_within(caps: CapSettings, make: Make, kind: Option<&str>, bytes: &[u8]) {
    let mut decoder = make(kind, caps);
    let mut events = Vec::new();
    for piece in bytes.chunks(16 << 10) {
        if decoder.push(piece, &mut events).is_err() {
            return;
        }
        events.clear();
    }
    let _ = decoder.finish(&mut events);
}

fn on_a_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(STACK_BYTES).spawn(work).unwrap();
    thread.join().unwrap();
}

#[test]
fn nested_long_and_many_values_are_bounded_wherever_they_stand() {
    for (name, make) in DECODERS {
        on_a_small_stack(move || {
            for (before, after) in positions(name) {
                for value in values() {
                    let body = format!("{before}{value}{after}");
                    let start = Instant::now();
                    decode(make, Some("application/json"), body.as_bytes());
                    decode(
                        make,
                        Some("text/event-stream"),
                        format!("data: {body}\n\ndata: {body}\n\n").as_bytes(),
                    );
                    let shown = &value[..value.len().min(40)];
                    assert!(start.elapsed() < LONGEST, "{name} {before} {shown}");
                }
            }
        });
    }
}

#[test]
fn nested_long_and_many_values_are_bounded_in_events_of_aws() {
    const EVENTS: [(&str, &str, &str); 9] = [
        ("messageStart", "", ""),
        ("contentBlockStart", r#"{"contentBlockIndex":0,"start":"#, "}"),
        (
            "contentBlockStart",
            r#"{"contentBlockIndex":0,"start":{"toolUse":"#,
            "}}",
        ),
        ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":"#, "}"),
        ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"#, "}}"),
        (
            "contentBlockDelta",
            r#"{"contentBlockIndex":0,"delta":{"reasoningContent":"#,
            "}}",
        ),
        ("contentBlockStop", r#"{"contentBlockIndex":"#, "}"),
        ("messageStop", r#"{"stopReason":"#, "}"),
        ("metadata", r#"{"usage":"#, "}"),
    ];
    let (_, converse) = DECODERS[4];
    on_a_small_stack(move || {
        for (name, before, after) in EVENTS {
            for value in values() {
                let event = of_aws(name, &format!("{before}{value}{after}"));
                let start = Instant::now();
                decode(converse, None, &event.repeat(2));
                assert!(
                    start.elapsed() < LONGEST,
                    "{name} {before} {}",
                    &value[..value.len().min(40)]
                );
            }
        }
    });
}

#[test]
fn pieces_that_do_not_fit_a_large_block_take_linear_time() {
    let details = |detail: &str| {
        format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"reasoning_details\":[{detail}]}}}}]}}\n\n")
    };
    let blocks =
        |block: &str| format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":[{block}]}}}}]}}\n\n");
    let large = "x".repeat(4 << 20);
    let deep = "[".repeat(200) + &"]".repeat(200);
    let mut stream = details(&format!(r#"{{"type":"t","a":"{large}"}}"#));
    stream += &details(&format!(r#"{{"type":"t","b":{deep}}}"#)).repeat(10_000);
    let mut words = blocks(&format!(r#"{{"type":"thinking","a":"{large}"}}"#));
    words += &blocks(&format!(r#"{{"type":"thinking","b":{deep}}}"#)).repeat(10_000);
    let (_, chat) = DECODERS[0];
    for text in [stream, words] {
        on_a_small_stack(move || {
            let start = Instant::now();
            decode(chat, Some("text/event-stream"), text.as_bytes());
            assert!(start.elapsed() < LONGEST);
        });
    }
}

#[test]
fn blanks_before_a_response_take_linear_time() {
    const PIECE: [u8; 1 << 10] = [b' '; 1 << 10];
    let (_, chat) = DECODERS[0];
    let mut decoder = chat(None, CapSettings::default());
    let start = Instant::now();
    for _ in 0..32 << 10 {
        decoder.push(&PIECE, &mut Vec::new()).unwrap();
    }
    assert!(start.elapsed() < LONGEST);
}
