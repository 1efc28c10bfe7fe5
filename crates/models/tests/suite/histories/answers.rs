//! Answers of all protocols, decoded from what the servers send: recordings, and answers with
//! everything that only their maker can read.

use std::sync::{Arc, LazyLock};

use models::{CapSettings, ProviderKind};
use serde_json::{Value, json};
use values::message::{Message, Role};

use crate::recordings::{CHAT, MESSAGES, RESPONSES, exchanges};
use crate::support::{Counted, Decoded, decode, message};
use crate::{bedrock, gemini};
use test_support::wires;

/// An answer, and the model that made it.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) label: String,
    pub(super) provider: String,
    pub(super) model: String,
    pub(super) message: Message,
}

/// Returns all answers.
pub(super) fn answers() -> Vec<Answer> {
    static ALL: LazyLock<Vec<Answer>> = LazyLock::new(|| [made(), recorded()].concat());
    ALL.clone()
}

fn read(kind: ProviderKind, provider: &str, content_type: Option<&str>, bytes: &[u8]) -> Decoded {
    let settings = wires::settings(provider, kind);
    let ids = Arc::new(Counted::default());
    decode(
        wires::decoder(&settings, content_type, CapSettings::default(), ids),
        &[bytes],
    )
}

fn answer(label: &str, (provider, model): (&str, &str), (_, end): Decoded) -> Option<Answer> {
    let response = end.ok()?.made_by(provider, model);
    let is_empty = response.content.is_empty() && response.provider_fields.is_none();
    (!is_empty).then(|| Answer {
        label: label.to_owned(),
        provider: provider.to_owned(),
        model: model.to_owned(),
        message: Message {
            provider_fields: response.provider_fields,
            ..message(Role::Assistant, response.content)
        },
    })
}

fn recorded() -> Vec<Answer> {
    let mut answers = Vec::new();
    let mut add = |label: &str, maker, kind, content_type: Option<&str>, bytes: &[u8]| {
        answers.extend(answer(label, maker, read(kind, maker.0, content_type, bytes)));
    };
    for (wire, maker) in [
        (&CHAT, ("router", "moonshotai/kimi-k2")),
        (&MESSAGES, ("anthropic", "claude-sonnet-4-5")),
        (&RESPONSES, ("responses", "gpt-5")),
    ] {
        for (label, exchange) in exchanges(wire) {
            let response = exchange.response;
            if response.status == 200 {
                add(
                    &label,
                    maker,
                    wire.kind,
                    Some(&response.content_type),
                    response.body.as_bytes(),
                );
            }
        }
    }
    for (label, exchange) in gemini::recorded() {
        let response = exchange.response;
        if response.status == 200 {
            let maker = ("gemini", "gemini-3-pro");
            add(
                &label,
                maker,
                ProviderKind::Gemini,
                Some(&response.content_type),
                response.body.as_bytes(),
            );
        }
    }
    for (label, recorded) in bedrock::recorded() {
        let maker = ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0");
        add(&label, maker, ProviderKind::Bedrock, None, &recorded.body);
    }
    assert!(answers.len() > 40, "{}", answers.len());
    answers
}

fn made() -> Vec<Answer> {
    let mut answers = Vec::new();
    let mut add = |label: &str, maker: (&str, &str), kind, body: &Value| {
        // Marks of different answers differ.
        let body = body.to_string();
        let body = ["SIGNED", "SEALED"]
            .iter()
            .fold(body, |body, mark| body.replace(mark, &format!("{label} {mark}")));
        let decoded = read(kind, maker.0, Some("application/json"), body.as_bytes());
        answers.push(answer(label, maker, decoded).unwrap_or_else(|| panic!("{label} is no answer")));
    };
    for (label, model, message, reason) in chat_messages() {
        let body = json!({"choices": [{"index": 0, "finish_reason": reason, "message": message}]});
        add(label, ("router", model), ProviderKind::OpenAiChat, &body);
    }
    for (label, content, reason) in claude_blocks() {
        let body = json!({"type": "message", "role": "assistant", "content": content, "stop_reason": reason,
                          "usage": {"input_tokens": 1, "output_tokens": 1}});
        add(
            label,
            ("anthropic", "claude-sonnet-4-5"),
            ProviderKind::Anthropic,
            &body,
        );
    }
    for (label, parts, reason) in gemini_parts() {
        let body = json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": reason}]});
        add(label, ("gemini", "gemini-3-pro"), ProviderKind::Gemini, &body);
    }
    for (label, content, reason) in converse_blocks() {
        let body = json!({"output": {"message": {"role": "assistant", "content": content}}, "stopReason": reason,
                          "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}});
        add(
            label,
            ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
            ProviderKind::Bedrock,
            &body,
        );
    }
    for (label, output, status) in response_items() {
        let body = json!({"object": "response", "id": "resp_1", "status": status, "error": null, "output": output,
                          "incomplete_details": {"reason": "max_output_tokens"}});
        add(label, ("responses", "gpt-5"), ProviderKind::OpenAiResponses, &body);
    }
    answers
}

fn function(id: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "t", "arguments": "{\"a\": 1}"}})
}

