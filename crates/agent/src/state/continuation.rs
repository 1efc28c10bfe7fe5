//! Decides from stop signals and requests to continue whether the loop continues after a step.

use serde::{Deserialize, Serialize};

use super::stop::StopSignal;

/// The stop signals and requests of hooks and guards about the next step.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExecutionContinuation {
    /// The stop signals, in the order of arrival.
    pub stop_signals: Vec<StopSignal>,
    /// Whether one more step is requested in spite of the stop signals.
    pub is_continuation_requested: bool,
    /// Whether a failed step is retried, unless there is a stop signal.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_retry_wanted: bool,
}

impl ExecutionContinuation {
    /// Returns whether there is a stop signal that no request overrides.
    pub fn should_stop(&self) -> bool {
        let binds = self.stop_signals.iter().any(|signal| signal.is_binding);
        binds || (!self.stop_signals.is_empty() && !self.is_continuation_requested)
    }

    /// Returns the deciding signal: the first of those with the highest reason.
    pub fn deciding_signal(&self) -> Option<&StopSignal> {
        // `min_by_key` returns the first of equal elements.
        self.stop_signals.iter().min_by_key(|signal| signal.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::super::stop::StopReason;
    use super::*;

    fn deciding(stop_signals: Vec<StopSignal>) -> Option<StopSignal> {
        let continuation = ExecutionContinuation {
            stop_signals,
            ..ExecutionContinuation::default()
        };
        continuation.deciding_signal().cloned()
    }

    #[test]
    fn the_highest_reason_decides_in_any_order_of_arrival() {
        for (rank, high) in StopReason::ALL.iter().enumerate() {
            for low in &StopReason::ALL[rank + 1..] {
                let (high, low) = (StopSignal::new(*high, "a", ""), StopSignal::new(*low, "b", ""));
                for order in [[&high, &low], [&low, &high]] {
                    assert_eq!(deciding(order.map(Clone::clone).to_vec()).as_ref(), Some(&high));
                }
            }
        }
    }

    #[test]
    fn of_equal_reasons_the_first_decides() {
        let signals = ["first", "second"].map(|by| StopSignal::new(StopReason::StopRequested, by, ""));
        assert_eq!(deciding(signals.to_vec()).as_ref(), Some(&signals[0]));
    }
}
