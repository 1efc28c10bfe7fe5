//! The pauses between tries while the store is unavailable.

use std::time::Duration;

use backon::ExponentialBuilder;

/// Returns the pauses between the tries of an operation on the store, which end after `patience`.
pub(in crate::run) fn backoff(patience: Duration) -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(Duration::from_secs(5))
        .with_jitter()
        .without_max_times()
        .with_total_delay(Some(patience))
}
