//! The capabilities of models: the table `capabilities.toml`, and the configuration on top.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use reqwest::Url;
use serde::Deserialize;

use super::capability_settings::{ALL_MODELS, Capabilities};
use super::settings::{ProviderKind, ProviderSettings};

/// The table. A test reads it.
static TABLE: LazyLock<Table> = LazyLock::new(|| toml::from_str(include_str!("capabilities.toml")).unwrap_or_default());

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    rows: Vec<Row>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Row {
    protocols: Vec<ProviderKind>,
    hosts: Vec<String>,
    models: Vec<String>,
    unless: Vec<String>,
    can: Capabilities,
}

impl Row {
    fn is_for(&self, kind: ProviderKind, host: &str, model: &str) -> bool {
        let is_host = |known: &String| host == known || (known.starts_with('.') && host.ends_with(known.as_str()));
        let is_named = |words: &[String]| words.iter().any(|word| has_word(model, word));
        self.protocols.contains(&kind)
            || self.hosts.iter().any(is_host)
            || (is_named(&self.models) && !is_named(&self.unless))
    }
}

/// The capabilities of the models of a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ProviderCapabilities {
    host: String,
    configured: Arc<BTreeMap<String, Capabilities>>,
}

impl ProviderCapabilities {
    /// Makes the capabilities of a provider at this address.
    pub(super) fn new(settings: &ProviderSettings, url: &Url) -> Self {
        Self {
            host: url.host_str().unwrap_or_default().to_owned(),
            configured: Arc::clone(&settings.capabilities),
        }
    }

    /// Returns the capabilities of a model. The configuration of the model comes before that of the
    /// provider, and both before the table.
    pub(super) fn of(&self, kind: ProviderKind, model: &str) -> Capabilities {
        let name = model.to_ascii_lowercase();
        let rows = TABLE.rows.iter().filter(|row| row.is_for(kind, &self.host, &name));
        let known = rows.fold(Capabilities::default(), |known, row| known.and(row.can));
        let configured = [ALL_MODELS, model]
            .into_iter()
            .filter_map(|name| self.configured.get(name));
        configured.fold(known, |known, configured| configured.or(known))
    }
}

impl Capabilities {
    /// Returns the capabilities that both allow.
    fn and(self, other: Self) -> Self {
        fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
            one.into_iter().chain(other).min()
        }
        Self {
            pictures: least(self.pictures, other.pictures),
            files: least(self.files, other.files),
            max_picture_bytes: least(self.max_picture_bytes, other.max_picture_bytes),
            max_picture_side: least(self.max_picture_side, other.max_picture_side),
            max_pictures: least(self.max_pictures, other.max_pictures),
            max_pictures_with_large: least(self.max_pictures_with_large, other.max_pictures_with_large),
            max_files: least(self.max_files, other.max_files),
            max_media_bytes: least(self.max_media_bytes, other.max_media_bytes),
            roles: least(self.roles, other.roles),
            nine_letter_ids: self.nine_letter_ids || other.nine_letter_ids,
        }
    }

    /// Returns these capabilities, with missing ones taken from the others.
    fn or(self, known: Self) -> Self {
        Self {
            pictures: self.pictures.or(known.pictures),
            files: self.files.or(known.files),
            max_picture_bytes: self.max_picture_bytes.or(known.max_picture_bytes),
            max_picture_side: self.max_picture_side.or(known.max_picture_side),
            max_pictures: self.max_pictures.or(known.max_pictures),
            max_pictures_with_large: self.max_pictures_with_large.or(known.max_pictures_with_large),
            max_files: self.max_files.or(known.max_files),
            max_media_bytes: self.max_media_bytes.or(known.max_media_bytes),
            roles: self.roles.or(known.roles),
            nine_letter_ids: self.nine_letter_ids || known.nine_letter_ids,
        }
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
    use crate::capability_settings::{Files, Roles};

    fn chat(model: &str) -> Capabilities {
        ProviderCapabilities::default().of(ProviderKind::OpenAiChat, model)
    }

    #[test]
    fn the_table_is_read_and_its_strictest_rows_count() {
        let table: Table = toml::from_str(include_str!("capabilities.toml")).unwrap();
        assert!(!table.rows.is_empty());
        let claude = ProviderCapabilities::default().of(ProviderKind::Bedrock, "anthropic.claude-x");
        let limits = (claude.files, claude.max_pictures, claude.max_pictures_with_large);
        assert_eq!(limits, (Some(Files::Pdf), Some(20), Some(20)));
    }

    #[test]
    fn a_row_with_an_unknown_key_is_refused() {
        for row in ["can.roles = \"any\"", "hosts = [\"a\"]\ncan.pictures = false"] {
            toml::from_str::<Table>(&format!("[[rows]]\n{row}")).unwrap();
        }
        for row in ["can.role = \"any\"", "roles = \"any\"", "host = [\"a\"]"] {
            toml::from_str::<Table>(&format!("[[rows]]\n{row}")).unwrap_err();
        }
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
            assert_eq!(chat(model).pictures.is_none(), sees, "{model}");
        }
    }

    #[test]
    fn the_configuration_is_on_top() {
        let settings = |pictures| Capabilities {
            pictures: Some(pictures),
            ..Capabilities::default()
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
            assert_eq!((can.pictures, can.roles), (Some(sees), Some(Roles::Strict)), "{model}");
        }
    }

    #[test]
    fn a_server_s_order_of_roles_follows_from_its_host_or_the_model() {
        assert_eq!(chat("m").roles, None);
        assert_eq!(chat("mistralai/devstral-medium").roles, Some(Roles::Strict));
        let openai = ProviderCapabilities {
            host: "x.openai.azure.com".to_owned(),
            ..ProviderCapabilities::default()
        };
        assert_eq!(openai.of(ProviderKind::OpenAiChat, "m").roles, Some(Roles::Any));
    }
}
