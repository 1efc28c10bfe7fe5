//! Answers of all protocols, decoded from what the servers send: recordings, and answers with
//! everything that only their maker can read.

use std::sync::LazyLock;

use models::{CapSettings, ProviderKind};
use serde::Deserialize;
use serde_json::{Value, json};
use test_support::wires;
use values::message::{Message, Role};

use crate::recordings::{CHAT, Exchange, MESSAGES, RESPONSES, exchanges};
use crate::support::{decode, message};
use crate::{bedrock, gemini};

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

fn answer(
    label: &str,
    (provider, model): (&str, &str),
    kind: ProviderKind,
    content_type: &str,
    bytes: &[u8],
) -> Option<Answer> {
    let settings = wires::settings(provider, kind);
    let decoder = wires::decoder(&settings, Some(content_type), CapSettings::default());
    let (_, end) = decode(decoder, &[bytes]);
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
    let claude = ("bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0");
    let mut answers = Vec::new();
    for (exchanges, maker, kind) in [
        (
            exchanges(&CHAT),
            ("router", "moonshotai/kimi-k2"),
            ProviderKind::OpenAiChat,
        ),
        (
            exchanges(&MESSAGES),
            ("anthropic", "claude-sonnet-4-5"),
            ProviderKind::Anthropic,
        ),
        (
            exchanges(&RESPONSES),
            ("responses", "gpt-5"),
            ProviderKind::OpenAiResponses,
        ),
        (gemini::recorded(), ("gemini", "gemini-3-pro"), ProviderKind::Gemini),
        (bedrock::recorded(), claude, ProviderKind::Bedrock),
    ] {
        for (label, Exchange { response, .. }) in exchanges {
            if response.status == 200 {
                answers.extend(answer(&label, maker, kind, &response.content_type, &response.bytes()));
            }
        }
    }
    assert!(answers.len() > 40, "{}", answers.len());
    answers
}

/// An answer with what only its maker can read: the message, blocks or items, and the reason of its
/// end.
#[derive(Debug, Deserialize)]
struct Row {
    kind: ProviderKind,
    label: String,
    model: String,
    content: Value,
    end: Value,
}

fn made() -> Vec<Answer> {
    let rows: Vec<Row> = serde_json::from_str(include_str!("answers.json")).unwrap();
    let made = rows.into_iter().map(|row| {
        let (content, end) = (row.content, row.end);
        let (provider, body) = match row.kind {
            ProviderKind::OpenAiChat => {
                let choice = json!({"index": 0, "finish_reason": end, "message": content});
                ("router", json!({"choices": [choice]}))
            }
            ProviderKind::Anthropic => {
                let usage = json!({"input_tokens": 1, "output_tokens": 1});
                let body = json!({"type": "message", "role": "assistant", "content": content, "stop_reason": end,
                                  "usage": usage});
                ("anthropic", body)
            }
            ProviderKind::Gemini => {
                let candidate = json!({"content": {"role": "model", "parts": content}, "finishReason": end});
                ("gemini", json!({"candidates": [candidate]}))
            }
            ProviderKind::Bedrock => {
                let usage = json!({"inputTokens": 1, "outputTokens": 1, "totalTokens": 2});
                let message = json!({"role": "assistant", "content": content});
                (
                    "bedrock",
                    json!({"output": {"message": message}, "stopReason": end, "usage": usage}),
                )
            }
            _ => {
                let details = json!({"reason": "max_output_tokens"});
                let body = json!({"object": "response", "id": "resp_1", "status": end, "error": null,
                                  "output": content, "incomplete_details": details});
                ("responses", body)
            }
        };
        // Marks of different answers differ.
        let body = ["SIGNED", "SEALED"].iter().fold(body.to_string(), |body, mark| {
            body.replace(mark, &format!("{} {mark}", row.label))
        });
        let maker = (provider, row.model.as_str());
        answer(&row.label, maker, row.kind, "application/json", body.as_bytes())
            .unwrap_or_else(|| panic!("{} is no answer", row.label))
    });
    made.collect()
}
