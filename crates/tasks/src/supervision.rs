//! Runs the background loops of the process: restarts a loop that panics, and reports to readiness
//! which loops are down.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};

/// The pause before a loop is restarted. Without it, a loop that always panics would use up a
/// processor.
const PAUSE: Duration = Duration::from_secs(1);
/// A loop counts as up again when it has run for this long since its last panic.
const STEADY: Duration = Duration::from_secs(10);

/// Supervises loops. Clones share the same state.
#[derive(Debug, Clone, Default)]
pub struct Supervisor {
    down: Arc<Mutex<BTreeSet<&'static str>>>,
}

impl Supervisor {
    /// Runs a loop until it returns. Restarts it if it panics.
    pub async fn keep<L: Future<Output = ()>>(self, name: &'static str, begin: impl Fn() -> L) {
        while AssertUnwindSafe(self.watch(name, begin()))
            .catch_unwind()
            .await
            .is_err()
        {
            tracing::error!(name, "a loop has panicked and is begun again");
            self.down.lock().insert(name);
            sleep(PAUSE).await;
        }
        self.down.lock().remove(name);
    }

    /// Returns the loops that panicked recently.
    pub fn loops_down(&self) -> Vec<&'static str> {
        self.down.lock().iter().copied().collect()
    }

    async fn watch(&self, name: &'static str, work: impl Future<Output = ()>) {
        let mut work = Box::pin(work);
        if timeout(STEADY, &mut work).await.is_err() {
            self.down.lock().remove(name);
            work.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_loop_that_panics_is_down_until_it_has_worked_for_a_while() {
        let supervisor = Supervisor::default();
        let begun = Arc::new(AtomicU32::new(0));
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let stopped = stopped.shared();
        let begin = {
            let begun = Arc::clone(&begun);
            move || {
                let (number, stopped) = (begun.fetch_add(1, Ordering::SeqCst), stopped.clone());
                async move {
                    assert!(number >= 2, "the first two panic");
                    let _ = stopped.await;
                }
            }
        };
        let keeping = tokio::spawn(supervisor.clone().keep("test", begin));
        let mut seen = Vec::new();
        for _ in 0..15 {
            tokio::task::yield_now().await;
            seen.push(supervisor.loops_down());
            advance(Duration::from_secs(1)).await;
        }
        assert_eq!(begun.load(Ordering::SeqCst), 3, "a loop that works is not begun again");
        assert_eq!(seen[1], ["test"]);
        assert!(supervisor.loops_down().is_empty(), "{seen:?}");
        stop.send(()).unwrap();
        keeping.await.unwrap();
    }
}
