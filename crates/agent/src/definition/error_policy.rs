//! The error policy in an agent's definition: which errors end an execution. Data only;
//! `hooks/error_policy.rs` applies it.

use std::fmt;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::state::{AgentError, AgentStep, ErrorKind};

/// The most consecutive failed steps, unless a policy overrides it.
const MAX_CONSECUTIVE: u32 = 3;
/// The same for the preset `RetryAll`.
const MAX_CONSECUTIVE_OF_ALL: u32 = 5;

/// The decisions on errors: a preset by its name, or a decision for each kind of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(untagged)]
pub enum ErrorPolicy {
    /// A preset.
    Preset(ErrorPolicyPreset),
    /// A decision for each kind.
    Custom(ErrorHandling),
}

/// An error policy that has a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorPolicyPreset {
    /// The model reads the errors of tools and continues; any other error ends the execution.
    #[default]
    IgnoreToolErrors,
    /// As above, until three steps in a row failed.
    RetryToolErrors,
    /// The first error ends the execution.
    StopOnAnyError,
    /// The execution continues after every error, until five consecutive steps have failed.
    RetryAll,
}

/// The decision for each kind of error. An error of a tool call is of kind `tool`, however the call
/// failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ErrorHandling {
    /// A tool call failed.
    pub tool: ErrorDecision,
    /// A model call failed.
    pub model: ErrorDecision,
    /// A completion or a prompt is invalid.
    pub validation: ErrorDecision,
    /// The provider allows no more requests for now.
    pub rate_limit: ErrorDecision,
    /// A model call took too long.
    pub timeout: ErrorDecision,
    /// Anything else.
    pub unknown: ErrorDecision,
    /// The number of failed steps in a row that ends the execution, at least 1. Ignored errors
    /// don't count.
    #[schema(minimum = 1)]
    pub max_consecutive: u32,
}

/// The decision on an error. Of several errors of a step the first decision of this list that
/// applies is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorDecision {
    /// The execution ends.
    Stop,
    /// The execution continues with another step, until too many have failed in a row.
    Retry,
    /// The execution continues.
    Ignore,
}

impl ErrorPolicy {
    /// Returns the decision for each kind of error.
    pub fn handling(self) -> ErrorHandling {
        match self {
            Self::Custom(handling) => handling,
            Self::Preset(preset) => preset.handling(),
        }
    }

    /// Checks the policy. The error names the invalid field and its rule.
    pub fn check(self) -> Result<(), (&'static str, &'static str)> {
        if self.handling().max_consecutive == 0 {
            return Err(("max_consecutive", "must be at least 1"));
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for ErrorPolicy {
    /// Reads each form separately, so that an error names what is wrong in that form.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reading;

        impl<'de> Visitor<'de> for Reading {
            type Value = ErrorPolicy;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an error policy, or a table of kinds of errors")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<ErrorPolicy, E> {
                ErrorPolicyPreset::deserialize(StrDeserializer::new(name)).map(ErrorPolicy::Preset)
            }

            fn visit_map<A: MapAccess<'de>>(self, kinds: A) -> Result<ErrorPolicy, A::Error> {
                ErrorHandling::deserialize(MapAccessDeserializer::new(kinds)).map(ErrorPolicy::Custom)
            }
        }
        deserializer.deserialize_any(Reading)
    }
}

impl Default for ErrorPolicy {
    fn default() -> Self {
        Self::Preset(ErrorPolicyPreset::default())
    }
}

impl ErrorPolicyPreset {
    fn handling(self) -> ErrorHandling {
        let stop = ErrorHandling::all(ErrorDecision::Stop);
        match self {
            Self::StopOnAnyError => stop,
            Self::IgnoreToolErrors => ErrorHandling {
                tool: ErrorDecision::Ignore,
                ..stop
            },
            Self::RetryToolErrors => ErrorHandling {
                tool: ErrorDecision::Retry,
                ..stop
            },
            Self::RetryAll => ErrorHandling {
                max_consecutive: MAX_CONSECUTIVE_OF_ALL,
                ..ErrorHandling::all(ErrorDecision::Retry)
            },
        }
    }
}