fn chat_messages() -> Vec<(&'static str, &'static str, Value, &'static str)> {
    vec![
        (
            "kimi with odd ids",
            "moonshotai/kimi-k2",
            json!({"role": "assistant", "content": "", "reasoning_content": "SIGNED-1",
                   "tool_calls": [function("functions.t:0"), function("functions.t:1")]}),
            "tool_calls",
        ),
        (
            "claude behind a router",
            "anthropic/claude-sonnet-4.5",
            json!({"role": "assistant", "content": "Words", "reasoning": "Some thought",
                   "reasoning_details": [{"type": "reasoning.text", "text": "Hm", "signature": "SIGNED-1"}],
                   "tool_calls": [function("toolu_1"), function("toolu_2")]}),
            "tool_calls",
        ),
        (
            "blocks in the content",
            "mistralai/mistral-medium-3",
            json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": [{"type": "text", "text": "SIGNED-1"}]}, {"type": "text", "text": "Words"}]}),
            "stop",
        ),
        (
            "a refusal",
            "moonshotai/kimi-k2",
            json!({"role": "assistant", "content": null, "refusal": "I won't."}),
            "stop",
        ),
        (
            "a cut text",
            "moonshotai/kimi-k2",
            json!({"role": "assistant", "content": "Once upon a "}),
            "length",
        ),
    ]
}

fn claude_blocks() -> Vec<(&'static str, Value, &'static str)> {
    let thinking = json!({"type": "thinking", "thinking": "Hm", "signature": "SIGNED-1"});
    vec![
        (
            "signed thinking and parallel calls",
            json!([thinking, {"type": "text", "text": "Words "},
                   {"type": "tool_use", "id": "toolu_1", "name": "t", "input": {}},
                   {"type": "tool_use", "id": "toolu_2", "name": "t", "input": {"a": 1}}]),
            "tool_use",
        ),
        (
            "encrypted thinking and a server tool",
            json!([{"type": "redacted_thinking", "data": "SEALED-1"},
                   {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
                   {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
                   {"type": "text", "text": "Found."}]),
            "end_turn",
        ),
        ("cut in its thinking", json!([thinking]), "max_tokens"),
        (
            "a refusal of claude",
            json!([{"type": "text", "text": "No."}]),
            "refusal",
        ),
    ]
}

fn gemini_parts() -> Vec<(&'static str, Value, &'static str)> {
    vec![
        (
            "thoughts and parallel calls",
            json!([{"text": "Hm", "thought": true},
                   {"functionCall": {"name": "t", "args": {"a": 1}}, "thoughtSignature": "SIGNED-1"},
                   {"functionCall": {"name": "t", "args": {}}}]),
            "STOP",
        ),
        (
            "a signed text",
            json!([{"text": "Words", "thoughtSignature": "SIGNED-2"}]),
            "STOP",
        ),
        (
            "code that was cut",
            json!([{"text": "I compute."}, {"executableCode": {"language": "PYTHON", "code": "print(1)"}}]),
            "MAX_TOKENS",
        ),
    ]
}

fn converse_blocks() -> Vec<(&'static str, Value, &'static str)> {
    let reasoning = json!({"reasoningContent": {"reasoningText": {"text": "Hm", "signature": "SIGNED-1"}}});
    vec![
        (
            "reasoning and parallel calls of bedrock",
            json!([reasoning, {"text": "Words"}, {"toolUse": {"toolUseId": "tooluse_1", "name": "t", "input": {}}},
                   {"toolUse": {"toolUseId": "tooluse_2", "name": "t", "input": {}}}]),
            "tool_use",
        ),
        (
            "encrypted reasoning of bedrock",
            json!([{"reasoningContent": {"redactedContent": "SEALED-1"}}, {"text": "Words"}]),
            "end_turn",
        ),
        ("cut in its reasoning", json!([reasoning]), "max_tokens"),
    ]
}

fn response_items() -> Vec<(&'static str, Value, &'static str)> {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}],
                           "encrypted_content": "SEALED-1"});
    let call = |id: &str| {
        json!({"type": "function_call", "id": format!("fc_{id}"), "call_id": id, "name": "t", "arguments": "{}",
               "status": "completed"})
    };
    let says = |part: Value| json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]});
    vec![
        (
            "encrypted reasoning and parallel calls",
            json!([reasoning, call("call_1"), call("call_2")]),
            "completed",
        ),
        (
            "reasoning and a message",
            json!([
                reasoning,
                says(json!({"type": "output_text", "text": "Words", "annotations": []}))
            ]),
            "completed",
        ),
        (
            "a refusal of responses",
            json!([says(json!({"type": "refusal", "refusal": "I won't."}))]),
            "completed",
        ),
        (
            "cut in its reasoning item",
            json!([
                says(json!({"type": "output_text", "text": "First.", "annotations": []})),
                reasoning
            ]),
            "incomplete",
        ),
    ]
}
