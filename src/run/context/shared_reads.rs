//! Shares reads among the callers that follow or wait for the same run.
//!
//! A thousand readers of a silent run cost one read. At most 8 reads are in flight at once for all
//! runs, so that the store and the board stay free for other work. Tenants share these 8 reads
//! fairly. A read never waits for a change.

use std::hash::Hash;
use std::sync::Arc;

use tokio::sync::Mutex;
use tokio::time::Instant;

use agent::record::RunRecord;
use store::StoreError;
use tasks::fair_share::FairShare;
use tasks::keyed::{Held, Keyed};
use values::tenant::TenantId;

/// The most reads in flight.
pub(in crate::run) const AT_ONCE: usize = 8;

/// The result of a shared read of a run.
pub(in crate::run) type RunReading = Result<Option<Arc<RunRecord>>, Arc<StoreError>>;

/// The newest reads by key. A read is dropped with the last holder of its slot.
#[derive(Debug)]
pub(in crate::run) struct SharedReads<K: Eq + Hash, V> {
    slots: Keyed<K, ReadSlot<V>>,
    at_once: Arc<FairShare>,
}

/// The newest read of a key, shared by all holders of the slot.
#[derive(Debug)]
pub(in crate::run) struct ReadSlot<V> {
    at_once: Arc<FairShare>,
    /// Locked during a read. Callers that arrive meanwhile wait for this read or for the next one.
    newest: Mutex<Option<Read<V>>>,
}

/// The result of a read.
#[derive(Debug, Clone)]
pub(in crate::run) struct Read<V> {
    /// When the read began.
    pub(in crate::run) at: Instant,
    pub(in crate::run) value: V,
}

impl<K: Clone + Eq + Hash, V: Clone> SharedReads<K, V> {
    /// Creates shared reads. `at_once` limits the reads in flight.
    pub(in crate::run) fn new(at_once: &Arc<FairShare>) -> Self {
        Self {
            slots: Keyed::default(),
            at_once: Arc::clone(at_once),
        }
    }

    /// Returns the slot of a key.
    pub(in crate::run) fn slot(&self, key: K) -> Arc<Held<K, ReadSlot<V>>> {
        self.slots.hold(key, || ReadSlot {
            at_once: Arc::clone(&self.at_once),
            newest: Mutex::default(),
        })
    }
}

impl<V: Clone> ReadSlot<V> {
    /// Returns the result of a read that began after the instant. Runs `reading` if no other caller
    /// has made one.
    pub(in crate::run) async fn read(
        &self,
        tenant: &TenantId,
        after: Instant,
        reading: impl Future<Output = V>,
    ) -> Read<V> {
        let mut newest = self.newest.lock().await;
        if let Some(newest) = newest.as_ref().filter(|newest| newest.at > after) {
            return newest.clone();
        }
        let _permit = self.at_once.take(tenant, 1).await;
        let at = Instant::now();
        let value = reading.await;
        newest.insert(Read { at, value }).clone()
    }
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
        reads: AtomicUsize,
        now: AtomicUsize,
        most: AtomicUsize,
    }

    impl Counts {
        /// A read that takes a second and returns the number of reads so far.
        async fn read(&self) -> usize {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            sleep(Duration::from_secs(1)).await;
            self.now.fetch_sub(1, Ordering::SeqCst);
            self.reads.fetch_add(1, Ordering::SeqCst) + 1
        }
    }

    fn tenant(number: usize) -> TenantId {
        format!("tenant-{number}").parse().unwrap()
    }

    fn reads() -> SharedReads<usize, usize> {
        SharedReads::new(&FairShare::new(AT_ONCE))
    }

    #[tokio::test(start_paused = true)]
    async fn callers_who_read_the_same_share_a_read() {
        let (reads, counts) = (reads(), Counts::default());
        let asked = Instant::now();
        advance(Duration::from_millis(1)).await;
        let (slot, tenant) = (reads.slot(1), tenant(0));
        let found = join_all((0..1_000).map(|_| slot.read(&tenant, asked, counts.read()))).await;
        assert!(found.iter().all(|read| read.value == 1));
        // A read that began too early does not count.
        let found = reads.slot(1).read(&tenant, found[0].at, counts.read()).await;
        assert_eq!((found.value, counts.reads.into_inner()), (2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn only_so_many_read_at_once() {
        let (reads, counts) = (reads(), Counts::default());
        let all = (0..100).map(async |key| {
            reads
                .slot(key)
                .read(&tenant(key % 3), Instant::now(), counts.read())
                .await
        });
        join_all(all).await;
        let most = counts.most.into_inner();
        assert_eq!(counts.reads.into_inner(), 100);
        assert!((AT_ONCE / 2..=AT_ONCE).contains(&most), "{most}");
    }

    #[tokio::test(start_paused = true)]
    async fn the_reads_of_one_tenant_do_not_delay_anothers() {
        let (reads, counts) = (reads(), Counts::default());
        let many = (1..1_000).map(async |key| reads.slot(key).read(&tenant(1), Instant::now(), counts.read()).await);
        let begun = Instant::now();
        let other = async {
            tokio::task::yield_now().await;
            reads.slot(0).read(&tenant(2), Instant::now(), counts.read()).await;
            begun.elapsed()
        };
        tokio::select! {
            elapsed = other => assert_eq!(elapsed, Duration::from_secs(1)),
            _ = join_all(many) => panic!("the other tenant waits for all of them"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_is_given_up_is_made_by_the_next() {
        let (reads, counts) = (reads(), Counts::default());
        let slot = reads.slot(1);
        let first = tokio::time::timeout(
            Duration::from_millis(1),
            slot.read(&tenant(0), Instant::now(), counts.read()),
        )
        .await;
        assert!(first.is_err());
        assert_eq!(slot.read(&tenant(0), Instant::now(), counts.read()).await.value, 1);
    }
}
