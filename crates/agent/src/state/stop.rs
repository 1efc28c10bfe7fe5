//! Stop signals: who wants an execution to end, and why. Several coexist; the highest reason
//! decides.

use serde::{Deserialize, Serialize};
use strum::VariantArray as _;

use values::json::{Object, Value};

// Document 001, "Continuation and Stop Signals".
/// The reason of the end of an execution, highest priority first.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    utoipa::ToSchema,
    strum::Display,
    strum::IntoStaticStr,
    strum::VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum StopReason {
    /// An error prevents continuation.
    ErrorForbade,
    /// Calls wait for answers of the caller.
    AnswerRequired,
    /// A part of the execution asked to stop.
    StopRequested,
    /// The budget of steps is spent.
    StepsLimitReached,
    /// The budget of tokens or of cost is spent.
    TokenLimitReached,
    /// A limit of spending that runs share is reached.
    SpendLimitReached,
    /// The budget of seconds is spent or the deadline has passed.
    TimeLimitReached,
    /// Too many attempts failed.
    RetryLimitReached,
    /// The model signalled completion.
    FinishReasonReceived,
    /// The caller asked to stop.
    UserRequested,
    /// The work is done.
    Completed,
    /// No reason was given, or this version does not know the reason.
    #[serde(other)]
    Unknown,
}

impl StopReason {
    /// All reasons, highest priority first.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns whether the execution ended before its work was done.
    pub fn was_force_stopped(self) -> bool {
        !matches!(self, Self::Completed | Self::FinishReasonReceived)
    }

    /// Returns the name that JSON and storage use.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A signal that asks the execution to stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StopSignal {
    /// The reason.
    pub reason: StopReason,
    /// The reason in words, for people.
    pub message: String,
    /// Figures that explain it.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub context: Object,
    /// The part that gave the signal, such as `budget`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Whether it overrides requests to continue: the caller went away, a budget is spent, or a
    /// hook failed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_binding: bool,
}

impl StopSignal {
    /// Makes a signal without context.
    pub fn new(reason: StopReason, source: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            context: Object::new(),
            source: Some(source.into()),
            is_binding: false,
        }
    }

    /// Makes the signal binding: no request to continue overrides it.
    #[must_use]
    pub fn binding(self) -> Self {
        Self {
            is_binding: true,
            ..self
        }
    }

    /// Adds a figure that explains the signal.
    #[must_use]
    pub fn with_figure(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.context.insert(name.to_owned(), value.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_natural_ends_are_not_forced() {
        let natural: Vec<_> = StopReason::ALL
            .iter()
            .copied()
            .filter(|reason| !reason.was_force_stopped())
            .collect();
        assert_eq!(natural, [StopReason::FinishReasonReceived, StopReason::Completed]);
    }

    #[test]
    fn names_are_those_of_json_and_unknown_ones_load() {
        for reason in StopReason::ALL.iter().copied() {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
        assert_eq!(
            serde_json::from_str::<StopReason>(r#""moon_phase""#).unwrap(),
            StopReason::Unknown
        );
    }
}
