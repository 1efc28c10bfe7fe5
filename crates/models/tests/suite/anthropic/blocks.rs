//! Blocks of answers: calls with their input, thinking with its signature, and numbers and ids that
//! are missing or used twice.

use agent::ports::ModelEvent;
use serde_json::{Value, json};
use values::message::ContentPart;

use super::support::{block, delta, end, input_delta, read, start, stop, stream, text_delta, tool_use};
use crate::support::{call, generated_id, redacted, thought};

#[test]
fn input_comes_in_pieces_or_at_once() {
    let given = json!({"type": "tool_use", "id": "b", "name": "t", "input": {"x": 1}});
    let (_, response) = stream(&[
        start(),
        block(0, &tool_use("a")),
        block(1, &given),
        block(2, &tool_use("c")),
        input_delta(0, ""),
        input_delta(2, "{\"y\":"),
        input_delta(0, "{\"z\": "),
        input_delta(2, " 1.0"),
        input_delta(0, "1e2}"),
        json!({"type": "content_block_stop", "index": 0}),
        input_delta(0, "too late"),
        end("max_tokens"),
    ]);
    assert_eq!(
        response.unwrap().content,
        [
            call("a", "{\"z\": 1e2}"),
            call("b", "{\"x\":1}"),
            call("c", "{\"y\": 1.0"),
        ],
        "verbatim, also where the answer was cut"
    );
    let body = r#"{"content": [{"type": "tool_use", "id": "a", "name": "t", "input": {"n":  1e2}}, {"type": "tool_use", "id": "b", "name": "t"}]}"#;
    let (events, response) = read(body.as_bytes());
    assert_eq!(response.unwrap().content, [call("a", "{\"n\":  1e2}"), call("b", "{}")]);
    assert_eq!(events.len(), 4, "each call begins and has its input: {events:?}");
}

#[test]
fn missing_and_repeated_ids_and_indexes_have_an_outcome() {
    let unnumbered = |event: Value| {
        let mut event = event;
        event.as_object_mut().unwrap().remove("index");
        event
    };
    let (_, response) = stream(&[
        start(),
        block(0, &json!({"type": "tool_use", "name": "t"})),
        block(1, &tool_use("a")),
        block(2, &tool_use("a")),
        // The index again: from here on it means the later block.
        block(0, &tool_use("b")),
        input_delta(0, "{\"n\": 2}"),
        unnumbered(block(0, &tool_use("c"))),
        unnumbered(input_delta(0, "{\"n\": 3}")),
        end("tool_use"),
    ]);
    assert_eq!(
        response.unwrap().content,
        [
            call(&generated_id(1), "{}"),
            call("a", "{}"),
            call(&generated_id(2), "{}"),
            call("b", "{\"n\": 2}"),
            call("c", "{\"n\": 3}"),
        ]
    );
    let huge = json!({"type": "content_block_delta", "index": u64::MAX, "delta": {"type": "text_delta", "text": "a"}});
    let (_, response) = stream(&[huge.clone(), huge, stop()]);
    assert_eq!(
        response.unwrap().content,
        [ContentPart::text("aa")],
        "words open a block themselves"
    );
}

