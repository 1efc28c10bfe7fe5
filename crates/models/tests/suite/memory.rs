//! The memory that a response of a provider takes while it is decoded: a bounded multiple of the
//! bytes that are allowed, for each content.

use allocation_counter::measure;
use models::CapSettings;
use test_support::samples::{ALL, DECODERS, Make};
use test_support::small_frames::{SMALL_FRAMES_OF_AWS, of_aws};

use super::worst::decode_within;

/// Those of the service, a 128th of each.
const CAPS: CapSettings = CapSettings {
    event_bytes: (8 << 20) / 128,
    response_bytes: (64 << 20) / 128,
    tool_calls: 256 / 128,
    parts: 16_384 / 128,
};
/// The bytes of an answer are received, kept and put together to what it says.
const PER_BYTE: u64 = 4;
/// A part, a citation or a value of a block that comes in pieces, beside its bytes.
const PER_PART: u64 = 1 << 10;
/// The items of one list that is as large as an event may be, of two bytes each, and what each
/// takes until its event is read. A list of more than 65536 items is none, so larger events take no
/// more than twice that.
const LIST: u64 = CAPS.event_bytes as u64 / 2 * 256;

/// How many large events are sent: enough to tell what each adds to what stays.
const EVENTS: usize = 3;

/// Returns values that are as dense, as deep and as long as an event may be.
fn values() -> Vec<String> {
    let room = CAPS.event_bytes - 200;
    let many = |item: &str| vec![item; room / (item.len() + 1)].join(",");
    vec![
        format!("[{}]", many("0")),
        format!("[{}]", many(r#"{"":0}"#)),
        format!("{{{}}}", many(r#""":0"#)),
        "[".repeat(room / 2) + &"]".repeat(room / 2),
        format!("\"{}\"", "\\n".repeat(room / 2 - 1)),
    ]
}

/// Decodes a response, ignores the result, and checks the peak of the allocated bytes.
fn decode(name: &str, shown: &str, make: Make, kind: Option<&str>, bytes: &[u8], beside: u64) {
    let taken = measure(|| decode_within(CAPS, make, kind, bytes));
    let most = PER_BYTE * CAPS.response_bytes as u64 + PER_PART * CAPS.parts as u64 + beside;
    assert!(taken.bytes_max <= most, "{name} {shown}: {} bytes", taken.bytes_max);
}

/// Returns as many frames as an answer may have.
fn filled(frame: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in (0..).map(frame) {
        if bytes.len() + frame.len() > CAPS.response_bytes {
            break;
        }
        bytes.extend(frame);
    }
    bytes
}

fn nth(frames: &[&str], number: usize) -> String {
    frames[number.min(frames.len() - 1)].replace('@', &number.to_string())
}

#[test]
fn the_limits_are_those_of_the_service() {
    let caps = CapSettings::default();
    let ours = [CAPS.event_bytes, CAPS.response_bytes, CAPS.tool_calls, CAPS.parts];
    let theirs = [caps.event_bytes, caps.response_bytes, caps.tool_calls, caps.parts];
    assert_eq!(ours.map(|cap| cap * 128), theirs);
}

#[test]
fn small_frames_without_end_take_bounded_memory() {
    for samples in ALL {
        let (name, make) = (samples.name, samples.make);
        for frames in samples.small_frames {
            let bytes = filled(|number| format!("data: {}\n\n", nth(frames, number)).into_bytes());
            decode(
                name,
                frames[frames.len() - 1],
                make,
                Some("text/event-stream"),
                &bytes,
                0,
            );
        }
    }
}

#[test]
fn small_frames_of_aws_take_bounded_memory() {
    let (name, make) = DECODERS[4];
    for (event, text) in SMALL_FRAMES_OF_AWS {
        let bytes = filled(|number| of_aws(event, &nth(&[text], number)));
        decode(name, text, make, None, &bytes, 0);
    }
}

#[test]
fn large_lists_and_deep_and_long_values_take_bounded_memory() {
    for samples in ALL {
        let (name, make) = (samples.name, samples.make);
        let (events, body) = samples.lists;
        for value in values() {
            let shown = |position: &str| position.replace('@', &value[..8]);
            for event in events {
                let bytes = format!("data: {}\n\n", event.replace('@', &value)).repeat(EVENTS);
                let kind = Some("text/event-stream");
                decode(name, &shown(event), make, kind, bytes.as_bytes(), LIST);
            }
            let bytes = body.replace('@', &value);
            let kind = Some("application/json");
            decode(name, &shown(body), make, kind, bytes.as_bytes(), LIST);
        }
    }
}

#[test]
fn lists_in_a_list_take_bounded_memory() {
    const BYTES: usize = 2 << 20;
    let (name, make) = DECODERS[2];
    let caps = CapSettings {
        event_bytes: BYTES,
        response_bytes: BYTES,
        ..CAPS
    };
    let part = format!(
        r#"{{"type":"output_text","annotations":[{}]}}"#,
        vec!["0"; 60_000].join(",")
    );
    let parts = vec![part.as_str(); BYTES / (part.len() + 1)].join(",");
    let body = format!(r#"{{"object":"response","output":[{{"type":"message","content":[{parts}]}}]}}"#);
    let taken = measure(|| {
        let mut decoder = make(Some("application/json"), caps);
        decoder.push(body.as_bytes(), &mut Vec::new()).unwrap();
        let failure = decoder.finish(&mut Vec::new()).unwrap_err();
        assert_eq!(failure.error.message, "the response has more than 128 parts");
    });
    let most = PER_BYTE * BYTES as u64 + 2 * LIST;
    assert!(taken.bytes_max <= most, "{name}: {} bytes", taken.bytes_max);
}

#[test]
fn large_values_in_events_of_aws_take_bounded_memory() {
    let (name, make) = DECODERS[4];
    for (event, position) in [
        ("contentBlockStart", r#"{"contentBlockIndex":0,"start":@}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"x":@}}"#),
        ("messageStop", r#"{"stopReason":@}"#),
    ] {
        for value in values() {
            let bytes = of_aws(event, &position.replace('@', &value)).repeat(EVENTS);
            decode(name, &format!("{event} {}", &value[..8]), make, None, &bytes, LIST);
        }
    }
}
