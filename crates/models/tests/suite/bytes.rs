//! Bytes of any kind, in pieces of any size, for every protocol.

use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Value, json};
use test_support::samples::DECODERS;
use test_support::small_frames::{SMALL_FRAMES_OF_AWS, of_aws};

use super::recordings::{CHAT, MESSAGES, RESPONSES, exchanges};
use super::support::{cut, damaged, decoded};
use super::{bedrock, gemini};

/// Texts with which random bytes get beyond the first brace of every protocol.
const SCRAPS: [&str; 26] = [
    "data: ",
    "\n\n",
    "\r",
    "event: error\n",
    "[DONE]",
    "\u{FEFF}",
    "null",
    ",",
    "{\"choices\":[{\"index\":0,\"delta\":{",
    "{\"choices\":[{\"message\":{",
    "\"content\":\"a\"",
    "\"content\":[{\"type\":\"thinking\",\"thinking\":[",
    "\"tool_calls\":[{\"index\":4294967295,\"id\":\"\",\"function\":{\"name\":\"n\",\"arguments\":\"{\"}}]",
    "\"function_call\":{\"name\":\"n\"}",
    "\"reasoning_details\":[{\"type\":\"t\",\"text\":\"x\"}]",
    "},\"finish_reason\":\"stop\"",
    "}]}",
    "\"usage\":{\"prompt_tokens\":1e400}",
    "{\"content\":[",
    "]}",
    "[{\"candidates\": [",
    "{\"output\": [",
    "{\"output\": {",
    "\0\0\0\x40",
    "{\"error\":",
    "}",
];

