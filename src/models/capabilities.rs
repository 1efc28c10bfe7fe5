//! What models can take: one table by the names of models and the hosts of servers, and the
//! configuration on top.
//!
//! The table has only what a provider documents or what its error messages say. An unknown model
//! takes everything, so that the table never hides a picture from a model that could see it.

use std::collections::BTreeMap;
use std::sync::Arc;

use reqwest::Url;

use super::capability_settings::{ALL_MODELS, CapabilitySettings, Files, Roles};
use super::settings::{ProviderKind, ProviderSettings};

/// What a model can take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Whether it sees pictures.
    pub pictures: bool,
    /// The files that it reads.
    pub files: Files,
    /// The largest picture, in bytes of its base64 text.
    pub picture_bytes: usize,
    /// The longest side of a picture, in pixels.
    pub picture_side: usize,
    /// The most pictures in a request.
    pub request_pictures: usize,
    /// The most pictures in a request with a picture of more than [`LARGE_SIDE`] pixels.
    pub request_large_pictures: usize,
    /// The most files in a request.
    pub request_files: usize,
    /// The most bytes of pictures and files in a request, as base64 text.
    pub request_media_bytes: usize,
    /// The order of roles.
    pub roles: Roles,
    /// Whether ids of calls have nine letters and digits.
    pub nine_letter_ids: bool,
}

/// From this side on, a picture counts as large.
pub const LARGE_SIDE: usize = 2_000;

/// The capabilities of a model about which nothing is known.
const UNKNOWN: Capabilities = Capabilities {
    pictures: true,
    files: Files::Documents,
    picture_bytes: usize::MAX,
    picture_side: usize::MAX,
    request_pictures: usize::MAX,
    request_large_pictures: usize::MAX,
    request_files: usize::MAX,
    request_media_bytes: usize::MAX,
    roles: Roles::Joined,
    nine_letter_ids: false,
};

const MIB: usize = 1 << 20;

/// What a row of the tables changes.
type Change = fn(&mut Capabilities);

/// Models by words of their names, and words of similar models that differ.
const MODELS: &[(&[&str], &[&str], Change)] = &[
    (&["claude"], &[], limits_of_claude),
    (
        TEXT_MODELS,
        &["vl", "ocr", "omni", "vision", "multimodal", "11b", "90b"],
        takes_text,
    ),
    (&["gpt-4"], &["turbo", "vision"], takes_text),
    (
        &[
            "mistral",
            "ministral",
            "magistral",
            "mixtral",
            "codestral",
            "devstral",
            "pixtral",
        ],
        &[],
        of_mistral,
    ),
];

/// Models that take neither pictures nor files.
#[rustfmt::skip]
const TEXT_MODELS: &[&str] = &[
    "deepseek-chat", "deepseek-coder", "deepseek-reasoner", "deepseek-r1",
    "deepseek-v2", "deepseek-v2.5", "deepseek-v3", "deepseek-v3.1", "deepseek-v3.2",
    "kimi-k2", "moonshot-v1", "glm-4", "glm-4.5", "glm-4.6", "glm-4.7",
    "minimax-m1", "minimax-m2", "minimax-m2.1", "qwen2", "qwen2.5", "qwen3", "qwen-max", "qwen-turbo", "qwq",
    "gpt-3.5", "gpt-oss", "o1-mini", "o1-preview", "o3-mini", "grok-3", "grok-code-fast",
    "llama2", "llama-2", "llama3", "llama-3", "llama3.1", "llama-3.1", "llama3.2", "llama-3.2", "llama3.3", "llama-3.3",
    "mistral-7b", "open-mistral", "mistral-nemo", "mixtral", "codestral", "command-r", "jamba",
    "gemma2", "gemma-2", "phi3", "phi-3", "phi4", "phi-4",
    "nova-micro", "titan-text", "claude-2", "claude-2.1", "claude-v2", "claude-instant",
];

