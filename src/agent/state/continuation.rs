//! Decides whether the loop continues after a step: stop signals against a request to continue.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::stop::{StopSignal, StopSignals};

/// What hooks and guards want of the next step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutionContinuation {
    /// Who wants to stop.
    pub stop_signals: StopSignals,
    /// Whether one more step is wanted in spite of them.
    pub is_continuation_requested: bool,
    /// Whether a step that failed is to be tried again, unless somebody wants to stop.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_retry_wanted: bool,
}

impl ExecutionContinuation {
    /// Returns whether a stop is wanted and nothing overrides it.
    pub fn should_stop(&self) -> bool {
        let binds = self.stop_signals.iter().any(|signal| signal.is_binding);
        binds || (!self.stop_signals.is_empty() && !self.is_continuation_requested)
    }

    /// Returns the continuation with one more signal.
    #[must_use]
    pub fn with_stop_signal(self, signal: StopSignal) -> Self {
        Self {
            stop_signals: self.stop_signals.with_signal(signal),
            ..self
        }
    }

    /// Returns the continuation with one more step wanted.
    #[must_use]
    pub fn with_continuation_requested(self) -> Self {
        Self {
            is_continuation_requested: true,
            ..self
        }
    }

    /// Returns the continuation with the failed step to be tried again.
    #[must_use]
    pub fn with_retry_wanted(self) -> Self {
        Self {
            is_retry_wanted: true,
            ..self
        }
    }

    /// Returns the continuation of the next step: signals no longer count, and a request holds
    /// until that step is made.
    #[must_use]
    pub fn for_next_step(self) -> Self {
        Self {
            stop_signals: StopSignals::default(),
            is_retry_wanted: false,
            ..self
        }
    }
}

impl fmt::Display for ExecutionContinuation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let requested = if self.is_continuation_requested { "Yes" } else { "No" };
        write!(f, "{}; Continuation Requested: {requested}", self.stop_signals)
    }
}
