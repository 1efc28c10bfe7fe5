//! The worst that a provider can send: every decoder reads it, as a stream and as one body, in
//! bounded time and on a small stack.

use std::thread;
use std::time::{Duration, Instant};

use models::CapSettings;
use test_support::samples::{ALL, DECODERS, Make, Samples};
use test_support::small_frames::of_aws;

/// Less than any thread of the service has.
const STACK_BYTES: usize = 512 << 10;
/// The longest time of each response on a slow machine; quadratic work would take hours.
const LONGEST: Duration = Duration::from_secs(30);

/// Returns bodies and events of a protocol with `@` where its decoder looks inside a value.
fn positions(samples: &Samples) -> Vec<&'static str> {
    let everywhere = ["@", r#"{"a":@}"#, r#"{"usage":@}"#, r#"{"error":@}"#];
    everywhere.into_iter().chain(samples.nests.iter().copied()).collect()
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
    for samples in ALL {
        let (name, make) = (samples.name, samples.make);
        on_a_small_stack(move || {
            for position in positions(&samples) {
                for value in values() {
                    let body = position.replace('@', &value);
                    let start = Instant::now();
                    decode(make, Some("application/json"), body.as_bytes());
                    decode(
                        make,
                        Some("text/event-stream"),
                        format!("data: {body}\n\ndata: {body}\n\n").as_bytes(),
                    );
                    let shown = &value[..value.len().min(40)];
                    assert!(start.elapsed() < LONGEST, "{name} {position} {shown}");
                }
            }
        });
    }
}

#[test]
fn nested_long_and_many_values_are_bounded_in_events_of_aws() {
    const EVENTS: [(&str, &str); 9] = [
        ("messageStart", "@"),
        ("contentBlockStart", r#"{"contentBlockIndex":0,"start":@}"#),
        ("contentBlockStart", r#"{"contentBlockIndex":0,"start":{"toolUse":@}}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":@}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":@}}"#),
        (
            "contentBlockDelta",
            r#"{"contentBlockIndex":0,"delta":{"reasoningContent":@}}"#,
        ),
        ("contentBlockStop", r#"{"contentBlockIndex":@}"#),
        ("messageStop", r#"{"stopReason":@}"#),
        ("metadata", r#"{"usage":@}"#),
    ];
    let (_, converse) = DECODERS[4];
    on_a_small_stack(move || {
        for (name, position) in EVENTS {
            for value in values() {
                let event = of_aws(name, &position.replace('@', &value));
                let start = Instant::now();
                decode(converse, None, &event.repeat(2));
                assert!(
                    start.elapsed() < LONGEST,
                    "{name} {position} {}",
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
