//! Gives turns to callers with the same key: one at a time, in the order of their arrival.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::OwnedMutexGuard;

/// Gives turns. Has an entry for a key only while a caller has the turn or waits for it.
#[derive(Debug)]
pub(super) struct Turns<K: Eq + Hash>(Mutex<Queues<K>>);

type Queue = Arc<tokio::sync::Mutex<()>>;
type Queues<K> = HashMap<K, Queue>;

/// A turn, or a slot in the queue for it. Dropping it gives the turn to the next caller.
#[derive(Debug)]
#[must_use = "a turn ends when it is dropped"]
pub(super) struct Turn<K: Eq + Hash> {
    turns: Arc<Turns<K>>,
    key: K,
    /// The queue; `None` only while the turn is dropped.
    queue: Option<Queue>,
    guard: Option<OwnedMutexGuard<()>>,
}

impl<K: Eq + Hash> Default for Turns<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Eq + Hash + Clone> Turns<K> {
    /// Waits for a turn.
    pub(super) async fn take(self: &Arc<Self>, key: K) -> Turn<K> {
        let queue = Arc::clone(self.queues().entry(key.clone()).or_default());
        // Leaves the queue if its caller is cancelled.
        let mut turn = Turn {
            turns: Arc::clone(self),
            key,
            queue: Some(Arc::clone(&queue)),
            guard: None,
        };
        turn.guard = Some(queue.lock_owned().await);
        turn
    }
}

impl<K: Eq + Hash> Turns<K> {
    fn queues(&self) -> MutexGuard<'_, Queues<K>> {
        // A panic under the lock never leaves the map half changed.
        self.0.lock()
    }
}

impl<K: Eq + Hash> Drop for Turn<K> {
    fn drop(&mut self) {
        drop(self.guard.take());
        let mut queues = self.turns.queues();
        drop(self.queue.take());
        // No caller can join the queue while the map is locked.
        if queues.get(&self.key).is_some_and(|queue| Arc::strong_count(queue) == 1) {
            queues.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn turns_come_one_after_the_other_and_nothing_is_left_of_them() {
        let turns = Arc::new(Turns::default());
        let wanted = || turns.queues().len();
        let first = turns.take("a").await;
        let mut second = Box::pin(turns.take("a"));
        let mut third = Box::pin(turns.take("a"));
        assert!(second.as_mut().now_or_never().is_none() && third.as_mut().now_or_never().is_none());
        drop(turns.take("b").await);
        assert_eq!(wanted(), 1);
        drop(first);
        assert!(third.as_mut().now_or_never().is_none(), "the second comes first");
        // A caller that leaves the queue blocks nobody.
        drop(second);
        let third = third.now_or_never().expect("a turn");
        assert_eq!(wanted(), 1);
        drop(third);
        assert_eq!(wanted(), 0);
        // No entry is left after the last caller leaves.
        let only = turns.take("a").await;
        let mut last = Box::pin(turns.take("a"));
        assert!(last.as_mut().now_or_never().is_none());
        drop((only, last));
        assert_eq!(wanted(), 0);
    }
}
