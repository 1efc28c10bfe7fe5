//! Bytes of any kind, in pieces of any size.

use models::CapSettings;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::recordings::{RESPONSES, exchanges};
use super::support::{decode_with, stream_text};
use crate::support::{cut, damaged};

/// Pieces of streams, well-formed and not.
fn events() -> impl Strategy<Value = Vec<Value>> {
    let item = prop_oneof![
        Just(
            json!({"type": "message", "id": "a", "content": [{"type": "output_text", "text": "hello", "annotations": [1]}]})
        ),
        Just(json!({"type": "message", "id": "b", "content": [{"type": "refusal", "refusal": "no"}, {"type": "new"}]})),
        Just(json!({"type": "message", "content": "plain"})),
        Just(json!({"type": "reasoning", "id": "c", "encrypted_content": "E", "summary": [{"text": "x"}, 7]})),
        Just(json!({"type": "function_call", "id": "d", "call_id": "k", "name": "t", "arguments": "{}"})),
        Just(json!({"type": "function_call", "id": "e", "name": "", "arguments": {"a": [1]}})),
        Just(json!({"type": "web_search_call", "id": "f"})),
        Just(json!({"id": "a"})),
        Just(json!(null)),
    ];
    let id = prop::sample::select(vec![
        json!("a"),
        json!("b"),
        json!("c"),
        json!("d"),
        json!(null),
        json!(5),
    ]);
    let index = prop::sample::select(vec![
        json!(0),
        json!(1),
        json!(u64::MAX),
        json!(-1),
        json!("0"),
        json!(null),
    ]);
    let kind = prop::sample::select(vec![
        "output_text.delta",
        "output_text.done",
        "refusal.delta",
        "refusal.done",
        "reasoning_summary_text.delta",
        "reasoning_text.done",
        "function_call_arguments.delta",
        "function_call_arguments.done",
        "output_item.added",
        "output_item.done",
        "content_part.done",
        "output_text.annotation.added",
        "completed",
        "incomplete",
        "new",
    ]);
    let event = (kind, id, index, prop::collection::vec(item, 1..4));
    let event = event.prop_map(|(kind, id, index, items)| {
        json!({
            "type": format!("response.{kind}"), "item_id": id, "output_index": index, "content_index": index,
            "summary_index": index, "delta": "de", "text": "de lta", "refusal": "de", "arguments": "de{}",
            "annotation": index, "item": items[0], "part": items[0]["content"][0],
            "response": {"status": kind, "output": items},
        })
    });
    prop::collection::vec(event, 0..12)
}

/// Errors have no equality, so their texts are compared.
fn shown(chunks: &[&[u8]]) -> String {
    format!("{:?}", decode_with(None, CapSettings::default(), chunks))
}

proptest! {
    #[test]
    fn the_size_of_pieces_means_nothing(events in events(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20)) {
        let text = stream_text(&events);
        prop_assert_eq!(shown(&cut(text.as_bytes(), &cuts)), shown(&[text.as_bytes()]));
    }

    #[test]
    fn any_bytes_end_in_an_answer_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..600), head in prop::sample::select(vec!["", "data: ", "{\"output\": ["])) {
        let bytes = [head.as_bytes(), &bytes].concat();
        let _ = decode_with(None, CapSettings::default(), &[&bytes]);
    }

    #[test]
    fn a_damaged_recording_ends_in_an_answer_or_an_error(position in any::<prop::sample::Index>(), byte in any::<u8>(), end in any::<prop::sample::Index>()) {
        for (_, exchange) in exchanges(&RESPONSES) {
            let bytes = damaged(exchange.response.body.into_bytes(), position, byte, end);
            let _ = decode_with(None, CapSettings::default(), &[&bytes]);
        }
    }
}

#[test]
fn recordings_mean_the_same_byte_by_byte() {
    for (label, exchange) in exchanges(&RESPONSES) {
        let body = exchange.response.body.as_bytes();
        let bytes: Vec<_> = body.chunks(1).collect();
        assert_eq!(shown(&bytes), shown(&[body]), "{label}");
    }
}