/// Servers by the end of their hosts.
const HOSTS: &[(&str, Change)] = &[
    ("api.openai.com", of_openai),
    (".openai.azure.com", of_openai),
    ("api.mistral.ai", of_mistral),
    ("api.groq.com", of_groq),
];

/// <https://platform.claude.com/docs/en/build-with-claude/vision>, "General limits". The 5 MB count
/// on the base64 text.
fn limits_of_claude(can: &mut Capabilities) {
    can.files = can.files.min(Files::Pdf);
    can.picture_bytes = 5 * MIB;
    can.picture_side = 8_000;
    can.request_pictures = can.request_pictures.min(100);
    can.request_large_pictures = 20;
    can.request_media_bytes = can.request_media_bytes.min(28 * MIB);
}

/// <https://platform.openai.com/docs/guides/images-vision>: 50 MB in a request.
fn of_openai(can: &mut Capabilities) {
    can.roles = Roles::Any;
    (can.request_pictures, can.request_media_bytes) = (500, 48 * MIB);
}

/// Its server refuses a message of the caller right after a result of a tool.
fn of_mistral(can: &mut Capabilities) {
    (can.roles, can.nine_letter_ids) = (Roles::Strict, true);
}

/// <https://console.groq.com/docs/vision>
fn of_groq(can: &mut Capabilities) {
    (can.files, can.picture_bytes, can.request_pictures) = (Files::None, 4 * MIB, 5);
}

fn takes_text(can: &mut Capabilities) {
    (can.pictures, can.files) = (false, Files::None);
}

fn of_protocol(kind: ProviderKind, can: &mut Capabilities) {
    match kind {
        ProviderKind::OpenAiChat | ProviderKind::Scripted => {}
        ProviderKind::OpenAiResponses => of_openai(can),
        // Servers with this protocol are made for clients of Claude.
        ProviderKind::Anthropic => limits_of_claude(can),
        // <https://ai.google.dev/gemini-api/docs/image-understanding>: 20 MB in a request.
        ProviderKind::Gemini => (can.files, can.request_media_bytes) = (Files::All, 18 * MIB),
        // <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html>
        ProviderKind::Bedrock => {
            (can.files, can.request_files) = (Files::All, 5);
            (can.picture_bytes, can.picture_side) = (5 * MIB, 8_000);
            (can.request_pictures, can.request_media_bytes) = (20, 18 * MIB);
        }
    }
}

/// The capabilities of the models of a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProviderCapabilities {
    host: String,
    configured: Arc<BTreeMap<String, CapabilitySettings>>,
}

impl ProviderCapabilities {
    /// Makes the capabilities of a provider at this host, without any configuration.
    pub fn at(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            ..Self::default()
        }
    }

    /// Makes the capabilities of a provider at this address.
    pub(super) fn new(settings: &ProviderSettings, url: &Url) -> Self {
        Self {
            configured: Arc::clone(&settings.capabilities),
            ..Self::at(url.host_str().unwrap_or_default())
        }
    }

    /// Returns what a model can take. The protocol is the most general, then come the host, the
    /// model's name, the configuration of the provider and the configuration of the model.
    pub fn of(&self, kind: ProviderKind, model: &str) -> Capabilities {
        let mut can = UNKNOWN;
        of_protocol(kind, &mut can);
        for (host, change) in HOSTS {
            if self.host == *host || (host.starts_with('.') && self.host.ends_with(host)) {
                change(&mut can);
            }
        }
        let name = model.to_ascii_lowercase();
        for (words, others, change) in MODELS {
            let is_named = |words: &[&str]| words.iter().any(|word| has_word(&name, word));
            if is_named(words) && !is_named(others) {
                change(&mut can);
            }
        }
        for named in [ALL_MODELS, model] {
            if let Some(settings) = self.configured.get(named) {
                settings.apply(&mut can);
            }
        }
        can
    }
}

