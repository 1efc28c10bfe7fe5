//! Stop signals: who wants an execution to end, and why. Several coexist; the highest reason
//! decides.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::json::Object;

// Document 001, "Continuation and Stop Signals".
/// Why an execution stops, highest priority first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// An error prevents continuation.
    ErrorForbade,
    /// A part of the execution asked to stop.
    StopRequested,
    /// The budget of steps is spent.
    StepsLimitReached,
    /// The budget of tokens or of cost is spent.
    TokenLimitReached,
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
    /// No reason was given, or one that this version does not know.
    #[serde(other)]
    Unknown,
}

impl StopReason {
    /// All reasons, highest priority first.
    pub const ALL: [Self; 10] = [
        Self::ErrorForbade,
        Self::StopRequested,
        Self::StepsLimitReached,
        Self::TokenLimitReached,
        Self::TimeLimitReached,
        Self::RetryLimitReached,
        Self::FinishReasonReceived,
        Self::UserRequested,
        Self::Completed,
        Self::Unknown,
    ];

    /// Returns whether the execution ended before its work was done.
    pub fn was_force_stopped(self) -> bool {
        !matches!(self, Self::Completed | Self::FinishReasonReceived)
    }

    /// Returns the name that JSON and storage use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ErrorForbade => "error_forbade",
            Self::StopRequested => "stop_requested",
            Self::StepsLimitReached => "steps_limit_reached",
            Self::TokenLimitReached => "token_limit_reached",
            Self::TimeLimitReached => "time_limit_reached",
            Self::RetryLimitReached => "retry_limit_reached",
            Self::FinishReasonReceived => "finish_reason_received",
            Self::UserRequested => "user_requested",
            Self::Completed => "completed",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One wish to stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StopSignal {
    /// Why.
    pub reason: StopReason,
    /// The same for people.
    pub message: String,
    /// Figures that explain it.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub context: Object,
    /// The part that gave the signal, such as `budget_guard`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Whether no request to go on overrides it: the caller went away, a budget is spent, or a hook
    /// failed.
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

    /// Returns the signal as one that no request to go on overrides.
    #[must_use]
    pub fn binding(self) -> Self {
        Self {
            is_binding: true,
            ..self
        }
    }

    /// Returns the signal with figures that explain it.
    #[must_use]
    pub fn with_context(self, context: Object) -> Self {
        Self { context, ..self }
    }
}

/// All signals of an execution, in the order of arrival.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StopSignals(Vec<StopSignal>);

impl StopSignals {
    /// Returns the signals with one more.
    #[must_use]
    pub fn with_signal(mut self, signal: StopSignal) -> Self {
        self.0.push(signal);
        self
    }

    /// Returns the signal that decides: of the highest reason the first.
    pub fn deciding(&self) -> Option<&StopSignal> {
        // `min_by_key` returns the first of equal elements.
        self.0.iter().min_by_key(|signal| signal.reason)
    }

    /// Returns whether nobody wants to stop.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates in the order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = &StopSignal> {
        self.0.iter()
    }
}

impl fmt::Display for StopSignals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("No Stop Signals");
        }
        for (index, signal) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{}: {}", signal.reason, signal.message)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_reason_decides_in_any_order_of_arrival() {
        for (rank, high) in StopReason::ALL.into_iter().enumerate() {
            for low in &StopReason::ALL[rank + 1..] {
                let (high, low) = (StopSignal::new(high, "a", ""), StopSignal::new(*low, "b", ""));
                for order in [[&high, &low], [&low, &high]] {
                    let signals = order
                        .into_iter()
                        .cloned()
                        .fold(StopSignals::default(), StopSignals::with_signal);
                    assert_eq!(signals.deciding(), Some(&high));
                }
            }
        }
    }

    #[test]
    fn of_equal_reasons_the_first_decides() {
        let [first, second] = ["first", "second"].map(|by| StopSignal::new(StopReason::StopRequested, by, ""));
        let signals = StopSignals::default().with_signal(first.clone()).with_signal(second);
        assert_eq!(signals.deciding(), Some(&first));
    }

    #[test]
    fn only_natural_ends_are_not_forced() {
        let natural: Vec<_> = StopReason::ALL
            .into_iter()
            .filter(|reason| !reason.was_force_stopped())
            .collect();
        assert_eq!(natural, [StopReason::FinishReasonReceived, StopReason::Completed]);
    }

    #[test]
    fn names_are_those_of_json_and_unknown_ones_load() {
        for reason in StopReason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
        }
        assert_eq!(
            serde_json::from_str::<StopReason>(r#""moon_phase""#).unwrap(),
            StopReason::Unknown
        );
    }
}
