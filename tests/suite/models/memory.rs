//! What the answers of a provider take in memory while they are decoded: a bounded multiple of the bytes that are allowed, whatever they say.

use agent_runtime::models::CapSettings;
use allocation_counter::measure;

use super::bedrock::support::frame;
use super::worst::{DECODERS, Make};

const CAPS: CapSettings = CapSettings {
    event_bytes: 1 << 20,
    response_bytes: 8 << 20,
    tool_calls: 256,
};
/// The bytes of an answer are received, kept and put together to what it says.
const PER_BYTE: u64 = 4;
/// Blocks that come in pieces are merged as values, which take many times their bytes.
const PER_MERGED_BYTE: u64 = 64;
/// What the most parts, fields and items take that an answer may have, however short it is.
const PARTS: u64 = 16 << 20;

/// Small frames of each protocol, of which an answer has as many as it may; `@` stands for the number of the frame.
fn small_frames(name: &str) -> &'static [&'static str] {
    match name {
        "chat" => &[
            r#"{"choices":[{"delta":{"content":"x"}}]}"#,
            r#"{"choices":[{"delta":{"content":"x","reasoning":"y"}}]}"#,
            r#"{"choices":[{"delta":{"content":[{}]}}]}"#,
            r#"{"choices":[{"delta":{"refusal":"x","images":[{"image_url":{"url":"data:image/png;base64,"}}]}}]}"#,
            r#"{"choices":[{"delta":{"content":[{"type":"thinking","@":0}]}}]}"#,
            r#"{"choices":[{"delta":{"content":[{"type":"thinking"},{"type":"@"}]}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_details":[{"type":"t","@":0}]}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_details":[{"type":"@"}]}}]}"#,
            r#"{"choices":[{"delta":{"@":0}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"x"}}]}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"@":0}]}}]}"#,
            r#"{"choices":[{"delta":{"annotations":[0,0,0,0]}}]}"#,
        ],
        "messages" => &[
            r#"{"type":"content_block_start","index":@,"content_block":{"type":"text","text":"x"}}"#,
            r#"{"type":"content_block_start","content_block":{"type":"x"}}"#,
            r#"{"type":"content_block_start","content_block":{"type":"thinking"}}"#,
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","citations":[0,0,0,0]}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"x"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"citations_delta","citation":0}}"#,
        ],
        "gemini" => &[
            r#"{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":"x","thought":true},{"text":"x"}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]}}]}"#,
            r#"{"candidates":[{"content":{"parts":[{"x":0}]}}]}"#,
            r#"{"candidates":[{"groundingMetadata":{"webSearchQueries":["@"]}}]}"#,
        ],
        "converse" => &[],
        _ => &[
            r#"{"type":"response.output_text.delta","item_id":"@","delta":"x"}"#,
            r#"{"type":"response.output_text.delta","item_id":"a","content_index":@,"delta":"x"}"#,
            r#"{"type":"response.output_text.delta","item_id":"a","delta":"x"}"#,
            r#"{"type":"response.reasoning_summary_text.delta","item_id":"a","summary_index":@,"delta":"x"}"#,
            r#"{"type":"response.output_item.added","item":{"type":"message","id":"@"}}"#,
            r#"{"type":"response.output_item.added","item":{"type":"x","id":"@"}}"#,
            r#"{"type":"response.output_item.done","item":{"type":"x","id":"@"}}"#,
            r#"{"type":"response.output_item.done","item":{"type":"x"}}"#,
            r#"{"type":"response.output_item.done","output_index":@,"item":{"type":"message"}}"#,
            r#"{"type":"response.output_text.annotation.added","item_id":"a","content_index":@,"annotation":0}"#,
            r#"{"type":"response.content_part.done","item_id":"a","content_index":@,"part":{"type":"output_text","text":"x"}}"#,
        ],
    }
}

/// Has an answer decoded, whatever comes of it, and looks at the most bytes that were held at a time.
fn decode(name: &str, shown: &str, make: Make, kind: Option<&str>, bytes: &[u8]) {
    let taken = measure(|| {
        let mut decoder = make(kind, CAPS);
        let mut events = Vec::new();
        for piece in bytes.chunks(16 << 10) {
            if decoder.push(piece, &mut events).is_err() {
                return;
            }
            events.clear();
        }
        let _ = decoder.finish(&mut events);
    });
    let is_merged = ["thinking", "reasoning_details"]
        .iter()
        .any(|word| shown.contains(word));
    let per_byte = if is_merged { PER_MERGED_BYTE } else { PER_BYTE };
    let most = per_byte * CAPS.response_bytes as u64 + PARTS;
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

#[test]
fn small_frames_without_end_take_bounded_memory() {
    for (name, make) in DECODERS {
        for unit in small_frames(name) {
            let bytes = filled(|number| format!("data: {}\n\n", unit.replace('@', &number.to_string())).into_bytes());
            decode(name, unit, make, Some("text/event-stream"), &bytes);
        }
    }
}

#[test]
fn small_frames_of_aws_take_bounded_memory() {
    let (name, make) = DECODERS[4];
    for (event, text) in [
        ("contentBlockDelta", r#"{"contentBlockIndex":@,"delta":{"text":"x"}}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"text":"x"}}"#),
        ("contentBlockDelta", r#"{"contentBlockIndex":0,"delta":{"x":{"@":0}}}"#),
        (
            "contentBlockDelta",
            r#"{"contentBlockIndex":0,"delta":{"citation":{}}}"#,
        ),
        ("contentBlockStart", r#"{"contentBlockIndex":@,"start":{"x":{}}}"#),
    ] {
        let headers = [(":message-type", "event"), (":event-type", event)];
        let bytes = filled(|number| frame(&headers, &text.replace('@', &number.to_string())));
        decode(name, text, make, None, &bytes);
    }
}