impl CapabilitySettings {
    fn apply(&self, can: &mut Capabilities) {
        fn set<T: Copy>(value: &mut T, configured: Option<T>) {
            *value = configured.unwrap_or(*value);
        }
        set(&mut can.pictures, self.pictures);
        set(&mut can.files, self.files);
        set(&mut can.picture_bytes, self.max_picture_bytes);
        set(&mut can.picture_side, self.max_picture_side);
        set(&mut can.request_pictures, self.max_pictures);
        set(&mut can.roles, self.roles);
    }
}

/// Returns whether a name has a word: nothing before it continues it, and neither a letter nor a
/// further part of a version follows. So `glm-4.5` is a word of `z-ai/glm-4.5-air`, but not of
/// `glm-4.5v`, and `kimi-k2` is no word of `kimi-k2.5`.
fn has_word(name: &str, word: &str) -> bool {
    name.match_indices(word).any(|(start, _)| {
        let before = name[..start].chars().next_back();
        let after = name[start + word.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(|c| c.is_alphanumeric() || c == '.')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(model: &str) -> Capabilities {
        ProviderCapabilities::default().of(ProviderKind::OpenAiChat, model)
    }

    #[test]
    fn text_models_are_known_by_name_and_others_see() {
        for (model, sees) in [
            ("deepseek-chat", false),
            ("deepseek/deepseek-v3.2-exp", false),
            ("deepseek-r1-distill-llama-70b", false),
            ("deepseek-vl2", true),
            ("kimi-k2-0905-preview", false),
            ("kimi-k2-turbo-preview", false),
            ("kimi-k2.5", true),
            ("z-ai/glm-4.6", false),
            ("glm-4.6v", true),
            ("glm-4v-plus", true),
            ("openai/gpt-oss-120b", false),
            ("gpt-4", false),
            ("gpt-4-0613", false),
            ("gpt-4-turbo", true),
            ("gpt-4o", true),
            ("gpt-4.1", true),
            ("gpt-3.5-turbo-0125", false),
            ("o3-mini", false),
            ("o3", true),
            ("qwen3:8b", false),
            ("Qwen/Qwen3-VL-8B", true),
            ("qwen3.5-plus", true),
            ("llama-3.3-70b-versatile", false),
            ("llama-3.2-11b-vision-preview", true),
            ("meta-llama/llama-4-scout-17b", true),
            ("us.meta.llama3-1-70b-instruct-v1:0", false),
            ("amazon.nova-micro-v1:0", false),
            ("amazon.nova-pro-v1:0", true),
            ("anthropic.claude-v2", false),
            ("claude-sonnet-4-5", true),
            ("gemma2:9b", false),
            ("gemma-3-27b-it", true),
            ("my-deployment", true),
        ] {
            assert_eq!(chat(model).pictures, sees, "{model}");
        }
    }

    #[test]
    fn the_configuration_is_on_top() {
        let settings = |pictures| CapabilitySettings {
            pictures: Some(pictures),
            ..CapabilitySettings::default()
        };
        let configured = [
            (ALL_MODELS.to_owned(), settings(false)),
            ("m".to_owned(), settings(true)),
        ];
        let models = ProviderCapabilities {
            host: "api.mistral.ai".to_owned(),
            configured: Arc::new(configured.into()),
        };
        for (model, sees) in [("m", true), ("claude-x", false), ("gpt-4", false)] {
            let can = models.of(ProviderKind::OpenAiChat, model);
            assert_eq!((can.pictures, can.roles), (sees, Roles::Strict), "{model}");
        }
    }

    #[test]
    fn a_server_s_order_of_roles_follows_from_its_host_or_the_model() {
        assert_eq!(chat("m").roles, Roles::Joined);
        assert_eq!(chat("mistralai/devstral-medium").roles, Roles::Strict);
        let openai = ProviderCapabilities {
            host: "x.openai.azure.com".to_owned(),
            ..ProviderCapabilities::default()
        };
        assert_eq!(openai.of(ProviderKind::OpenAiChat, "m").roles, Roles::Any);
    }
}