/// Events of Anthropic Messages, well-formed and not.
fn messages() -> impl Strategy<Value = Value> {
    let block =
        |index: u64, block: Value| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta = |index: u64, delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let call = json!({"type": "tool_use", "id": "a", "name": "t", "input": {}});
    select(vec![
        json!({"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 3, "output_tokens": 1}}}),
        json!({"type": "ping"}),
        json!({"type": "message_stop"}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
        block(0, call.clone()),
        block(0, json!({"type": "text", "text": "a", "citations": [1]})),
        block(1, json!({"type": "server_tool_use", "id": "s", "input": {}})),
        block(2, json!({"type": "thinking"})),
        delta(0, json!({"type": "input_json_delta", "partial_json": "{\""})),
        delta(1, json!({"type": "input_json_delta", "partial_json": "]}"})),
        delta(0, json!({"type": "text_delta", "text": "é"})),
        delta(1, json!({"type": "x_delta", "input": [1], "id": "y"})),
        json!({"type": "message", "content": [call, 1, {}]}),
    ])
}

/// Chunks of Gemini's protocol, well-formed and not.
fn chunks() -> impl Strategy<Value = Value> {
    let part = select(vec![
        json!({"text": "hello"}),
        json!({"text": "hm", "thought": true, "thoughtSignature": "x"}),
        json!({"functionCall": {"name": "t", "args": {"a": [1]}}, "thoughtSignature": "y"}),
        json!({"functionCall": {"name": ""}}),
        json!({"executableCode": {"code": "1"}}),
        json!({"text": 7, "thought": "yes"}),
        json!(null),
    ]);
    let reason = select(vec![
        json!("STOP"),
        json!("SAFETY"),
        json!("MALFORMED_FUNCTION_CALL"),
        json!(null),
        json!(5),
    ]);
    let index = select(vec![json!(0), json!(1), json!(-1), json!(null)]);
    (vec(part, 0..4), reason, index).prop_map(|(parts, reason, index)| {
        json!({"candidates": [{"content": {"parts": parts}, "finishReason": reason, "index": index}],
               "usageMetadata": {"promptTokenCount": index}, "promptFeedback": {"blockReason": index}})
    })
}

/// Events of responses, well-formed and not.
fn responses() -> impl Strategy<Value = Value> {
    let item = select(vec![
        json!({"type": "message", "id": "a", "content": [{"type": "output_text", "text": "hello", "annotations": [1]}]}),
        json!({"type": "message", "id": "b", "content": [{"type": "refusal", "refusal": "no"}, {"type": "new"}]}),
        json!({"type": "message", "content": "plain"}),
        json!({"type": "reasoning", "id": "c", "encrypted_content": "E", "summary": [{"text": "x"}, 7]}),
        json!({"type": "function_call", "id": "d", "call_id": "k", "name": "t", "arguments": "{}"}),
        json!({"type": "function_call", "id": "e", "name": "", "arguments": {"a": [1]}}),
        json!({"type": "web_search_call", "id": "f"}),
        json!({"id": "a"}),
        json!(null),
    ]);
    let id = select(
        ["a", "b", "c", "d"]
            .map(Value::from)
            .into_iter()
            .chain([json!(null), json!(5)])
            .collect::<Vec<_>>(),
    );
    let index = select(vec![
        json!(0),
        json!(1),
        json!(u64::MAX),
        json!(-1),
        json!("0"),
        json!(null),
    ]);
    let kind = select(vec![
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
    (kind, id, index, vec(item, 1..4)).prop_map(|(kind, id, index, items)| {
        json!({
            "type": format!("response.{kind}"), "item_id": id, "output_index": index, "content_index": index,
            "summary_index": index, "delta": "de", "text": "de lta", "refusal": "de", "arguments": "de{}",
            "annotation": index, "item": items[0], "part": items[0]["content"][0],
            "response": {"status": kind, "output": items},
        })
    })
}

fn frames(protocol: usize) -> BoxedStrategy<Vec<u8>> {
    let framed = |event: Value| format!("data: {event}\r\n\r\n").into_bytes();
    match DECODERS[protocol].0 {
        "messages" => messages().prop_map(framed).boxed(),
        "responses" => responses().prop_map(framed).boxed(),
        "gemini" => chunks().prop_map(framed).boxed(),
        "converse" => select(&SMALL_FRAMES_OF_AWS[..])
            .prop_map(|(event, payload)| of_aws(event, &payload.replace('@', "0")))
            .boxed(),
        _ => scraps().boxed(),
    }
}

fn scraps() -> impl Strategy<Value = Vec<u8>> {
    select(&SCRAPS[..]).prop_map(|scrap| scrap.as_bytes().to_vec())
}

/// A response of a protocol: its frames, and other bytes among them or none.
fn streams() -> impl Strategy<Value = (usize, Vec<u8>)> {
    let of_protocol = |protocol: usize| {
        let piece = prop_oneof![6 => frames(protocol), 2 => scraps(), 1 => vec(any::<u8>(), 0..6)];
        let pieces = prop_oneof![vec(frames(protocol), 0..12), vec(piece, 0..24)];
        (Just(protocol), pieces.prop_map(|pieces| pieces.concat()))
    };
    (0..DECODERS.len()).prop_flat_map(of_protocol)
}

/// Returns the recorded responses of a protocol by file and number.
fn recorded(protocol: usize) -> Vec<(String, Vec<u8>)> {
    let exchanges = match DECODERS[protocol].0 {
        "chat" => exchanges(&CHAT),
        "messages" => exchanges(&MESSAGES),
        "responses" => exchanges(&RESPONSES),
        "gemini" => gemini::recorded(),
        _ => bedrock::recorded(),
    };
    let exchanges = exchanges.into_iter();
    exchanges
        .map(|(label, exchange)| (label, exchange.response.bytes()))
        .collect()
}

/// The recorded responses that are short enough to be decoded for every case of a property.
static SHORT: LazyLock<Vec<(usize, Vec<u8>)>> = LazyLock::new(|| {
    (0..DECODERS.len())
        .flat_map(|protocol| recorded(protocol).into_iter().map(move |(_, body)| (protocol, body)))
        .filter(|(_, body)| body.len() < 32 * 1024)
        .collect()
});

/// Decodes a response. Errors have no equality, so their texts are compared.
fn shown(protocol: usize, kind: Option<&str>, chunks: &[&[u8]]) -> String {
    format!("{:?}", decoded(protocol, kind, chunks))
}

proptest! {
    #[test]
    fn the_size_of_pieces_means_nothing((protocol, bytes) in streams(), cuts in vec(any::<Index>(), 0..20), declared in any::<bool>()) {
        let kind = declared.then_some("text/event-stream");
        prop_assert_eq!(shown(protocol, kind, &cut(&bytes, &cuts)), shown(protocol, kind, &[&bytes]));
    }

    #[test]
    fn any_bytes_end_in_an_answer_or_an_error(protocol in 0..DECODERS.len(), head in scraps(), bytes in vec(any::<u8>(), 0..600)) {
        let _ = decoded(protocol, None, &[&[head, bytes].concat()]);
    }

    #[test]
    fn a_damaged_recording_ends_in_an_answer_or_an_error(position in any::<Index>(), byte in any::<u8>(), end in any::<Index>()) {
        for (protocol, body) in SHORT.iter() {
            let _ = decoded(*protocol, None, &[&damaged(body.clone(), position, byte, end)]);
        }
    }
}

#[test]
fn recordings_mean_the_same_in_pieces_and_have_an_end_wherever_they_are_cut() {
    for protocol in 0..DECODERS.len() {
        for (label, body) in recorded(protocol) {
            let whole = shown(protocol, None, &[&body]);
            for size in [1, 2, 7, 41, 199] {
                let pieces: Vec<_> = body.chunks(size).collect();
                assert_eq!(shown(protocol, None, &pieces), whole, "{label} in pieces of {size}");
            }
            for end in (0..body.len()).step_by(body.len() / 100 + 1) {
                let _ = decoded(protocol, None, &[&body[..end]]);
            }
        }
    }
}
