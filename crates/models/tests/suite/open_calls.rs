//! Completions without a finish reason, and items that are incomplete: text may be whole, a call
//! without an end is not.

use agent::ports::{ModelError, ModelErrorClass};
use agent::state::{FinishReason, ModelResponse};
use serde_json::{Value, json};

use super::support::decoded;

const CHAT: usize = 0;
const MESSAGES: usize = 1;
const RESPONSES: usize = 2;

fn stream(protocol: usize, frames: &[Value]) -> Result<ModelResponse, ModelError> {
    let frames = frames.iter().map(|frame| format!("data: {frame}\n\n"));
    let text = frames.collect::<Vec<_>>().concat();
    decoded(protocol, Some("text/event-stream"), &[text.as_bytes()]).1
}

fn whole(protocol: usize, body: &Value) -> Result<ModelResponse, ModelError> {
    decoded(protocol, Some("application/json"), &[body.to_string().as_bytes()]).1
}

#[track_caller]
fn expect_cut(outcome: Result<ModelResponse, ModelError>) {
    assert_eq!(outcome.unwrap_err().class, ModelErrorClass::Truncated);
}

#[test]
fn a_call_of_chat_without_its_end_is_not_whole() {
    let frames = |arguments: &str| {
        let call = json!({"index": 0, "id": "a", "function": {"name": "f", "arguments": arguments}});
        let pieces = [json!({"content": "hi"}), json!({"tool_calls": [call]})];
        let frames = pieces.map(|piece| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": piece}]})));
        frames.concat() + "data: [DONE]\n\n"
    };
    for arguments in ["", "{\"x\":"] {
        expect_cut(decoded(CHAT, Some("text/event-stream"), &[frames(arguments).as_bytes()]).1);
    }
    let response = decoded(CHAT, Some("text/event-stream"), &[frames("{}").as_bytes()])
        .1
        .unwrap();
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    let call = json!({"id": "a", "function": {"name": "f", "arguments": ""}});
    let body =
        |reason: Value| json!({"choices": [{"index": 0, "message": {"tool_calls": [call]}, "finish_reason": reason}]});
    expect_cut(whole(CHAT, &body(Value::Null)));
    assert_eq!(
        whole(CHAT, &body(json!("tool_calls"))).unwrap().finish_reason,
        FinishReason::ToolCalls
    );
}

#[test]
fn a_block_of_anthropic_without_its_end_is_not_whole() {
    let start = json!({"type": "message_start", "message": {"role": "assistant"}});
    let block = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "a", "name": "f", "input": {}}});
    let delta = |piece: &str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": piece}});
    let end = json!({"type": "content_block_stop", "index": 0});
    let reason = json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}});
    let stop = json!({"type": "message_stop"});
    expect_cut(stream(MESSAGES, &[start.clone(), block.clone(), stop.clone()]));
    expect_cut(stream(
        MESSAGES,
        &[start.clone(), block.clone(), delta("{\"x\":"), stop.clone()],
    ));
    for pieces in [vec![delta("{}")], vec![end], vec![reason]] {
        let frames = [vec![start.clone(), block.clone()], pieces, vec![stop.clone()]].concat();
        let response = stream(MESSAGES, &frames).unwrap();
        assert_eq!(response.finish_reason, FinishReason::ToolCalls, "{frames:?}");
    }
    let text = json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}});
    let response = stream(MESSAGES, &[start, text, stop]).unwrap();
    assert_eq!(response.finish_reason, FinishReason::Stop);
}

#[test]
fn an_incomplete_item_of_responses_is_not_whole() {
    let call = |status: &str, arguments: &str| json!({"type": "function_call", "id": "i", "call_id": "a", "name": "f", "arguments": arguments, "status": status});
    let added = json!({"type": "response.output_item.added", "output_index": 0, "item": call("in_progress", "")});
    let delta = |piece: &str| json!({"type": "response.function_call_arguments.delta", "item_id": "i", "output_index": 0, "delta": piece});
    let response = |output: &[Value]| json!({"object": "response", "id": "r", "status": "completed", "output": output});
    let completed = |output: &[Value]| json!({"type": "response.completed", "response": response(output)});
    expect_cut(stream(RESPONSES, &[added.clone(), completed(&[])]));
    expect_cut(stream(RESPONSES, &[added.clone(), delta("{\"x\":"), completed(&[])]));
    let streamed = stream(RESPONSES, &[added, delta("{}"), completed(&[])]).unwrap();
    assert_eq!(streamed.finish_reason, FinishReason::ToolCalls);

    let message = json!({"type": "message", "id": "m", "status": "incomplete", "content": [{"type": "output_text", "text": "hi"}]});
    for item in [
        call("incomplete", ""),
        call("incomplete", "{}"),
        call("in_progress", ""),
        message,
    ] {
        expect_cut(whole(RESPONSES, &response(std::slice::from_ref(&item))));
        expect_cut(stream(RESPONSES, &[completed(&[item])]));
    }
    let ended = whole(RESPONSES, &response(&[call("completed", "")])).unwrap();
    assert_eq!(ended.finish_reason, FinishReason::ToolCalls);
}

#[test]
fn a_completed_response_with_a_reason_for_its_cut_was_cut() {
    let message = json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "hi"}]});
    for (reason, expected) in [
        (json!({"reason": "max_output_tokens"}), FinishReason::Length),
        (json!({"reason": "content_filter"}), FinishReason::ContentFilter),
        (json!({}), FinishReason::Stop),
        (json!(null), FinishReason::Stop),
    ] {
        let body =
            json!({"object": "response", "status": "completed", "incomplete_details": reason, "output": [message]});
        assert_eq!(whole(RESPONSES, &body).unwrap().finish_reason, expected, "{body}");
    }
}

#[test]
fn a_refusal_that_ends_like_a_text_is_a_refusal() {
    let message = json!({"role": "assistant", "content": null, "refusal": "I won't."});
    for frame in [
        json!({"choices": [{"index": 0, "delta": message, "finish_reason": "stop"}]}),
        json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}),
    ] {
        assert_eq!(
            stream(CHAT, std::slice::from_ref(&frame)).unwrap().finish_reason,
            FinishReason::Refusal,
            "{frame}"
        );
    }
}

#[test]
fn a_reason_that_is_not_a_text_is_no_success() {
    let reason = json!({"type": "error", "message": "x"});
    let content = json!([{"type": "text", "text": "hi"}]);
    let candidate = json!({"content": {"parts": [{"text": "hi"}]}, "finishReason": reason});
    for (protocol, body) in [
        (
            CHAT,
            json!({"choices": [{"message": {"content": "hi"}, "finish_reason": reason}]}),
        ),
        (
            MESSAGES,
            json!({"type": "message", "content": content, "stop_reason": reason}),
        ),
        (
            RESPONSES,
            json!({"object": "response", "status": reason, "output": [{"type": "message", "content": content}]}),
        ),
        (3, json!({"candidates": [candidate]})),
        (
            4,
            json!({"output": {"message": {"content": [{"text": "hi"}]}}, "stopReason": reason}),
        ),
    ] {
        assert_eq!(
            whole(protocol, &body).unwrap_err().class,
            ModelErrorClass::Server,
            "{body}"
        );
    }
}
