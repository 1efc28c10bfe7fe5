//! Waiting for a state instead of sleeping for luck.

use std::time::Duration;

/// Waits for a condition; fails after a minute with what was missing.
pub async fn until(missing: &str, mut condition: impl AsyncFnMut() -> bool) {
    let reached = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_mins(1), reached).await;
    assert!(in_time.is_ok(), "{missing}");
}
