//! Bytes of any kind, in pieces of any size.

use models::CapSettings;
use proptest::prelude::*;
use serde_json::{Value, json};
use test_support::gemini_chunks::stream_text;

use super::recordings::recorded;
use super::support::decode_with;
use crate::support::{cut, damaged};

/// Pieces of streams, well-formed and not.
fn chunks() -> impl Strategy<Value = Vec<Value>> {
    let part = prop_oneof![
        Just(json!({"text": "hello"})),
        Just(json!({"text": "hm", "thought": true, "thoughtSignature": "x"})),
        Just(json!({"functionCall": {"name": "t", "args": {"a": [1]}}, "thoughtSignature": "y"})),
        Just(json!({"functionCall": {"name": ""}})),
        Just(json!({"executableCode": {"code": "1"}})),
        Just(json!({"text": 7, "thought": "yes"})),
        Just(json!(null)),
    ];
    let reason = prop::sample::select(vec![
        json!("STOP"),
        json!("SAFETY"),
        json!("MALFORMED_FUNCTION_CALL"),
        json!(null),
        json!(5),
    ]);
    let index = prop::sample::select(vec![json!(0), json!(1), json!(-1), json!(null)]);
    let chunk = (prop::collection::vec(part, 0..4), reason, index).prop_map(|(parts, reason, index)| {
        json!({"candidates": [{"content": {"parts": parts}, "finishReason": reason, "index": index}],
               "usageMetadata": {"promptTokenCount": index}, "promptFeedback": {"blockReason": index}})
    });
    prop::collection::vec(chunk, 0..8)
}

/// Errors have no equality, so their texts are compared.
fn shown(chunks: &[&[u8]]) -> String {
    format!("{:?}", decode_with(None, CapSettings::default(), chunks))
}

proptest! {
    #[test]
    fn the_size_of_pieces_means_nothing(chunks in chunks(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20)) {
        let text = stream_text(&chunks);
        prop_assert_eq!(shown(&cut(text.as_bytes(), &cuts)), shown(&[text.as_bytes()]));
    }

    #[test]
    fn any_bytes_end_in_an_answer_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..600), head in prop::sample::select(vec!["", "data: ", "[{\"candidates\": ["])) {
        let bytes = [head.as_bytes(), &bytes].concat();
        let _ = decode_with(None, CapSettings::default(), &[&bytes]);
    }

    #[test]
    fn a_damaged_recording_ends_in_an_answer_or_an_error(position in any::<prop::sample::Index>(), byte in any::<u8>(), end in any::<prop::sample::Index>()) {
        for (_, exchange) in recorded() {
            let bytes = damaged(exchange.response.body.into_bytes(), position, byte, end);
            let _ = decode_with(None, CapSettings::default(), &[&bytes]);
        }
    }
}

#[test]
fn recordings_mean_the_same_byte_by_byte() {
    for (label, exchange) in recorded() {
        let body = exchange.response.body.as_bytes();
        let bytes: Vec<_> = body.chunks(1).collect();
        assert_eq!(shown(&bytes), shown(&[body]), "{label}");
        for end in (0..body.len()).step_by(101) {
            let _ = decode_with(None, CapSettings::default(), &[&body[..end]]);
        }
    }
}
