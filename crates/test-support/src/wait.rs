//! Waiting for a state instead of sleeping for luck.

use std::time::Duration;

/// Waits for a condition; fails after a minute with what was missing.
pub async fn until(missing: &str, mut condition: impl AsyncFnMut() -> bool) {
    until_found(missing, async || condition().await.then_some(())).await;
}

/// Waits until something is found, and returns it; fails after a minute with what was missing.
pub async fn until_found<T>(missing: &str, mut find: impl AsyncFnMut() -> Option<T>) -> T {
    let finding = async {
        loop {
            if let Some(found) = find().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let found = tokio::time::timeout(Duration::from_mins(1), finding).await;
    found.unwrap_or_else(|_| panic!("{missing}"))
}
