//! Values by key that exist while a caller holds them. Callers with equal keys share them, for
//! example a turn or a read. The last holder of a value removes it.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Deref;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{Mutex as TaskMutex, OwnedMutexGuard};

/// The values that are held. Clones have the same values.
#[derive(Debug)]
pub struct Keyed<K: Eq + Hash, V>(Arc<All<K, V>>);

type All<K, V> = Mutex<HashMap<K, Weak<Held<K, V>>>>;

/// A value that is held.
#[derive(Debug)]
pub struct Held<K: Eq + Hash, V> {
    key: K,
    value: V,
    all: Arc<All<K, V>>,
}

/// Turns of callers with the same key: one at a time, in the order of their arrival.
pub type Turns<K> = Keyed<K, Arc<TaskMutex<()>>>;

/// A turn. Dropping it gives the turn to the next caller.
#[derive(Debug)]
#[must_use = "a turn ends when it is dropped"]
pub struct Turn<K: Eq + Hash> {
    // Declared first, so that it is dropped before the queue may be removed.
    _guard: OwnedMutexGuard<()>,
    _queue: Arc<Held<K, Arc<TaskMutex<()>>>>,
}

impl<K: Clone + Eq + Hash, V> Keyed<K, V> {
    /// Returns the value of a key. Makes it if no caller holds it.
    pub fn hold(&self, key: K, make: impl FnOnce() -> V) -> Arc<Held<K, V>> {
        let mut all = self.0.lock();
        if let Some(held) = all.get(&key).and_then(Weak::upgrade) {
            return held;
        }
        let held = Arc::new(Held {
            key: key.clone(),
            value: make(),
            all: Arc::clone(&self.0),
        });
        all.insert(key, Arc::downgrade(&held));
        held
    }
}

impl<K: Eq + Hash, V> Keyed<K, V> {
    /// Returns the number of values.
    pub fn count(&self) -> usize {
        self.0.lock().len()
    }
}

impl<K: Clone + Eq + Hash> Turns<K> {
    /// Waits for a turn. A caller that is cancelled leaves the queue.
    pub async fn take(&self, key: K) -> Turn<K> {
        let queue = self.hold(key, Arc::default);
        let guard = Arc::clone(&**queue).lock_owned().await;
        Turn {
            _guard: guard,
            _queue: queue,
        }
    }
}

impl<K: Eq + Hash, V> Default for Keyed<K, V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<K: Eq + Hash, V> Clone for Keyed<K, V> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Eq + Hash, V> Deref for Held<K, V> {
    type Target = V;

    fn deref(&self) -> &V {
        &self.value
    }
}

impl<K: Eq + Hash, V> Drop for Held<K, V> {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        // Another caller may have made a new value by now.
        if all.get(&self.key).is_some_and(|held| held.strong_count() == 0) {
            all.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn a_value_is_shared_while_it_is_held() {
        let numbers = Keyed::default();
        let (one, again) = (numbers.hold("a", || 1), numbers.hold("a", || 2));
        assert_eq!((**one, **again, numbers.count()), (1, 1, 1));
        drop(one);
        assert_eq!(numbers.count(), 1);
        drop(again);
        assert_eq!(numbers.count(), 0);
        assert_eq!(**numbers.hold("a", || 3), 3);
    }

    #[tokio::test]
    async fn turns_come_one_after_the_other_and_nothing_is_left_of_them() {
        let turns = Turns::default();
        let first = turns.take("a").await;
        let mut second = Box::pin(turns.take("a"));
        let mut third = Box::pin(turns.take("a"));
        assert!(second.as_mut().now_or_never().is_none() && third.as_mut().now_or_never().is_none());
        drop(turns.take("b").await);
        assert_eq!(turns.count(), 1);
        drop(first);
        assert!(third.as_mut().now_or_never().is_none(), "the second comes first");
        // A caller that leaves the queue blocks no other caller.
        drop(second);
        let third = third.now_or_never().expect("a turn");
        assert_eq!(turns.count(), 1);
        drop(third);
        assert_eq!(turns.count(), 0);
        // No entry is left after the last caller leaves.
        let only = turns.take("a").await;
        let mut last = Box::pin(turns.take("a"));
        assert!(last.as_mut().now_or_never().is_none());
        drop((only, last));
        assert_eq!(turns.count(), 0);
    }
}
