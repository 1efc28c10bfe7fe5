//! Runs CPU-heavy work on threads outside of the async runtime's workers.
//!
//! The work is to decompress, decode, compare and encode large data, in pieces (`by_size`). Tenants
//! share the processors fairly. A single tenant gets at most half of them.

use std::borrow::Borrow as _;
use std::num::NonZeroUsize;
use std::sync::{Arc, LazyLock};
use std::thread::available_parallelism;

use crate::fair_share::FairShare;
use values::tenant::TenantId;

/// The processors that tenants share for this work. A tenant gets at most half of them.
static PROCESSORS: LazyLock<Arc<FairShare>> =
    LazyLock::new(|| FairShare::new(available_parallelism().map_or(2, NonZeroUsize::get).max(2)));

/// Work on up to this many bytes is not worth a switch to another thread.
const SMALL: u64 = 64 << 10;

/// Runs work for a tenant on a blocking thread when it is the tenant's turn. The work runs to its
/// end even if its caller is cancelled. So the work must be bounded or split into pieces.
pub async fn off_thread<T: Send + 'static>(tenant: &TenantId, work: impl FnOnce() -> T + Send + 'static) -> T {
    let processor = PROCESSORS.take(tenant, 1).await;
    let span = tracing::Span::current();
    let done = tokio::task::spawn_blocking(move || {
        let _processor = processor;
        span.in_scope(work)
    });
    match done.await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down and never started the work. It drops this task as well.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Runs work on `bytes` bytes of a tenant: in place if they are few, and otherwise on a blocking
/// thread.
pub async fn by_size<T: Send + 'static>(tenant: &TenantId, bytes: u64, work: impl FnOnce() -> T + Send + 'static) -> T {
    if is_large(bytes) {
        off_thread(tenant, work).await
    } else {
        work()
    }
}

/// Runs work on a borrowed value like [`by_size`]. If the value is large, works on a copy. So a
/// copy must be cheap compared with the work: its large parts should be shared or text.
pub async fn by_size_of<V, T>(
    tenant: &TenantId,
    bytes: u64,
    value: &V,
    work: impl FnOnce(&V) -> T + Send + 'static,
) -> T
where
    V: ToOwned<Owned: Send + 'static> + Sync + ?Sized,
    T: Send + 'static,
{
    if is_large(bytes) {
        let copy = value.to_owned();
        off_thread(tenant, move || work(copy.borrow())).await
    } else {
        work(value)
    }
}

fn is_large(bytes: u64) -> bool {
    bytes > SMALL
}

/// Checks that the work waits for a blocking thread while the only one is busy.
#[cfg(any(test, feature = "testing"))]
pub fn assert_beside<T>(work: impl Future<Output = T>) -> std::io::Result<T> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.max_blocking_threads(1).build()?;
    Ok(runtime.block_on(async {
        let (release, held) = std::sync::mpsc::channel::<()>();
        drop(tokio::task::spawn_blocking(move || held.recv()));
        let mut work = std::pin::pin!(work);
        for _ in 0..100 {
            assert!(futures_util::poll!(&mut work).is_pending(), "on the async worker");
            tokio::task::yield_now().await;
        }
        drop(release);
        work.await
    }))
}

#[cfg(test)]
mod tests {
    use std::panic::AssertUnwindSafe;
    use std::sync::mpsc;
    use std::thread::{ThreadId, current};

    use futures_util::FutureExt as _;
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    fn tenant(name: &str) -> TenantId {
        name.parse().unwrap()
    }

    #[tokio::test]
    async fn large_work_alone_is_done_on_another_thread() {
        fn thread_of(value: &str) -> (String, ThreadId) {
            (value.to_owned(), current().id())
        }
        let (tenant, here) = (tenant("sizes"), current().id());
        for (bytes, is_here) in [(0, true), (SMALL, true), (SMALL + 1, false), (u64::MAX, false)] {
            let thread = by_size(&tenant, bytes, || current().id()).await;
            let (value, of_copy) = by_size_of(&tenant, bytes, "value", thread_of).await;
            assert_eq!((thread == here, of_copy == here), (is_here, is_here), "{bytes}");
            assert_eq!(value, "value");
        }
    }

    #[tokio::test]
    async fn a_tenant_leaves_half_of_the_processors_to_others_until_its_work_has_ended() {
        let (begun, mut begins) = unbounded_channel();
        let mut releases = Vec::new();
        let mut work = || {
            let (release, released) = mpsc::channel::<()>();
            releases.push(release);
            let begun = begun.clone();
            tokio::spawn(async move {
                let work = move || {
                    begun.send(()).unwrap();
                    released.recv()
                };
                off_thread(&tenant("busy"), work).await
            })
        };
        let half = available_parallelism().map_or(2, NonZeroUsize::get).max(2) / 2;
        let at_work: Vec<_> = (0..half).map(|_| work()).collect();
        for _ in 0..half {
            begins.recv().await.unwrap();
        }
        // Aborts the tasks of callers that no longer wait.
        for given_up in at_work {
            given_up.abort();
            assert!(given_up.await.is_err_and(|error| error.is_cancelled()));
        }
        let waiting = work();
        tokio::task::yield_now().await;
        off_thread(&tenant("other"), || ()).await;
        assert!(begins.try_recv().is_err(), "the tenant has more than half");
        releases.clear();
        assert!(waiting.await.unwrap().is_err());
        begins.recv().await.unwrap();
    }

    #[tokio::test]
    async fn a_panic_reaches_the_caller() {
        let tenant = tenant("panics");
        let panicking = off_thread::<()>(&tenant, || panic!("a fault"));
        let panic = AssertUnwindSafe(panicking).catch_unwind().await.unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"a fault"));
    }
}
