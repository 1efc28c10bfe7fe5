//! The models to which histories are sent, with the rules of their servers.

use agent::ports::ModelRequest;
use models::{IdRule, MaxTokensField, ProviderCapabilities, anthropic, bedrock, gemini, openai_chat, openai_responses};
use serde_json::Value;
use test_support::wire_rules::{Order, check_chat, check_contents, check_converse, check_input, check_messages};

type Encode = Box<dyn Fn(&ModelRequest) -> Vec<u8> + std::panic::RefUnwindSafe>;

/// A model, and the rules of its server.
pub(super) struct Target {
    pub(super) provider: &'static str,
    pub(super) model: &'static str,
    pub(super) encode: Encode,
    pub(super) check: fn(&Value),
}

#[expect(clippy::too_many_lines, reason = "it is a list of targets")]
pub(super) fn targets() -> Vec<Target> {
    let mut targets = vec![
        chat("router", "", "moonshotai/kimi-k2", IdRule::Any, |body| {
            check_chat(body, Order::Joined, |_| true, false);
        }),
        chat("router", "", "anthropic/claude-sonnet-4.5", IdRule::Any, |body| {
            check_chat(body, Order::Joined, |id| is_plain(id, 64), true);
        }),
        chat("router", "", "mistralai/mistral-medium-3", IdRule::Any, |body| {
            check_chat(body, Order::Strict, is_nine, true);
        }),
        chat("openai", "api.openai.com", "gpt-4.1", IdRule::UpTo(40), |body| {
            check_chat(body, Order::Any, |id| id.len() <= 40, true);
        }),
        chat(
            "mistral",
            "api.mistral.ai",
            "mistral-large-latest",
            IdRule::Nine,
            |body| {
                check_chat(body, Order::Strict, is_nine, true);
            },
        ),
        chat("groq", "api.groq.com", "llama-3.3-70b-versatile", IdRule::Any, |body| {
            check_chat(body, Order::Joined, |id| is_plain(id, 64), false);
        }),
    ];
    for model in ["claude-sonnet-4-5", "claude-opus-4-1"] {
        let dialect = anthropic::MessagesDialect {
            provider: "anthropic".to_owned(),
            max_output_tokens: None,
            capabilities: ProviderCapabilities::default(),
        };
        targets.push(Target {
            provider: "anthropic",
            model,
            encode: Box::new(move |request| anthropic::encode_request(request, &dialect, true)),
            check: check_messages,
        });
    }
    for (model, check) in [
        ("gemini-3-pro", (|body| check_contents(body, true)) as fn(&Value)),
        ("gemini-2.5-flash", |body| check_contents(body, false)),
    ] {
        let dialect = gemini::GeminiDialect {
            provider: "gemini".to_owned(),
            max_output_tokens: None,
            capabilities: ProviderCapabilities::default(),
        };
        targets.push(Target {
            provider: "gemini",
            model,
            encode: Box::new(move |request| gemini::encode_request(request, &dialect)),
            check,
        });
    }
    for model in [
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "amazon.nova-pro-v1:0",
        "amazon.nova-micro-v1:0",
    ] {
        let dialect = bedrock::ConverseDialect {
            provider: "bedrock".to_owned(),
            max_output_tokens: None,
            capabilities: ProviderCapabilities::default(),
        };
        targets.push(Target {
            provider: "bedrock",
            model,
            encode: Box::new(move |request| bedrock::encode_request(request, &dialect)),
            check: check_converse,
        });
    }
    for (model, check) in [
        ("gpt-5", (|body| check_input(body, true)) as fn(&Value)),
        ("gpt-4o", |body| check_input(body, true)),
        ("o3-mini", |body| check_input(body, false)),
    ] {
        let dialect = openai_responses::Dialect {
            provider: "responses".to_owned(),
            max_output_tokens: None,
            capabilities: ProviderCapabilities::default(),
        };
        targets.push(Target {
            provider: "responses",
            model,
            encode: Box::new(move |request| openai_responses::encode_request(request, &dialect, true)),
            check,
        });
    }
    targets
}

fn chat(provider: &'static str, host: &str, model: &'static str, call_ids: IdRule, check: fn(&Value)) -> Target {
    let dialect = openai_chat::Dialect {
        provider: provider.to_owned(),
        max_tokens_field: MaxTokensField::MaxTokens,
        max_output_tokens: None,
        stream_options: true,
        refusal_field: host == "api.openai.com",
        call_ids,
        capabilities: ProviderCapabilities::at(host),
        think_tags: false,
    };
    Target {
        provider,
        model,
        encode: Box::new(move |request| openai_chat::encode_request(request, &dialect, true)),
        check,
    }
}

fn is_plain(id: &str, most: usize) -> bool {
    id.len() <= most && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn is_nine(id: &str) -> bool {
    id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric())
}
