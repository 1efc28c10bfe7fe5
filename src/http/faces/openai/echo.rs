//! The part of a response that repeats its request.
//!
//! It is stored with the run, so a response that is read later is the response of the request. A
//! run that another interface has started has no echo; then the defaults apply.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::{Deserialize, Serialize};
use serde_json::json;

use values::json::{Object, Value, json_length, json_length_within};

/// The most bytes of an echo as JSON. The record of each run has its echo.
pub(in crate::http) const MAX_ECHO: usize = 1 << 20;

/// The value of `include` that asks for encrypted reasoning.
pub(in crate::http) const ENCRYPTED_REASONING: &str = "reasoning.encrypted_content";

/// Declares the echo: each field with the value that stands for a request without it.
macro_rules! echo {
    ($($(#[$attribute:meta])* $field:ident: $type:ty = $default:expr;)*) => {
        /// The fields of a response that repeat its request.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(default)]
        pub(in crate::http) struct Echo {
            $($(#[$attribute])* pub(in crate::http) $field: $type,)*
        }

        impl Default for Echo {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl Echo {
            /// Returns the form that is stored with the run: the fields that differ from their
            /// default.
            pub(in crate::http) fn to_object(&self) -> Object {
                let mut fields = Object::new();
                $(if self.$field.ne(&DEFAULT.$field) {
                    // Each of these types is a value of JSON.
                    fields.insert(stringify!($field).to_owned(), json!(self.$field));
                })*
                fields
            }
        }
    };
}

echo! {
    /// The model as the client has named it; empty if the run has no echo.
    model: String = String::new();
    previous_response_id: Option<String> = None;
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<ConversationId> = None;
    instructions: Option<String> = None;
    tools: Vec<Value> = Vec::new();
    tool_choice: Value = json!("auto");
    parallel_tool_calls: bool = true;
    text: Value = json!({"format": {"type": "text"}});
    reasoning: ReasoningEcho = ReasoningEcho::default();
    temperature: f64 = 1.0;
    top_p: f64 = 1.0;
    presence_penalty: f64 = 0.0;
    frequency_penalty: f64 = 0.0;
    top_logprobs: u32 = 0;
    max_output_tokens: Option<u64> = None;
    max_tool_calls: Option<u64> = None;
    truncation: String = "disabled".to_owned();
    store: bool = true;
    background: bool = false;
    service_tier: String = "default".to_owned();
    metadata: BTreeMap<String, String> = BTreeMap::new();
    safety_identifier: Option<String> = None;
    prompt_cache_key: Option<String> = None;
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt_cache_retention: Option<String> = None;
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<String> = None;
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<String> = Vec::new();
}

/// The echo of a run that another interface has started.
static DEFAULT: LazyLock<Arc<Echo>> = LazyLock::new(Arc::default);

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

impl Echo {
    /// Returns the largest field of an echo that is too large to be stored; `None` if it is not.
    pub(in crate::http) fn excess(&self) -> Option<String> {
        if json_length_within(self, MAX_ECHO).is_some() {
            return None;
        }
        let fields = self.to_object().into_iter();
        let largest = fields.max_by_key(|(_, value)| json_length(value));
        largest.map(|(field, _)| field)
    }

    /// Reads the stored form. A form that can't be read is that of a run without an echo.
    pub(in crate::http) fn of_stored(echo: Option<&Object>) -> Arc<Self> {
        let read = echo.and_then(|echo| Self::deserialize(echo).ok());
        read.map_or_else(|| Arc::clone(&DEFAULT), Arc::new)
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
        assert_eq!(*Echo::of_stored(Some(&stored)), echo);
        assert_eq!(*Echo::of_stored(None), Echo::default());
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
