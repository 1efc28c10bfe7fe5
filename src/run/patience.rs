//! How long an operation of the store is waited for on which a run depends. It repeats nothing: that is for whoever waits.

use std::time::Duration;

use tokio::time::{error::Elapsed, timeout};

use crate::store::StoreError;

/// Longer than a sound store takes for anything that a run writes. A connection that has gone silent would never answer, and the run would
/// keep its lease meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits for an operation that may be repeated. One that is given up may have taken effect, as one whose answer was lost.
pub(super) async fn in_time<T, E: From<StoreError>>(
    operation: &'static str,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    timeout(PATIENCE, work)
        .await
        .unwrap_or_else(|elapsed| Err(late(operation, elapsed).into()))
}

/// Makes the error of an operation that was given up.
pub(super) fn late(operation: &'static str, elapsed: Elapsed) -> StoreError {
    StoreError::Unavailable {
        operation,
        source: elapsed.into(),
    }
}
