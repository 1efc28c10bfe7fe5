//! The part of a response that repeats its request.
//!
//! It is stored with the run, so a response that is read later is the response of the request. A
//! run that another interface has started has no echo; then the defaults apply.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::json;

use values::json::{Object, Value, json_length, json_length_within};

/// The most bytes of an echo as JSON. The record of each run has its echo.
pub(in crate::http) const MAX_ECHO: usize = 1 << 20;

/// The fields of an echo without a request.
static DEFAULTS: LazyLock<Object> = LazyLock::new(|| Echo::default().fields());

/// The value of `include` that asks for encrypted reasoning.
pub(in crate::http) const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

/// The fields of a response that repeat its request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::http) struct Echo {
    /// The model as the client has named it; empty if the run has no echo.
    pub(in crate::http) model: String,
    pub(in crate::http) previous_response_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) conversation: Option<ConversationId>,
    pub(in crate::http) instructions: Option<String>,
    pub(in crate::http) tools: Vec<Value>,
    pub(in crate::http) tool_choice: Value,
    pub(in crate::http) parallel_tool_calls: bool,
    pub(in crate::http) text: Value,
    pub(in crate::http) reasoning: ReasoningEcho,
    pub(in crate::http) temperature: f64,
    pub(in crate::http) top_p: f64,
    pub(in crate::http) presence_penalty: f64,
    pub(in crate::http) frequency_penalty: f64,
    pub(in crate::http) top_logprobs: u32,
    pub(in crate::http) max_output_tokens: Option<u64>,
    pub(in crate::http) max_tool_calls: Option<u64>,
    pub(in crate::http) truncation: String,
    pub(in crate::http) store: bool,
    pub(in crate::http) background: bool,
    pub(in crate::http) service_tier: String,
    pub(in crate::http) metadata: BTreeMap<String, String>,
    pub(in crate::http) safety_identifier: Option<String>,
    pub(in crate::http) prompt_cache_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) prompt_cache_retention: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::http) user: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(in crate::http) include: Vec<String>,
}

/// The conversation of a response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::http) struct ConversationId {
    pub(in crate::http) id: String,
}

/// The settings of reasoning. Both keys are always present.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(in crate::http) struct ReasoningEcho {
    pub(in crate::http) effort: Option<String>,
    pub(in crate::http) summary: Option<String>,
}

impl Default for Echo {
    fn default() -> Self {
        Self {
            model: String::new(),
            previous_response_id: None,
            conversation: None,
            instructions: None,
            tools: Vec::new(),
            tool_choice: json!("auto"),
            parallel_tool_calls: true,
            text: json!({"format": {"type": "text"}}),
            reasoning: ReasoningEcho::default(),
            temperature: 1.0,
            top_p: 1.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            top_logprobs: 0,
            max_output_tokens: None,
            max_tool_calls: None,
            truncation: "disabled".to_owned(),
            store: true,
            background: false,
            service_tier: "default".to_owned(),
            metadata: BTreeMap::new(),
            safety_identifier: None,
            prompt_cache_key: None,
            prompt_cache_retention: None,
            user: None,
            include: Vec::new(),
        }
    }
}

impl Echo {
    /// Returns the form that is stored with the run: the fields that differ from their default.
    pub(in crate::http) fn to_object(&self) -> Object {
        let mut fields = self.fields();
        fields.retain(|name, value| DEFAULTS.get(name) != Some(value));
        fields
    }

    fn fields(&self) -> Object {
        match serde_json::to_value(self) {
            Ok(Value::Object(object)) => object,
            // A struct of JSON values is always an object.
            _ => Object::new(),
        }
    }

    /// Returns the largest field of an echo that is too large to be stored; `None` if it is not.
    pub(in crate::http) fn excess(&self) -> Option<String> {
        if json_length_within(self, MAX_ECHO).is_some() {
            return None;
        }
        let fields = self.to_object().into_iter();
        let largest = fields.max_by_key(|(_, value)| json_length(value));
        largest.map(|(field, _)| field)
    }

    /// Reads the stored form. A part that can't be read has its default.
    pub(in crate::http) fn of_stored(echo: Option<&Object>) -> Self {
        echo.and_then(|echo| Self::deserialize(echo).ok()).unwrap_or_default()
    }

    /// Returns whether the response has encrypted reasoning.
    pub(in crate::http) fn encrypts_reasoning(&self) -> bool {
        self.include.iter().any(|included| included == ENCRYPTED_REASONING)
    }

    /// Returns whether the output is JSON, so that only a whole text can be read.
    pub(in crate::http) fn is_json(&self) -> bool {
        let format = self.text.pointer("/format/type").and_then(Value::as_str);
        format.is_some_and(|format| format != "text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_survives_its_stored_form() {
        let echo = Echo {
            model: "support".to_owned(),
            tool_choice: json!({"type": "function", "name": "f"}),
            include: vec![ENCRYPTED_REASONING.to_owned()],
            ..Echo::default()
        };
        let stored = echo.to_object();
        let expected = json!({"model": "support", "tool_choice": echo.tool_choice, "include": echo.include});
        assert_eq!(Value::Object(stored.clone()), expected);
        assert_eq!(Echo::of_stored(Some(&stored)), echo);
        assert_eq!(Echo::of_stored(None), Echo::default());
        assert!(echo.encrypts_reasoning() && !echo.is_json());
    }

    #[test]
    fn an_echo_that_is_too_large_names_its_largest_field() {
        let tool = json!({"type": "web_search", "filler": "x".repeat(MAX_ECHO)});
        let mut echo = Echo {
            tools: vec![tool],
            instructions: Some("Be brief.".to_owned()),
            ..Echo::default()
        };
        assert_eq!(echo.excess().as_deref(), Some("tools"));
        echo.tools.clear();
        assert_eq!(echo.excess(), None);
    }
}
