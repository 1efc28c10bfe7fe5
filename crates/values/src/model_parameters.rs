//! Parameters of model calls that an agent or a session sets: sampling, length, reasoning effort,
//! tool choice. Data only.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{Array, ArrayBuilder, ObjectBuilder, Type};

use crate::json::{Object, Value};

/// The most stop sequences; providers accept four.
const MAX_STOPS: usize = 4;
/// The most bytes of a stop sequence, and of the reasoning effort.
const MAX_TEXT_BYTES: usize = 1024;

/// Fields that make a provider forward the request to another model than the named one. They are
/// rejected, since the agent's own list decides on the models and their prices.
const FIELDS_OF_OTHER_MODELS: [&str; 7] = [
    "model",
    "models",
    "route",
    "preset",
    "fallbacks",
    "context_window_fallbacks",
    "content_policy_fallbacks",
];

/// How a model shall answer; an absent parameter is left to the provider.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ModelParameters {
    /// The sampling temperature, from 0 to 2.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 2)]
    pub temperature: Option<f64>,
    /// The share of the probability that tokens are drawn from: 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 0, maximum = 1)]
    pub top_p: Option<f64>,
    /// The most tokens of one completion. The rest of the budget bounds them, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(minimum = 1)]
    pub max_output_tokens: Option<u64>,
    /// How hard a reasoning model shall think, in the provider's own word, such as `low` or `high`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(min_length = 1, max_length = 1024)]
    pub reasoning_effort: Option<String>,
    /// Texts that end a completion.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(schema_with = stop_texts)]
    pub stop: Vec<String>,
    /// Which tools the model may or must call; by default it decides itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether a completion has at most one tool call, if the provider's protocol can ensure that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub single_tool_call: Option<bool>,
    /// Further fields of the request's body, in the provider's own format. They never replace a
    /// field that the service sets.
    #[serde(skip_serializing_if = "Object::is_empty")]
    pub extra: Object,
}

/// Tools that a provider executes itself, in its own format, by the provider's configured name.
pub type ProviderTools = BTreeMap<String, Vec<Object>>;

/// Which tools a model may or must call. A choice that forces a call applies only to the first
/// completion of an execution. Otherwise the model would never end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model calls none.
    None,
    /// The model calls at least one.
    Required,
    /// The model calls the tool of this name.
    Tool(String),
}

fn stop_texts() -> Array {
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .min_length(Some(1))
        .max_length(Some(MAX_TEXT_BYTES));
    ArrayBuilder::new()
        .items(text)
        .max_items(Some(MAX_STOPS))
        .description(Some("Texts that end an answer."))
        .build()
}

impl ToolChoice {
    /// Returns whether the model must call a tool.
    pub fn forces_a_call(&self) -> bool {
        matches!(self, Self::Required | Self::Tool(_))
    }
}

impl ModelParameters {
    /// Returns whether no parameter is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns these parameters. A parameter that is absent here comes from `other`.
    #[must_use]
    pub fn over(&self, other: &Self) -> Self {
        let Self {
            temperature,
            top_p,
            max_output_tokens,
            reasoning_effort,
            stop,
            tool_choice,
            single_tool_call,
            extra,
        } = self.clone();
        Self {
            temperature: temperature.or(other.temperature),
            top_p: top_p.or(other.top_p),
            max_output_tokens: max_output_tokens.or(other.max_output_tokens),
            reasoning_effort: reasoning_effort.or_else(|| other.reasoning_effort.clone()),
            stop: if stop.is_empty() { other.stop.clone() } else { stop },
            tool_choice: tool_choice.or_else(|| other.tool_choice.clone()),
            single_tool_call: single_tool_call.or(other.single_tool_call),
            extra: if extra.is_empty() { other.extra.clone() } else { extra },
        }
    }

    /// Checks every parameter. The error names the invalid parameter and its rule.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        let temperature_fits = self.temperature.is_none_or(|value| (0.0..=2.0).contains(&value));
        let top_p_fits = self.top_p.is_none_or(|value| (0.0..=1.0).contains(&value));
        let effort = self.reasoning_effort.as_deref();
        let checks = [
            (temperature_fits, "temperature", "must be between 0 and 2"),
            (top_p_fits, "top_p", "must be between 0 and 1"),
            (
                self.max_output_tokens != Some(0),
                "max_output_tokens",
                "must be at least 1",
            ),
            (
                effort.is_none_or(|effort| (1..=MAX_TEXT_BYTES).contains(&effort.len())),
                "reasoning_effort",
                "must have 1 to 1024 bytes",
            ),
            (self.stop.len() <= MAX_STOPS, "stop", "must have at most 4 texts"),
            (
                self.stop.iter().all(|text| (1..=MAX_TEXT_BYTES).contains(&text.len())),
                "stop",
                "must have texts of 1 to 1024 bytes",
            ),
            (
                self.extra.get("background") != Some(&Value::Bool(true)),
                "extra",
                "must not have background: true, since an answer that comes later is not fetched",
            ),
            (
                !FIELDS_OF_OTHER_MODELS.iter().any(|name| self.extra.contains_key(*name)),
                "extra",
                "must not have model, models, route, preset, fallbacks, context_window_fallbacks or content_policy_fallbacks: the \
                 models that may answer are the agent's own `models`",
            ),
        ];
        let fault = checks.into_iter().find(|(fits, ..)| !fits);
        fault.map_or(Ok(()), |(_, field, rule)| Err((field, rule)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_make_no_sense_are_named() {
        for (json, field, rule) in [
            (r#"{"temperature": 2.5}"#, "temperature", "must be between 0 and 2"),
            (r#"{"top_p": 1.5}"#, "top_p", "must be between 0 and 1"),
            (r#"{"top_p": -0.5}"#, "top_p", "must be between 0 and 1"),
            (r#"{"max_output_tokens": 0}"#, "max_output_tokens", "must be at least 1"),
            (
                r#"{"reasoning_effort": ""}"#,
                "reasoning_effort",
                "must have 1 to 1024 bytes",
            ),
            (
                r#"{"stop": ["a", "b", "c", "d", "e"]}"#,
                "stop",
                "must have at most 4 texts",
            ),
            (r#"{"stop": [""]}"#, "stop", "must have texts of 1 to 1024 bytes"),
            (
                r#"{"extra": {"background": true}}"#,
                "extra",
                "must not have background: true, since an answer that comes later is not fetched",
            ),
            (
                &format!(r#"{{"stop": ["{}"]}}"#, "x".repeat(1025)),
                "stop",
                "must have texts of 1 to 1024 bytes",
            ),
        ] {
            let parameters: ModelParameters = serde_json::from_str(json).unwrap();
            assert_eq!(parameters.check(), Err((field, rule)), "{json}");
        }
        for field in FIELDS_OF_OTHER_MODELS {
            let extra = Object::from_iter([(field.to_owned(), Value::Null)]);
            let parameters = ModelParameters {
                extra,
                ..ModelParameters::default()
            };
            let (place, rule) = parameters.check().unwrap_err();
            assert_eq!(place, "extra");
            let names = ["must not have model,", &format!(" {field}"), "the agent's own `models`"];
            assert!(names.iter().all(|name| rule.contains(name)), "{field}: {rule}");
        }
        for json in [
            "{}",
            r#"{"temperature": 0, "top_p": 0}"#,
            r#"{"temperature": 2, "top_p": 1}"#,
        ] {
            let parameters: ModelParameters = serde_json::from_str(json).unwrap();
            assert_eq!(parameters.check(), Ok(()), "{json}");
        }
        assert_eq!(serde_json::to_string(&ModelParameters::default()).unwrap(), "{}");
    }
}
