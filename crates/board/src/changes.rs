//! Notifies readers that wait for a change of a run. A run without readers costs nothing.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::BoxFuture;
use tokio::sync::Notify;

use super::shards::Sharded;
use values::ids::RunId;

/// The waiters of all runs.
#[derive(Debug, Default)]
pub(super) struct Changes {
    runs: Sharded<HashMap<RunId, Waiting>>,
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
struct Waiting {
    notify: Arc<Notify>,
    count: usize,
}

/// A waiter, counted until it is dropped.
#[derive(Debug)]
struct Waiter {
    changes: Arc<Changes>,
    run_id: RunId,
}

impl Changes {
    /// Waits for a change that comes after this call.
    pub(super) fn wait(self: &Arc<Self>, run_id: RunId) -> BoxFuture<'static, ()> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let waiter = Waiter {
            changes: Arc::clone(self),
            run_id,
        };
        let mut runs = self.runs.of(run_id);
        let waiting = runs.entry(run_id).or_default();
        waiting.count += 1;
        // Counts all changes from here on, even before the future is polled.
        let changed = Arc::clone(&waiting.notify).notified_owned();
        Box::pin(async move {
            let _waiter = waiter;
            changed.await;
        })
    }

    /// Wakes the waiters of the run.
    pub(super) fn notify(&self, run_id: RunId) {
        // A waiter that registers later reads the change itself.
        if self.waiting.load(Ordering::SeqCst) > 0
            && let Some(waiting) = self.runs.of(run_id).get(&run_id)
        {
            waiting.notify.notify_waiters();
        }
    }

    /// Wakes all waiters.
    pub(super) fn notify_all(&self) {
        for runs in self.runs.all() {
            for waiting in runs.values() {
                waiting.notify.notify_waiters();
            }
        }
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        let mut runs = self.changes.runs.of(self.run_id);
        if let Some(waiting) = runs.get_mut(&self.run_id) {
            waiting.count -= 1;
            if waiting.count == 0 {
                runs.remove(&self.run_id);
            }
        }
        drop(runs);
        self.changes.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}
