//! Names of models, the sizes of their context windows, and response formats.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema, Type};

use crate::json::Value;

/// Names a model as `PROVIDER/MODEL`: the provider's configured name, then the provider's own name
/// for the model.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct ModelRef {
    /// The whole name. Each step and each event of a run has one, so copies share it.
    name: Arc<str>,
    /// The length of the provider's name in bytes.
    provider_length: usize,
}

impl utoipa::PartialSchema for ModelRef {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String);
        text.description(Some("Names a model as `PROVIDER/MODEL`."))
            .pattern(Some(r"^[^/\s\x00-\x1f\x7f-\x9f]+/[^\s\x00-\x1f\x7f-\x9f]+$"))
            .examples(["openai/gpt-5-mini"])
            .into()
    }
}

impl utoipa::ToSchema for ModelRef {}

/// A text that is not `PROVIDER/MODEL`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a model is named PROVIDER/MODEL, such as openai/gpt-5-mini")]
pub struct ParseModelRefError;

impl ModelRef {
    /// Returns the provider's configured name.
    pub fn provider(&self) -> &str {
        &self.name[..self.provider_length]
    }

    /// Returns the provider's own name for the model; it may contain slashes.
    pub fn model(&self) -> &str {
        &self.name[self.provider_length + 1..]
    }
}

impl FromStr for ModelRef {
    type Err = ParseModelRefError;

    fn from_str(text: &str) -> Result<Self, ParseModelRefError> {
        let (provider, model) = text.split_once('/').ok_or(ParseModelRefError)?;
        let valid =
            !provider.is_empty() && !model.is_empty() && !text.chars().any(|c| c.is_control() || c.is_whitespace());
        if !valid {
            return Err(ParseModelRefError);
        }
        Ok(Self {
            name: text.into(),
            provider_length: provider.len(),
        })
    }
}

impl TryFrom<String> for ModelRef {
    type Error = ParseModelRefError;

    fn try_from(text: String) -> Result<Self, ParseModelRefError> {
        text.parse()
    }
}

impl Serialize for ModelRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name)
    }
}

impl fmt::Display for ModelRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// The shape that the final answer shall have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ResponseFormat {
    /// Plain words.
    #[default]
    Text,
    /// Any JSON object.
    JsonObject,
    /// JSON that a schema describes.
    JsonSchema {
        /// Names the schema for the model.
        #[schema(pattern = "^[A-Za-z0-9_-]{1,64}$")]
        name: String,
        /// The JSON Schema.
        schema: Value,
        /// Whether the provider shall enforce the schema.
        #[serde(default)]
        strict: bool,
    },
}

impl ResponseFormat {
    /// Returns whether the format is plain text.
    pub fn is_text(&self) -> bool {
        *self == Self::Text
    }
}

/// The known context windows of models in tokens, input and output together.
#[derive(Debug, Clone, Default)]
pub struct ContextWindows(BTreeMap<ModelRef, u64>);

impl ContextWindows {
    /// Returns the window of the model.
    pub fn window(&self, model: &ModelRef) -> Option<u64> {
        self.0.get(model).copied()
    }
}

impl FromIterator<(ModelRef, u64)> for ContextWindows {
    fn from_iter<I: IntoIterator<Item = (ModelRef, u64)>>(windows: I) -> Self {
        Self(windows.into_iter().collect())
    }
}

/// The stored form of a format, in any version.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StoredFormat {
    Text,
    JsonObject,
    JsonSchema {
        name: String,
        schema: Value,
        #[serde(default)]
        strict: bool,
    },
    #[serde(other)]
    Unknown,
}

/// Reads a format from a stored state. An unknown format becomes plain text, and unknown fields are
/// ignored. Both are rejected in a request.
pub fn stored_format<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ResponseFormat, D::Error> {
    Ok(match StoredFormat::deserialize(deserializer)? {
        StoredFormat::Text | StoredFormat::Unknown => ResponseFormat::Text,
        StoredFormat::JsonObject => ResponseFormat::JsonObject,
        StoredFormat::JsonSchema { name, schema, strict } => ResponseFormat::JsonSchema { name, schema, strict },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_may_contain_slashes_and_the_provider_may_not() {
        let model: ModelRef = "openrouter/anthropic/claude-sonnet-4.5".parse().unwrap();
        assert_eq!(
            (model.provider(), model.model()),
            ("openrouter", "anthropic/claude-sonnet-4.5")
        );
        assert_eq!(model.to_string(), "openrouter/anthropic/claude-sonnet-4.5");
        for bad in ["", "gpt", "/gpt", "openai/", "open ai/gpt", "openai/g\0pt"] {
            assert_eq!(bad.parse::<ModelRef>(), Err(ParseModelRefError), "{bad:?}");
        }
    }
}
