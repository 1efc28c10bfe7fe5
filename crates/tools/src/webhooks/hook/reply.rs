//! The reply of a webhook as data: the requested changes. `apply.rs` decides whether they are
//! allowed.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use agent::state::StopReason;
use values::json::{Object, Value, contains_nul, plain_words};
use values::message::ContentPart;
use values::model_ref::ResponseFormat;

/// The deepest nesting of a reply. A stored session nests it further and must stay readable.
const MAX_DEPTH: usize = 64;

/// The changes that a webhook wants.
#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Reply {
    /// Key-value pairs set in the context; others stay.
    pub(super) metadata: Option<Object>,
    /// Variables set in the environment, where `null` removes one; others stay.
    pub(super) variables: Option<BTreeMap<String, Value>>,
    /// The messages that the execution begins with.
    pub(super) input: Option<Vec<NewMessage>>,
    /// The decision about the call.
    pub(super) decision: Option<Decision>,
    /// The arguments that the tool is given.
    pub(super) arguments: Option<Object>,
    /// The output of the model, or the result of a tool.
    pub(super) content: Option<NewContent>,
    /// The instructions above the conversation.
    pub(super) system_prompt: Option<String>,
    /// The format of final completions.
    pub(super) response_format: Option<ResponseFormat>,
    /// Stops the execution.
    pub(super) stop: Option<Stop>,
    /// Whether to request one more step.
    #[serde(rename = "continue")]
    pub(super) wants_step: Option<bool>,
    /// Messages added to the conversation.
    pub(super) messages: Option<Vec<NewMessage>>,
}

/// The decision about a call.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Decision {
    /// The call is not executed; the model reads why.
    Block(String),
    /// The call is not executed; the model reads this content.
    Supply(NewContent),
}

/// Why the execution stops.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Stop {
    #[serde(default = "stop_requested", deserialize_with = "known_reason")]
    pub(super) reason: StopReason,
    pub(super) message: String,
}

/// A message to add.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NewMessage {
    #[serde(default)]
    pub(super) role: NewRole,
    pub(super) content: NewContent,
}

/// The author of an added message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NewRole {
    #[default]
    User,
    Assistant,
}

/// Content: a text, or a list of parts.
#[derive(Debug, PartialEq)]
pub(super) struct NewContent(pub(super) Vec<ContentPart>);

impl Reply {
    /// Reads a reply. The error says what is wrong.
    pub(super) fn read(body: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(body).map_err(|error| format!("it is no JSON: {error}"))?;
        let Value::Object(reply) = value else {
            return Err("it is no JSON object".to_owned());
        };
        if contains_nul(&reply) {
            return Err("it holds a NUL character".to_owned());
        }
        if reply.values().any(|value| is_deeper(value, MAX_DEPTH - 1)) {
            return Err(format!("it nests deeper than {MAX_DEPTH} levels"));
        }
        Self::deserialize(Value::Object(reply)).map_err(|error| plain_words(&error.to_string()))
    }
}

/// Returns whether a value nests deeper than `levels`. Parsers bound the depth, so this ends.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let is_deeper_below = |value| levels == 0 || is_deeper(value, levels - 1);
    match value {
        Value::Array(values) => levels == 0 || values.iter().any(is_deeper_below),
        Value::Object(object) => levels == 0 || object.values().any(is_deeper_below),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

impl<'de> Deserialize<'de> for NewContent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        use serde::de::Error as _;
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self(vec![ContentPart::text(text)])),
            parts @ Value::Array(_) => serde_json::from_value(parts).map(Self).map_err(D::Error::custom),
            _ => Err(D::Error::custom("content is a string or a list of parts")),
        }
    }
}

fn stop_requested() -> StopReason {
    StopReason::StopRequested
}

/// Reads a stop reason, and rejects unknown ones. Only stored states may have unknown reasons.
fn known_reason<'de, D: Deserializer<'de>>(deserializer: D) -> Result<StopReason, D::Error> {
    let name = String::deserialize(deserializer)?;
    let mut all = StopReason::ALL.iter().copied();
    let found = all.find(|reason| reason.as_str() == name);
    found.ok_or_else(|| serde::de::Error::custom(format!("there is no stop reason {name:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_reply_changes_nothing() {
        assert_eq!(Reply::read(b"{}"), Ok(Reply::default()));
        let nothing = br#"{"metadata": null, "continue": null, "decision": null}"#;
        assert_eq!(Reply::read(nothing), Ok(Reply::default()));
    }

    #[test]
    fn a_bad_reply_is_refused_with_its_mistake() {
        let deep = format!(r#"{{"metadata": {{"a": {}{}}}}}"#, "[".repeat(63), "]".repeat(63));
        for (body, expected) in [
            ("", "it is no JSON"),
            ("ok", "it is no JSON"),
            ("[]", "it is no JSON object"),
            ("{} {}", "it is no JSON"),
            (r#"{"block": "no"}"#, "unknown field `block`"),
            (r#"{"decision": {"deny": "no"}}"#, "unknown variant `deny`"),
            (r#"{"decision": {"block": "a", "supply": "b"}}"#, "expected"),
            (
                r#"{"stop": {"reason": "full_moon", "message": "m"}}"#,
                "no stop reason \"full_moon\"",
            ),
            (r#"{"stop": {}}"#, "missing field `message`"),
            (r#"{"content": 1}"#, "content is a string or a list"),
            (
                r#"{"messages": [{"role": "system", "content": "x"}]}"#,
                "unknown variant `system`",
            ),
            (r#"{"arguments": "{}"}"#, "expected an object"),
            (r#"{"metadata": {"a": "\u0000"}}"#, "NUL"),
            (&deep, "deeper than 64"),
        ] {
            let error = Reply::read(body.as_bytes()).unwrap_err();
            assert!(error.contains(expected), "{body}: {error}");
        }
    }

    #[test]
    fn a_reply_may_nest_as_deep_as_the_limit() {
        let body = format!(r#"{{"metadata": {{"a": {}{}}}}}"#, "[".repeat(62), "]".repeat(62));
        assert!(Reply::read(body.as_bytes()).is_ok());
    }
}
