//! The models to which histories are sent, with the rules of their servers.

use agent::ports::ModelRequest;
use models::{ProviderKind, ProviderSettings};
use serde_json::Value;
use test_support::wire_rules::{Order, check_chat, check_contents, check_converse, check_input, check_messages};
use test_support::wires::encode_request;

/// A model, and the rules of its server.
pub(super) struct Target {
    pub(super) provider: &'static str,
    pub(super) model: &'static str,
    host: &'static str,
    kind: ProviderKind,
    pub(super) check: fn(&Value),
}

impl Target {
    pub(super) fn encode(&self, request: &ModelRequest) -> Vec<u8> {
        let settings = ProviderSettings {
            base_url: Some(format!("https://{}", self.host)),
            ..ProviderSettings::new(self.provider, self.kind)
        };
        encode_request(request, &settings, true)
    }
}

pub(super) fn targets() -> Vec<Target> {
    let chats: [(_, _, _, fn(&Value)); 6] = [
        ("router", "h", "moonshotai/kimi-k2", |body| {
            check_chat(body, Order::Joined, |_| true, false);
        }),
        ("router", "h", "anthropic/claude-sonnet-4.5", |body| {
            check_chat(body, Order::Joined, |id| is_plain(id, 64), true);
        }),
        ("router", "h", "mistralai/mistral-medium-3", |body| {
            check_chat(body, Order::Strict, is_nine, true);
        }),
        ("openai", "api.openai.com", "gpt-4.1", |body| {
            check_chat(body, Order::Any, |id| id.len() <= 40, true);
        }),
        ("mistral", "api.mistral.ai", "mistral-large-latest", |body| {
            check_chat(body, Order::Strict, is_nine, true);
        }),
        ("groq", "api.groq.com", "llama-3.3-70b-versatile", |body| {
            check_chat(body, Order::Joined, |id| is_plain(id, 64), false);
        }),
    ];
    let others: [(_, _, _, fn(&Value)); 10] = [
        (
            ProviderKind::Anthropic,
            "anthropic",
            "claude-sonnet-4-5",
            check_messages,
        ),
        (ProviderKind::Anthropic, "anthropic", "claude-opus-4-1", check_messages),
        (ProviderKind::Gemini, "gemini", "gemini-3-pro", |body| {
            check_contents(body, true);
        }),
        (ProviderKind::Gemini, "gemini", "gemini-2.5-flash", |body| {
            check_contents(body, false);
        }),
        (
            ProviderKind::Bedrock,
            "bedrock",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            check_converse,
        ),
        (ProviderKind::Bedrock, "bedrock", "amazon.nova-pro-v1:0", check_converse),
        (
            ProviderKind::Bedrock,
            "bedrock",
            "amazon.nova-micro-v1:0",
            check_converse,
        ),
        (ProviderKind::OpenAiResponses, "responses", "gpt-5", |body| {
            check_input(body, true);
        }),
        (ProviderKind::OpenAiResponses, "responses", "gpt-4o", |body| {
            check_input(body, true);
        }),
        (ProviderKind::OpenAiResponses, "responses", "o3-mini", |body| {
            check_input(body, false);
        }),
    ];
    let chats = chats.map(|(provider, host, model, check)| Target {
        provider,
        model,
        host,
        kind: ProviderKind::OpenAiChat,
        check,
    });
    let others = others.map(|(kind, provider, model, check)| Target {
        provider,
        model,
        host: "h",
        kind,
        check,
    });
    chats.into_iter().chain(others).collect()
}

fn is_plain(id: &str, most: usize) -> bool {
    id.len() <= most && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn is_nine(id: &str) -> bool {
    id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric())
}
