//! How often memory is allocated while text arrives: once for each event, whose text leaves the
//! decoder. Names, numbers and fields that are not retained are read where they are.

use agent::ports::ModelEvent;
use allocation_counter::measure;
use models::CapSettings;
use test_support::small_frames::of_aws;

use super::worst::DECODERS;

/// How many deltas a chunk has.
const DELTAS: usize = 64;
/// The growth of the text of the completion, which doubles.
const GROWTH: u64 = 2;

/// Returns how many allocations a delta of text takes. One is its text. The others are those of
/// libraries: `serde_json` allocates a few bytes when it skips a value inside a value, and the
/// crate of AWS copies the headers and the payload of a message.
fn most(name: &str) -> u64 {
    match name {
        "chat" => 1 + 2,
        "gemini" => 1 + 5,
        "converse" => 1 + 11,
        _ => 1,
    }
}

/// Returns a delta as a provider sends it, with many fields that nobody reads.
fn delta(name: &str) -> Vec<u8> {
    let frame = match name {
        "chat" => concat!(
            r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","#,
            r#""system_fingerprint":"fp","service_tier":"default","choices":[{"index":0,"delta":"#,
            r#"{"content":"word "},"logprobs":null,"finish_reason":null}],"usage":null}"#,
        ),
        "messages" => concat!(
            "event: content_block_delta\n",
            r#"data: {"type":"content_block_delta","index":0,"#,
            r#""delta":{"type":"text_delta","text":"word "}}"#,
        ),
        "responses" => concat!(
            "event: response.output_text.delta\n",
            r#"data: {"type":"response.output_text.delta","sequence_number":5,"item_id":"msg_1","#,
            r#""output_index":0,"content_index":0,"delta":"word ","logprobs":[],"obfuscation":"x"}"#,
        ),
        "gemini" => concat!(
            r#"data: {"candidates":[{"content":{"parts":[{"text":"word "}],"role":"model"},"index":0}],"#,
            r#""usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":5,"totalTokenCount":8,"#,
            r#""promptTokensDetails":[{"modality":"TEXT","tokenCount":3}]},"modelVersion":"m","responseId":"r"}"#,
        ),
        _ => {
            let payload = r#"{"contentBlockIndex":0,"delta":{"text":"word "},"p":"abcdefghij"}"#;
            return of_aws("contentBlockDelta", payload);
        }
    };
    format!("{frame}\n\n").into_bytes()
}

#[test]
fn a_delta_of_text_is_allocated_once() {
    let counts = DECODERS.map(|(name, make)| {
        let chunk = delta(name).repeat(DELTAS);
        let mut decoder = make(Some("text/event-stream"), CapSettings::default());
        let mut events = Vec::with_capacity(2 * DELTAS);
        // The first chunk makes the buffers of the stream.
        decoder.push(&chunk, &mut events).unwrap();
        events.clear();
        let taken = measure(|| decoder.push(&chunk, &mut events).unwrap());
        let is_word = |event: &ModelEvent| matches!(event, ModelEvent::TextDelta { text } if text == "word ");
        assert!(
            events.len() == DELTAS && events.iter().all(is_word),
            "{name}: {events:?}"
        );
        (name, taken.count_total)
    });
    let is_bounded = |(name, count): &(&str, u64)| *count <= most(name) * DELTAS as u64 + GROWTH;
    assert!(
        counts.iter().all(is_bounded),
        "allocations of {DELTAS} deltas: {counts:?}"
    );
}
