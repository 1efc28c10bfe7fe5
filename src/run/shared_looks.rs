//! Shares reads among those who follow or wait for the same run.
//!
//! A thousand readers of a silent run cost one read. At most 8 reads are in flight at once for all
//! runs, so that the store and the board stay free for other work. Tenants share those fairly. A
//! read never waits for a change.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Mutex as TaskMutex;
use tokio::time::Instant;

use crate::fair_share::FairShare;
use crate::tenant::TenantId;

/// The most looks at once.
pub(super) const AT_ONCE: usize = 8;

/// What was seen, by what was looked at. Nothing is kept that nobody waits for.
#[derive(Debug)]
pub(super) struct SharedLooks<K: Eq + Hash, V> {
    places: Arc<Places<K, V>>,
    at_once: Arc<FairShare>,
}

type Places<K, V> = Mutex<HashMap<K, Weak<Place<K, V>>>>;

/// Where those meet who look at the same thing.
#[derive(Debug)]
pub(super) struct Place<K: Eq + Hash, V> {
    key: K,
    all: Arc<Places<K, V>>,
    at_once: Arc<FairShare>,
    /// Locked during a look, so that whoever comes meanwhile waits for it or for the next one.
    seen: TaskMutex<Option<Seen<V>>>,
}

/// What a look has seen.
#[derive(Debug, Clone)]
pub(super) struct Seen<V> {
    /// When the look began.
    pub(super) at: Instant,
    pub(super) value: V,
}

impl<K: Clone + Eq + Hash, V: Clone> SharedLooks<K, V> {
    /// Makes looks of which only so many go on at once.
    pub(super) fn new(at_once: &Arc<FairShare>) -> Self {
        Self {
            places: Arc::default(),
            at_once: Arc::clone(at_once),
        }
    }

    /// Returns the place of those who look at this.
    pub(super) fn place(&self, key: K) -> Arc<Place<K, V>> {
        let mut places = lock(&self.places);
        if let Some(place) = places.get(&key).and_then(Weak::upgrade) {
            return place;
        }
        let place = Arc::new(Place {
            key: key.clone(),
            all: Arc::clone(&self.places),
            at_once: Arc::clone(&self.at_once),
            seen: TaskMutex::default(),
        });
        places.insert(key, Arc::downgrade(&place));
        place
    }
}

impl<K: Eq + Hash, V: Clone> Place<K, V> {
    /// Returns what was seen by a look that began after the instant: another's, or this one.
    pub(super) async fn see(&self, tenant: &TenantId, after: Instant, look: impl Future<Output = V>) -> Seen<V> {
        let mut seen = self.seen.lock().await;
        if let Some(seen) = seen.as_ref().filter(|seen| seen.at > after) {
            return seen.clone();
        }
        let _permit = self.at_once.take(tenant, 1).await;
        let at = Instant::now();
        let value = look.await;
        seen.insert(Seen { at, value }).clone()
    }
}

impl<K: Eq + Hash, V> Drop for Place<K, V> {
    fn drop(&mut self) {
        let mut places = lock(&self.all);
        // Others may have met anew since.
        if places.get(&self.key).is_some_and(|place| place.strong_count() == 0) {
            places.remove(&self.key);
        }
    }
}

fn lock<K, V>(places: &Places<K, V>) -> MutexGuard<'_, HashMap<K, Weak<Place<K, V>>>>
where
    K: Eq + Hash,
{
    // Each change is a single call of the map.
    places.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use futures_util::future::join_all;
    use tokio::time::{advance, sleep};

    use super::*;

    #[derive(Default)]
    struct Counts {
        looks: AtomicUsize,
        now: AtomicUsize,
        most: AtomicUsize,
    }

    impl Counts {
        /// A look that takes a second and sees how many there were.
        async fn look(&self) -> usize {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            sleep(Duration::from_secs(1)).await;
            self.now.fetch_sub(1, Ordering::SeqCst);
            self.looks.fetch_add(1, Ordering::SeqCst) + 1
        }
    }

    fn tenant(number: usize) -> TenantId {
        format!("tenant-{number}").parse().unwrap()
    }

    fn looks() -> SharedLooks<usize, usize> {
        SharedLooks::new(&FairShare::new(AT_ONCE))
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_look_at_the_same_see_the_same() {
        let (looks, counts) = (looks(), Counts::default());
        let asked = Instant::now();
        advance(Duration::from_millis(1)).await;
        let (place, tenant) = (looks.place(1), tenant(0));
        let seen = join_all((0..1_000).map(|_| place.see(&tenant, asked, counts.look()))).await;
        assert!(seen.iter().all(|seen| seen.value == 1));
        // What is older than wanted does not count.
        let seen = looks.place(1).see(&tenant, seen[0].at, counts.look()).await;
        assert_eq!((seen.value, counts.looks.into_inner()), (2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_look_at_once() {
        let (looks, counts) = (looks(), Counts::default());
        let all = (0..100).map(async |key| {
            looks
                .place(key)
                .see(&tenant(key % 3), Instant::now(), counts.look())
                .await
        });
        join_all(all).await;
        let most = counts.most.into_inner();
        assert_eq!(counts.looks.into_inner(), 100);
        assert!((AT_ONCE / 2..=AT_ONCE).contains(&most), "{most}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_looks_of_one_tenant_do_not_delay_anothers() {
        let (looks, counts) = (looks(), Counts::default());
        let many = (1..1_000).map(async |key| looks.place(key).see(&tenant(1), Instant::now(), counts.look()).await);
        let begun = Instant::now();
        let other = async {
            tokio::task::yield_now().await;
            looks.place(0).see(&tenant(2), Instant::now(), counts.look()).await;
            begun.elapsed()
        };
        tokio::select! {
            elapsed = other => assert_eq!(elapsed, Duration::from_secs(1)),
            _ = join_all(many) => panic!("the other tenant waits for all of them"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_look_that_is_given_up_is_taken_by_the_next() {
        let (looks, counts) = (looks(), Counts::default());
        let place = looks.place(1);
        let first = tokio::time::timeout(
            Duration::from_millis(1),
            place.see(&tenant(0), Instant::now(), counts.look()),
        )
        .await;
        assert!(first.is_err());
        assert_eq!(place.see(&tenant(0), Instant::now(), counts.look()).await.value, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_kept_that_nobody_waits_for() {
        let looks = looks();
        let (one, again) = (looks.place(1), looks.place(1));
        drop(one);
        assert_eq!(lock(&looks.places).len(), 1);
        drop(again);
        assert_eq!(lock(&looks.places).len(), 0);
    }
}
