//! Work that keeps a thread busy for a while: it is done beside the async workers, a few pieces at a time, shared fairly by the tenants that
//! it is done for.

use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;

use crate::fair_share::FairShare;
use crate::tenant::TenantId;

/// The processors that tenants share for such work. A tenant takes half of them at most; of two, one.
static PROCESSORS: LazyLock<Arc<FairShare>> =
    LazyLock::new(|| FairShare::new(available_parallelism().map_or(2, NonZeroUsize::get).max(2)));

/// What takes no longer than handing it to another thread and back is worth.
const SMALL: u64 = 64 << 10;

/// Does work for a tenant on a thread of its own, when the tenant has its turn. A caller that stops waiting leaves it to its end, so the
/// work must be bounded, or come in pieces.
pub async fn off_thread<T: Send + 'static>(tenant: &TenantId, work: impl FnOnce() -> T + Send + 'static) -> T {
    let processor = PROCESSORS.take(tenant, 1).await;
    let done = tokio::task::spawn_blocking(move || {
        let _processor = processor;
        work()
    });
    match done.await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime shuts down before the work began, and drops this task as well.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Does work on so many bytes of a tenant: at once where they are few, and otherwise on a thread of its own.
pub async fn by_size<T: Send + 'static>(tenant: &TenantId, bytes: u64, work: impl FnOnce() -> T + Send + 'static) -> T {
    if is_large(bytes) {
        off_thread(tenant, work).await
    } else {
        work()
    }
}

/// Tells whether work on so many bytes is done on a thread of its own.
pub fn is_large(bytes: u64) -> bool {
    bytes > SMALL
}