fn block_stop(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

#[test]
fn a_call_that_is_repeated_is_one_call() {
    let whole = json!({"type": "tool_use", "id": "a", "name": "t", "input": {"n": 1}});
    let again = json!({"type": "message", "role": "assistant", "content": [whole], "stop_reason": "tool_use"});
    let first = [
        start(),
        block(0, &tool_use("a")),
        input_delta(0, "{\"n\":1}"),
        block_stop(0),
    ];
    for rest in [
        vec![block(0, &whole), block_stop(0)],
        vec![block(1, &tool_use("a")), input_delta(1, "{\"n\": 1}"), block_stop(1)],
        vec![again],
    ] {
        let (events, response) = stream(&[&first[..], &rest[..], &[end("tool_use"), stop()]].concat());
        assert_eq!(response.unwrap().content, [call("a", "{\"n\":1}")], "{rest:?}");
        let is_start = |event: &&ModelEvent| matches!(event, ModelEvent::ToolCallStarted { .. });
        assert_eq!(events.iter().filter(is_start).count(), 1, "{rest:?}");
    }
}

#[test]
fn repeated_arguments_count_once_and_may_follow_the_end_of_the_block() {
    for pieces in [
        &["{\"n\":", "{\"n\":1}"][..],
        &["{\"n", "{\"n", "{\"n\":1}"],
        &["{\"n\":1}", "{\"n\":1}"],
    ] {
        let deltas: Vec<_> = pieces.iter().map(|piece| input_delta(0, piece)).collect();
        let (begin, close) = ([start(), block(0, &tool_use("a"))], [end("tool_use"), stop()]);
        let response = stream(&[&begin[..], &deltas[..], &[block_stop(0)], &close].concat()).1;
        assert_eq!(response.unwrap().content, [call("a", "{\"n\":1}")], "{pieces:?}");
    }
    let (_, response) = stream(&[
        start(),
        block(0, &tool_use("a")),
        block_stop(0),
        input_delta(0, "{\"n\":1}"),
        end("tool_use"),
        stop(),
    ]);
    assert_eq!(response.unwrap().content, [call("a", "{\"n\":1}")]);
}

#[test]
fn a_whole_message_after_the_blocks_repeats_them() {
    let message = |content: Value| json!({"type": "message", "content": content, "stop_reason": "end_turn"});
    for (content, expected) in [
        (json!([{"type": "text", "text": "Hello"}]), "Hello"),
        (json!("Hello"), "Hello"),
        (json!([{"type": "text", "text": "Hello!"}]), "Hello!"),
    ] {
        let (_, response) = stream(&[
            start(),
            block(0, &json!({"type": "text", "text": ""})),
            text_delta(0, "Hello"),
            block_stop(0),
            message(content.clone()),
            stop(),
        ]);
        assert_eq!(response.unwrap().content, [ContentPart::text(expected)], "{content}");
    }
}

#[test]
fn calls_are_understood_in_the_spellings_of_other_protocols() {
    for spelled in [
        json!({"type": "function_call", "id": "a", "name": "t", "input": {"n": 1}}),
        json!({"type": "function_call", "call_id": "a", "name": "t", "arguments": "{\"n\":1}"}),
        json!({"type": "tool_use", "id": "a", "name": "t", "input": "{\"n\":1}"}),
    ] {
        let body = json!({"content": [{"type": "text", "text": "I compute."}, spelled], "stop_reason": "end_turn"});
        let (_, response) = read(body.to_string().as_bytes());
        let content = response.unwrap().content;
        assert_eq!(content[1..], [call("a", "{\"n\":1}")], "{spelled}");
    }
}

#[test]
fn blocks_that_only_the_provider_reads_are_no_answer() {
    for kind in ["mcp_tool_use", "server_tool_use", "novel"] {
        let only = json!({"type": kind, "id": "s", "name": "t", "input": {}});
        let outcome = stream(&[start(), block(0, &only), end("end_turn"), stop()]);
        assert_eq!(
            outcome.1.unwrap_err().message,
            "the response has no text and no tool call"
        );
        let paused = stream(&[start(), block(0, &only), end("pause_turn"), stop()]);
        assert!(paused.1.is_ok(), "{kind}");
    }
}

#[test]
fn thinking_is_stored_with_its_signature() {
    let signed = |text: &str| thought(text, Some("c2ln"));
    let redacted = redacted("ZGF0YQ==");
    let thinking = |index, text| delta(index, &json!({"type": "thinking_delta", "thinking": text}));
    let signature = |index, text| delta(index, &json!({"type": "signature_delta", "signature": text}));
    let empty = json!({"type": "thinking", "thinking": "", "signature": ""});
    let (events, response) = stream(&[
        start(),
        block(0, &empty.clone()),
        thinking(0, "Let me "),
        thinking(0, "see."),
        signature(0, "c2"),
        signature(0, "ln"),
        block(1, &json!({"type": "redacted_thinking", "data": "ZGF0YQ=="})),
        block(2, &empty.clone()),
        signature(2, "c2ln"),
        block(3, &empty),
        block(4, &json!({"type": "text", "text": "Yes."})),
        end("end_turn"),
    ]);
    let response = response.unwrap();
    assert_eq!(
        response.content,
        [signed("Let me see."), redacted, signed(""), ContentPart::text("Yes.")]
    );
    assert_eq!(response.provider_fields.unwrap().provider, "p");
    let words: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            ModelEvent::ReasoningDelta { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(words, ["Let me ", "see."]);
}