impl ErrorHandling {
    /// Makes the same decision for every kind.
    pub fn all(decision: ErrorDecision) -> Self {
        Self {
            tool: decision,
            model: decision,
            validation: decision,
            rate_limit: decision,
            timeout: decision,
            unknown: decision,
            max_consecutive: MAX_CONSECUTIVE,
        }
    }

    /// Returns the decision for a kind of error other than errors of tool calls.
    pub fn decision(&self, kind: ErrorKind) -> ErrorDecision {
        match kind {
            ErrorKind::Tool => self.tool,
            ErrorKind::Model => self.model,
            ErrorKind::Validation => self.validation,
            ErrorKind::RateLimit => self.rate_limit,
            ErrorKind::Timeout => self.timeout,
            // A failed hook ends the execution without the policy.
            ErrorKind::Hook | ErrorKind::Unknown => self.unknown,
        }
    }

    /// Returns the decision for a step and the last error that caused it; none if nothing failed.
    pub fn decision_for<'a>(&self, step: &'a AgentStep) -> Option<(ErrorDecision, &'a AgentError)> {
        let own = step.errors.iter().map(|error| (self.decision(error.kind), error));
        let tool_errors = step
            .tool_executions
            .iter()
            .filter_map(|execution| execution.error.as_ref());
        let all = own.chain(tool_errors.map(|error| (self.tool, error)));
        // `min_by_key` returns the first of equal elements.
        all.rev().min_by_key(|(decision, _)| *decision)
    }
}

/// Fields that a table omits have the values of the default preset.
impl Default for ErrorHandling {
    fn default() -> Self {
        ErrorPolicyPreset::default().handling()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_table_decides_for_each_kind_and_leaves_the_rest_to_the_default() {
        use ErrorKind as K;
        let kinds = [
            ("tool", vec![K::Tool]),
            ("model", vec![K::Model]),
            ("validation", vec![K::Validation]),
            ("rate_limit", vec![K::RateLimit]),
            ("timeout", vec![K::Timeout]),
            ("unknown", vec![K::Unknown, K::Hook]),
        ];
        for (name, named) in &kinds {
            for decision in [ErrorDecision::Stop, ErrorDecision::Retry, ErrorDecision::Ignore] {
                let policy: ErrorPolicy = serde_json::from_value(json!({*name: decision})).unwrap();
                let handling = policy.handling();
                for kind in kinds.iter().flat_map(|(_, kinds)| kinds) {
                    let default = match kind {
                        K::Tool => ErrorDecision::Ignore,
                        _ => ErrorDecision::Stop,
                    };
                    let expected = if named.contains(kind) { decision } else { default };
                    assert_eq!(handling.decision(*kind), expected, "{name} {decision:?}: {kind:?}");
                }
                assert_eq!(handling.max_consecutive, MAX_CONSECUTIVE);
            }
        }
    }

    #[test]
    fn policies_that_make_no_sense_are_refused() {
        let zero: ErrorPolicy = serde_json::from_value(json!({"max_consecutive": 0})).unwrap();
        assert_eq!(zero.check(), Err(("max_consecutive", "must be at least 1")));
        let presets = "expected one of `ignore_tool_errors`, `retry_tool_errors`, `stop_on_any_error`, `retry_all`";
        let form = "the name of an error policy, or a table of kinds of errors";
        for (wrong, words) in [
            (json!("retry_everything"), presets),
            (json!({"tools": "stop"}), "unknown field `tools`"),
            (
                json!({"tool": "maybe"}),
                "unknown variant `maybe`, expected one of `stop`, ",
            ),
            (json!(3), form),
            (json!(["stop"]), form),
        ] {
            let error = serde_json::from_value::<ErrorPolicy>(wrong.clone()).unwrap_err();
            assert!(error.to_string().contains(words), "{wrong}: {error}");
        }
    }
}
