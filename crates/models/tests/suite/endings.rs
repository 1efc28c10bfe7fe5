//! Any sequence of frames ends in a whole completion or in an error, for every protocol.

use std::collections::BTreeMap;

use agent::ports::ModelEvent;
use agent::state::{FinishReason, ModelResponse};
use models::CapSettings;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde::Deserialize;
use serde_json::{Value, json};
use test_support::bedrock_frames::event;
use test_support::samples::DECODERS;
use test_support::wires;
use values::message::ContentPart;

use super::support::{decode, decoded};

/// The words of all protocols for ends, and words that none has.
const WORDS: [&str; 16] = [
    "stop",
    "STOP",
    "end_turn",
    "tool_calls",
    "tool_use",
    "length",
    "MAX_TOKENS",
    "max_tokens",
    "content_filter",
    "SAFETY",
    "refusal",
    "pause_turn",
    "error",
    "OTHER",
    "insufficient_system_resource",
    "novel",
];

/// Some frames of a protocol, in which `WORD` stands for the reason of an end, and a call that the
/// limit of tokens cuts, in one body and in a stream. Where arguments are an object, none of them
/// is left.
#[derive(Debug, Clone, Deserialize)]
struct Protocol {
    frames: Vec<Value>,
    cut_body: Value,
    cut_frames: Vec<Value>,
}

fn protocol(name: &str) -> Protocol {
    let mut all: BTreeMap<String, Protocol> = serde_json::from_str(include_str!("endings.json")).unwrap();
    all.remove(name).unwrap()
}

/// Returns the frames of a protocol, those with a reason also with none and with an empty one.
fn frames(name: &str, word: &str) -> Vec<Value> {
    let words = &[json!(word), Value::Null, json!("")].map(|word| word.to_string());
    let spelled = protocol(name).frames.into_iter().flat_map(|frame| {
        let text = frame.to_string();
        let count = if text.contains("\"WORD\"") { words.len() } else { 1 };
        words[..count].iter().map(move |word| text.replace("\"WORD\"", word))
    });
    spelled.map(|text| serde_json::from_str(&text).unwrap()).collect()
}

/// Checks that the completion is what its reason says, and that the events tell the same calls.
fn check(events: &[ModelEvent], response: &ModelResponse) {
    let is_call = |part: &&ContentPart| matches!(part, ContentPart::ToolCall(_));
    let calls = response.content.iter().filter(is_call).count();
    let started = |event: &&ModelEvent| matches!(event, ModelEvent::ToolCallStarted { .. });
    assert_eq!(events.iter().filter(started).count(), calls, "{events:?}");
    let has_output = |part: &ContentPart| match part {
        ContentPart::Text(part) => !part.text.is_empty(),
        ContentPart::Reasoning(_) => false,
        _ => true,
    };
    match &response.finish_reason {
        FinishReason::ToolCalls => assert!(calls > 0),
        FinishReason::Stop => assert!(calls == 0 && response.content.iter().any(has_output)),
        FinishReason::PauseTurn => assert!(response.content.iter().any(has_output)),
        FinishReason::Other(word) => panic!("{word} is no success"),
        FinishReason::Length | FinishReason::ContentFilter | FinishReason::Refusal | FinishReason::Interrupted => {}
    }
}

/// Returns the bytes of a stream of these frames.
fn stream_of<'a>(protocol: &str, frames: impl Iterator<Item = &'a Value>) -> Vec<u8> {
    if protocol == "converse" {
        return frames.flat_map(event).collect();
    }
    let frames: Vec<_> = frames.map(|frame| format!("data: {frame}\n\n")).collect();
    frames.concat().into_bytes()
}

#[test]
fn a_call_that_the_limit_of_tokens_cuts_is_not_whole() {
    for (number, (name, _)) in DECODERS.into_iter().enumerate() {
        let cut = protocol(name);
        let body = cut.cut_body.to_string().into_bytes();
        let stream = stream_of(name, cut.cut_frames.iter());
        for (kind, bytes) in [("application/json", body), ("text/event-stream", stream)] {
            let (events, end) = decoded(number, Some(kind), &[&bytes]);
            let response = end.unwrap();
            check(&events, &response);
            let is_whole = response.finish_reason.is_whole();
            assert_eq!(
                (&response.finish_reason, is_whole),
                (&FinishReason::Length, false),
                "{name}, {kind}"
            );
            assert!(
                matches!(response.content[..], [ContentPart::ToolCall(_)]),
                "{name}, {kind}: {response:?}"
            );
        }
    }
}

