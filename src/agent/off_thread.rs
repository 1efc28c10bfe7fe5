//! Work that keeps a thread busy for a while: it is done beside the async workers, a few pieces at a time.

use tokio::sync::Semaphore;

/// Pieces of work at a time, so that what many callers ask for fills neither the processors nor the memory.
static SEATS: Semaphore = Semaphore::const_new(4);

/// Does the work on a thread of its own. A caller that stops waiting leaves it to its end, so the work must be bounded.
pub async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    // Nothing closes it.
    let seat = SEATS.acquire().await.ok();
    let done = tokio::task::spawn_blocking(move || {
        let _seat = seat;
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
