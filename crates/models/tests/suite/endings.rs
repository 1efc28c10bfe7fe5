//! Any sequence of frames ends in a whole completion or in an error, for every protocol.

use std::sync::Arc;

use agent::ports::ModelEvent;
use agent::state::{FinishReason, ModelResponse};
use models::{CapSettings, Decoder};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use test_support::bedrock_frames::event;
use values::ids::UuidV7Source;
use values::message::ContentPart;

use super::bedrock::support::event;
use super::support::decode;
use test_support::samples::DECODERS;
use test_support::wires;

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

#[expect(clippy::too_many_lines, reason = "it is a list of frames of each protocol")]
fn frames(protocol: &str, word: &str) -> Vec<Value> {
    let words = [json!(word), json!(null), json!("")];
    match protocol {
        "chat" => {
            let delta = |delta: Value| json!({"choices": [{"index": 0, "delta": delta}]});
            let call = json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}});
            let mut frames = vec![
                delta(json!({"role": "assistant", "content": ""})),
                delta(json!({"content": "hi"})),
                delta(json!({"content": {"novel": 1}})),
                delta(json!({"content": [{"type": "novel", "x": 1}]})),
                delta(json!({"reasoning_content": "hm"})),
                delta(json!({"refusal": "no"})),
                delta(json!({"tool_calls": [call]})),
                delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]})),
                json!({"choices": [{"index": 1, "delta": {"tool_calls": [call]}}]}),
                json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}),
            ];
            frames.extend(words.map(|word| json!({"choices": [{"index": 0, "delta": {}, "finish_reason": word}]})));
            frames
        }
        "messages" => {
            let block = |block: Value| json!({"type": "content_block_start", "index": 0, "content_block": block});
            let delta = |delta: Value| json!({"type": "content_block_delta", "index": 0, "delta": delta});
            let mut frames = vec![
                json!({"type": "message_start", "message": {"role": "assistant"}}),
                block(json!({"type": "text", "text": ""})),
                block(json!({"type": "tool_use", "id": "a", "name": "f", "input": {}})),
                block(json!({"type": "thinking", "thinking": ""})),
                block(json!({"type": "novel", "text": "hi"})),
                delta(json!({"type": "text_delta", "text": "hi"})),
                delta(json!({"type": "input_json_delta", "partial_json": "{}"})),
                delta(json!({"type": "thinking_delta", "thinking": "hm"})),
                json!({"type": "content_block_stop", "index": 0}),
                json!({"type": "message_stop"}),
            ];
            frames.extend(words.map(|word| json!({"type": "message_delta", "delta": {"stop_reason": word}})));
            frames
        }
        "responses" => {
            let item = |kind: &str, item: Value| json!({"type": format!("response.output_item.{kind}"), "output_index": 0, "item": item});
            let call = json!({"type": "function_call", "id": "i", "call_id": "a", "name": "f", "arguments": "{}"});
            let mut frames = vec![
                json!({"type": "response.created", "response": {"id": "r"}}),
                item("added", call.clone()),
                item("done", call.clone()),
                item("done", json!({"type": "reasoning", "id": "q", "summary": []})),
                json!({"type": "response.output_text.delta", "output_index": 1, "delta": "hi"}),
                json!({"type": "response.refusal.delta", "output_index": 2, "delta": "no"}),
                json!({"type": "response.completed", "response": {"status": "completed", "output": []}}),
                json!({"type": "response.completed", "response": {"status": "completed", "output": [call]}}),
                json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": word}}}),
                json!({"type": "response.failed", "response": {"status": "failed"}}),
            ];
            frames.extend(words.map(|word| json!({"type": "response.completed", "response": {"status": word}})));
            frames
        }
        "gemini" => {
            let part = |part: Value| json!({"candidates": [{"index": 0, "content": {"parts": [part]}}]});
            let call = json!({"functionCall": {"name": "f", "args": {}}});
            let mut frames = vec![
                part(json!({"text": "hi"})),
                part(json!({"text": "hm", "thought": true})),
                part(json!({"text": ""})),
                part(call.clone()),
                json!({"candidates": [{"index": 1, "content": {"parts": [call]}}]}),
                json!({"candidates": [{"index": 0, "content": {"parts": {"text": "hi"}}}]}),
                json!({"promptFeedback": {"blockReason": "SAFETY"}}),
                json!({"usageMetadata": {"promptTokenCount": 1}}),
            ];
            frames.extend(words.map(|word| json!({"candidates": [{"index": 0, "finishReason": word}]})));
            frames
        }
        _ => {
            let start = |start: Value| json!({"contentBlockStart": {"contentBlockIndex": 0, "start": start}});
            let delta = |delta: Value| json!({"contentBlockDelta": {"contentBlockIndex": 0, "delta": delta}});
            let mut frames = vec![
                json!({"messageStart": {"role": "assistant"}}),
                start(json!({"toolUse": {"toolUseId": "a", "name": "f", "type": "tool_use"}})),
                start(json!({"toolUse": {"toolUseId": "s", "name": "g", "type": "server_tool_use"}})),
                delta(json!({"toolUse": {"input": "{}"}})),
                delta(json!({"text": "hi"})),
                delta(json!({"reasoningContent": {"text": "hm"}})),
                json!({"contentBlockStop": {"contentBlockIndex": 0}}),
                json!({"metadata": {"usage": {"inputTokens": 1}}}),
            ];
            frames.extend(words.map(|word| json!({"messageStop": {"stopReason": word}})));
            frames
        }
    }
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