/// How a server writes the calls of a stream.
#[expect(clippy::struct_excessive_bools, reason = "each habit is independent of the others")]
#[derive(Debug, Clone, Copy)]
struct Habits {
    shares_index: bool,
    changes_ids: bool,
    repeats_name: bool,
    is_cumulative: bool,
    repeats_calls: bool,
}

/// Returns the chunks of calls, whose arguments differ.
fn chunks(names: &[&str], cuts: usize, habits: Habits) -> Vec<String> {
    let mut chunks = Vec::new();
    let chunk = |number: usize, id: String, name: Option<&str>, arguments: &str| {
        let index = if habits.shares_index { 0 } else { number };
        let function = json!({"name": name, "arguments": arguments});
        json!({"choices": [{"index": 0, "delta": {"tool_calls": [{"index": index, "id": id, "function": function}]}}]})
            .to_string()
    };
    let arguments = |number: usize| json!({"number": number, "text": "{\"number\": \"}"}).to_string();
    let id = |number: usize, piece: usize| {
        let piece = if habits.changes_ids { piece } else { 0 };
        format!("id-{number}-{piece}")
    };
    for (number, name) in names.iter().enumerate() {
        let whole = arguments(number);
        // Servers that share an index send whole calls.
        let size = if habits.shares_index {
            whole.len()
        } else {
            whole.len().div_ceil(cuts)
        };
        for (piece, start) in (0..whole.len()).step_by(size).enumerate() {
            let end = (start + size).min(whole.len());
            let text = if habits.is_cumulative {
                &whole[..end]
            } else {
                &whole[start..end]
            };
            let name = (piece == 0 || habits.repeats_name || habits.is_cumulative).then_some(*name);
            chunks.push(chunk(number, id(number, piece), name, text));
        }
    }
    if habits.repeats_calls && !habits.shares_index {
        for (number, name) in names.iter().enumerate() {
            chunks.push(chunk(number, id(number, 0), Some(name), &arguments(number)));
        }
    }
    chunks.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}).to_string());
    chunks
}

proptest! {
    #[test]
    fn frames_end_in_a_whole_completion_or_an_error(
        protocol in 0..DECODERS.len(), word in select(&WORDS[..]), picks in vec(0..13_usize, 0..12), marks in any::<bool>(),
    ) {
        let (name, _) = DECODERS[protocol];
        let frames = frames(name, word);
        let picked = picks.iter().map(|pick| &frames[pick % frames.len()]);
        let mut bytes = stream_of(name, picked);
        if marks && name != "converse" {
            bytes.extend_from_slice(b"data: [DONE]\n\n");
        }
        let (events, end) = decoded(protocol, Some("text/event-stream"), &[&bytes]);
        match end {
            Ok(response) => check(&events, &response),
            Err(_) => prop_assert!(!events.iter().any(|event| matches!(event, ModelEvent::Completed(_))), "{:?}", events),
        }
    }

    #[test]
    fn calls_of_any_server_neither_merge_nor_vanish(
        names in vec(select(&["f", "g"][..]), 1..5), cuts in 1..9_usize,
        (shares_index, changes_ids, repeats_name) in any::<(bool, bool, bool)>(),
        (is_cumulative, repeats_calls) in any::<(bool, bool)>(),
    ) {
        let habits = Habits { shares_index, changes_ids, repeats_name, is_cumulative, repeats_calls };
        let chunks = chunks(&names, cuts, habits);
        let text = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect::<Vec<_>>().concat();
        let decoder = wires::decoder(&wires::chat_settings("p"), Some("text/event-stream"), CapSettings::default());
        let (events, end) = decode(decoder, &[text.as_bytes()]);
        let response = end.unwrap();
        check(&events, &response);
        let calls = response.content.iter().map(|part| match part {
            ContentPart::ToolCall(call) => {
                let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
                (call.name.as_str(), arguments["number"].as_u64().unwrap())
            }
            other => panic!("{other:?}"),
        });
        let expected: Vec<_> = names.iter().copied().zip(0..).collect();
        prop_assert_eq!(calls.collect::<Vec<_>>(), expected, "{:?}", habits);
    }
}
