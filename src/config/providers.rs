//! `[providers.NAME]`: the addresses of model providers, and where their API keys are found.
//!
//! A key itself is never part of the configuration. It is read from the named variable or file.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::PathBuf;

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer};

use super::aws::AwsConfig;
use super::error::Fault;
use super::values::{Text, path, variable_name};
use agent::ports::StructuredOutput;
use models::{ErrorWords, ProviderKind};
use values::http_headers::CREDENTIAL_HEADERS;

/// Where a provider's models are reached.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    pub kind: ProviderKind,
    /// Without a trailing slash; `None` for scripted providers, and for the address of the region.
    #[serde(default, deserialize_with = "base_url")]
    pub base_url: Option<String>,
    /// The environment variable that holds the API key.
    #[serde(default, deserialize_with = "variable_name")]
    pub api_key_env: Option<String>,
    /// A file that holds the API key; it wins over `api_key_env`.
    #[serde(default, deserialize_with = "path")]
    pub api_key_file: Option<PathBuf>,
    /// The models that may be used; empty allows any.
    #[serde(default)]
    pub models: Vec<String>,
    /// The most tokens that a request may ask for; `None` when it is not known.
    #[serde(default)]
    pub max_output_tokens: Option<NonZeroU64>,
    /// Requests streamed responses.
    #[serde(default = "streams")]
    pub stream: bool,
    /// How its models are asked for structured output; `None` leaves it to the protocol.
    #[serde(default)]
    pub structured_output: Option<StructuredOutput>,
    /// Splits off reasoning that its models leave in their words; `None` leaves it to the address.
    #[serde(default)]
    pub think_tags: Option<bool>,
    /// Codes and phrases of its errors beyond those that are built in.
    #[serde(default)]
    pub error_words: ErrorWords,
    /// Headers sent with every request beside the ones of the protocol. Their values may be
    /// credentials.
    #[serde(default)]
    pub headers: BTreeMap<String, SecretString>,
    /// The region and the credentials of a provider of the kind `bedrock`.
    #[serde(default)]
    pub aws: AwsConfig,
    /// The script of a scripted provider; `None` plays the built-in one.
    #[serde(default, deserialize_with = "path")]
    pub script: Option<PathBuf>,
    /// The API key that was found when the configuration was loaded.
    #[serde(skip)]
    pub api_key: Option<SecretString>,
}

/// Returns which `kind` to write instead of the name of a provider. `problem` is the error of the
/// unknown kind.
pub(super) fn kind_hint(path: &[String], problem: &str) -> Option<&'static str> {
    if !matches!(path, [table, _, key] if table == "providers" && key == "kind") {
        return None;
    }
    Some(match problem.split('`').nth(1)?.to_lowercase().as_str() {
        "openai" => "; write `openai_responses`, or `openai_chat` for chat completions",
        "azure" | "azure_openai" | "openai_compatible" | "openrouter" | "ollama" | "vllm" | "lmstudio" | "litellm"
        | "groq" | "together" | "fireworks" | "deepseek" | "mistral" | "xai" | "grok" | "cerebras" => {
            "; write `openai_chat`, which this server offers, and its `base_url`"
        }
        "claude" => "; write `anthropic`",
        "google" | "vertex" | "vertexai" | "vertex_ai" => "; write `gemini`",
        "aws" | "amazon" => "; write `bedrock`",
        _ => return None,
    })
}

pub(super) fn check(providers: &BTreeMap<String, ProviderConfig>) -> Result<(), Fault> {
    for (name, provider) in providers {
        if name.is_empty() || name.contains(|c: char| c == '/' || c.is_control() || c.is_whitespace()) {
            let problem = "a provider's name can't be empty or hold `/` or blanks";
            return Err(Fault::new(&["providers", name], problem));
        }
        check_provider(name, provider)?;
    }
    Ok(())
}

fn check_provider(name: &str, provider: &ProviderConfig) -> Result<(), Fault> {
    let fault = |key, problem: &str| Err(Fault::new(&["providers", name, key], problem));
    let scripted = provider.kind == ProviderKind::Scripted;
    if scripted && provider.base_url.is_some() {
        return fault("base_url", "a scripted provider has no address");
    }
    let bedrock = provider.kind == ProviderKind::Bedrock;
    if !bedrock && provider.aws.is_set() {
        return fault(
            "aws",
            "only a provider of the kind bedrock has a region and signs its requests",
        );
    }
    if !scripted && !bedrock && provider.base_url.is_none() {
        return fault("base_url", "missing: this kind of provider needs an address");
    }
    if !scripted && provider.script.is_some() {
        return fault("script", "only a scripted provider plays a script");
    }
    if provider.think_tags.is_some() && provider.kind != ProviderKind::OpenAiChat {
        return fault(
            "think_tags",
            "only a provider of the kind openai_chat has reasoning between tags",
        );
    }
    if provider.error_words.all().any(|(_, word)| word.trim().is_empty()) {
        return fault("error_words", "an empty word is part of every error");
    }
    for (header, value) in &provider.headers {
        if let Some(problem) = header_fault(header, value.expose_secret()) {
            return Err(Fault::new(&["providers", name, "headers", header], problem));
        }
    }
    Ok(())
}

fn header_fault(name: &str, value: &str) -> Option<&'static str> {
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        Some("not the name of a header")
    } else if CREDENTIAL_HEADERS.contains(&name.to_lowercase().as_str()) {
        Some("a header with credentials: name their source in api_key_env or api_key_file instead")
    } else if !value.chars().all(|c| c == '\t' || (' '..='~').contains(&c)) {
        Some("a header's value must be printable ASCII")
    } else {
        None
    }
}

fn streams() -> bool {
    true
}

fn base_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    deserializer.deserialize_str(Text::secret(
        "a URL such as \"https://api.openai.com/v1\", without user, query or fragment",
        |text: &str| {
            let url = text.trim().trim_end_matches('/');
            let address = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
            let plain = address
                .chars()
                .all(|c| c.is_ascii_graphic() && !"@?#\"<>\\".contains(c));
            let named = !address.starts_with(['/', ':']) && !address.is_empty();
            (plain && named).then(|| Some(url.to_owned()))
        },
    ))
}
