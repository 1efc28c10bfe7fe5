//! File operations beside the async workers.

use super::error::CheckoutError;

/// Does blocking work beside the async workers.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CheckoutError> + Send + 'static,
) -> Result<T, CheckoutError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| CheckoutError::Shutdown)?
}