/// Decodes a response that ends in a completion.
fn completion(mut decoder: Box<dyn Decoder>, bytes: &[u8]) -> ModelResponse {
    let mut events = Vec::new();
    let pushed = decoder.push(bytes, &mut events);
    let ended = pushed.and_then(|()| decoder.finish(&mut events));
    assert!(ended.is_ok(), "{events:?}");
    let Some(ModelEvent::Completed(response)) = events.pop() else {
        panic!("{events:?}")
    };
    check(&events, &response);
    *response
}

/// The arguments of a call that the limit of tokens has cut.
const CUT: &str = r#"{"path": "a"#;

/// Returns, in the order of the decoders, a body and the frames of a stream in which the limit of
/// tokens cuts a call. Where arguments are an object, none of them is left.
fn cut_calls() -> [(Value, Vec<Value>); 5] {
    let function = json!({"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": CUT}});
    let chat = |field: &str| {
        let message = json!({"role": "assistant", "content": null, "tool_calls": [function]});
        json!({"choices": [{"index": 0, field: message, "finish_reason": "length"}]})
    };
    let block = json!({"type": "tool_use", "id": "a", "name": "f", "input": {}});
    let messages = vec![
        json!({"type": "message_start", "message": {"role": "assistant"}}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": CUT}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}),
        json!({"type": "message_stop"}),
    ];
    let item = |arguments: &str| json!({"type": "function_call", "call_id": "a", "name": "f", "id": "i", "arguments": arguments});
    let details = json!({"reason": "max_output_tokens"});
    let incomplete =
        json!({"object": "response", "status": "incomplete", "incomplete_details": details, "output": [item(CUT)]});
    let responses = vec![
        json!({"type": "response.output_item.added", "output_index": 0, "item": item("")}),
        json!({"type": "response.function_call_arguments.delta", "item_id": "i", "output_index": 0, "delta": CUT}),
        json!({"type": "response.incomplete", "response": incomplete}),
    ];
    let parts = json!([{"functionCall": {"name": "f", "args": {}}}]);
    let contents = json!({"candidates": [{"index": 0, "content": {"parts": parts}, "finishReason": "MAX_TOKENS"}]});
    let usage = json!({"inputTokens": 3, "outputTokens": 2, "totalTokens": 5});
    let tool_use = json!({"toolUseId": "a", "name": "f", "input": {}});
    let message = json!({"role": "assistant", "content": [{"toolUse": tool_use}]});
    let begun = json!({"toolUse": {"toolUseId": "a", "name": "f"}});
    let converse = vec![
        json!({"messageStart": {"role": "assistant"}}),
        json!({"contentBlockStart": {"contentBlockIndex": 0, "start": begun}}),
        json!({"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"toolUse": {"input": CUT}}}}),
        json!({"messageStop": {"stopReason": "max_tokens"}}),
        json!({"metadata": {"usage": usage}}),
    ];
    [
        (chat("message"), vec![chat("delta")]),
        (
            json!({"type": "message", "role": "assistant", "content": [block], "stop_reason": "max_tokens"}),
            messages,
        ),
        (incomplete, responses),
        (contents.clone(), vec![contents]),
        (
            json!({"output": {"message": message}, "stopReason": "max_tokens", "usage": usage}),
            converse,
        ),
    ]
}

#[test]
fn a_call_that_the_limit_of_tokens_cuts_is_not_whole() {
    for ((name, make), (body, frames)) in DECODERS.into_iter().zip(cut_calls()) {
        let body = body.to_string().into_bytes();
        let stream = stream_of(name, frames.iter());
        for (kind, bytes) in [("application/json", body), ("text/event-stream", stream)] {
            let response = completion(make(Some(kind), CapSettings::default()), &bytes);
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
        let (name, make) = DECODERS[protocol];
        let frames = frames(name, word);
        let picked = picks.iter().map(|pick| &frames[pick % frames.len()]);
        let mut bytes = stream_of(name, picked);
        if marks && name != "converse" {
            bytes.extend_from_slice(b"data: [DONE]\n\n");
        }
        let mut decoder = make(Some("text/event-stream"), CapSettings::default());
        let mut events = Vec::new();
        let pushed = decoder.push(&bytes, &mut events);
        let ended = pushed.and_then(|()| decoder.finish(&mut events));
        let completed = matches!(events.last(), Some(ModelEvent::Completed(_)));
        prop_assert_eq!(ended.is_ok(), completed, "{:?}", events);
        if let Some(ModelEvent::Completed(response)) = events.last() {
            check(&events, response);
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
        let settings = wires::chat_settings("p");
        let ids = Arc::new(UuidV7Source);
        let decoder = wires::decoder(&settings, Some("text/event-stream"), CapSettings::default(), ids);
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
