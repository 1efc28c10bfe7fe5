//! The committer: writes that arrive while others are in flight go to the database together.
//!
//! A commit costs the database a round trip, a statement and a sync of its log, whether it writes
//! one session or fifty. So each store has one committer. It has one batch in flight at a time. A
//! write that finds none in flight begins at once, alone, so a single client never waits. Writes
//! that arrive meanwhile wait, and become the next batch. So batches grow with the load, and no
//! timer is needed. That is natural batching, as write-ahead logs do it.
//!
//! The content of a batch:
//!
//! - Writes are taken in the order of their arrival, up to [`MAX_WRITES`] and [`MAX_BYTES`]. The
//!   engines send larger writes elsewhere.
//! - Two writes that exclude each other, such as two with one idempotency key, are never in one
//!   batch: the second one waits for the next.
//! - A write whose caller is gone is left out.
//!
//! The committer knows nothing of a write beyond [`Write`], and of the database only the function
//! that executes a batch. That function replies to the callers. A write that is refused must
//! refuse no other write of its batch; see `postgres/committer.rs` and `sqlite/writer.rs`.

use std::collections::{HashSet, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::mem;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio_util::task::TaskTracker;

use super::observer::StoreObserver;

/// The most writes of a batch. Larger batches save nothing more and make each caller wait longer.
const MAX_WRITES: usize = 64;
/// The most bytes of a batch, unless it is one write.
const MAX_BYTES: usize = 4 << 20;

/// A write that waits for its batch.
pub(super) trait Write: Send + 'static {
    /// A key that two writes of one batch may not share.
    type Key: Eq + Hash;

    /// Returns the key by which it excludes other writes, if it has one.
    fn key(&self) -> Option<Self::Key>;

    /// Returns about how many bytes it sends to the database.
    fn bytes(&self) -> usize;

    /// Returns whether a caller still waits for it.
    fn is_wanted(&self) -> bool;
}

/// Executes a batch and replies to its callers.
pub(super) type Execute<W> = dyn Fn(Vec<W>) -> BoxFuture<'static, ()> + Send + Sync;

/// Collects writes and executes them in batches, one batch at a time.
pub(super) struct Committer<W> {
    queue: Mutex<Queue<W>>,
    execute: Box<Execute<W>>,
    observer: Option<Arc<dyn StoreObserver>>,
    /// The batch in flight.
    tasks: TaskTracker,
}

#[derive(Debug)]
struct Queue<W> {
    waiting: VecDeque<W>,
    is_in_flight: bool,
}

impl<W: Write> Committer<W> {
    /// Creates a committer. Batches are tasks, so no caller can cancel one.
    pub(super) fn new(
        observer: Option<Arc<dyn StoreObserver>>,
        execute: impl Fn(Vec<W>) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::new(Queue {
                waiting: VecDeque::new(),
                is_in_flight: false,
            }),
            execute: Box::new(execute),
            observer,
            tasks: TaskTracker::new(),
        })
    }

    /// Adds a write. Begins a batch unless one is in flight.
    pub(super) fn submit(self: &Arc<Self>, write: W) {
        {
            let mut queue = self.queue.lock();
            queue.waiting.push_back(write);
            if mem::replace(&mut queue.is_in_flight, true) {
                return;
            }
        }
        self.begin_next();
    }

    /// Waits until nothing waits and nothing is in flight.
    pub(super) async fn close(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn begin_next(self: &Arc<Self>) {
        let batch = self.queue.lock().next_batch();
        // At the end of the process, the callers of the last batches are gone as well.
        if batch.is_empty() || Handle::try_current().is_err() {
            return;
        }
        if let Some(observer) = &self.observer {
            observer.batch_begun(batch.len());
        }
        let in_flight = InFlight(Arc::clone(self));
        self.tasks.spawn(async move {
            let in_flight = in_flight;
            (in_flight.0.execute)(batch).await;
        });
    }
}

/// The batch in flight. The next one begins when it ends, even if it panics.
struct InFlight<W: Write>(Arc<Committer<W>>);

impl<W: Write> Drop for InFlight<W> {
    fn drop(&mut self) {
        self.0.begin_next();
    }
}

impl<W: Write> Queue<W> {
    /// Takes the next batch. If nothing waits, nothing is in flight any more.
    fn next_batch(&mut self) -> Vec<W> {
        let mut batch = Vec::new();
        let mut bytes = 0_usize;
        let mut keys = HashSet::new();
        let mut excluded = VecDeque::new();
        while let Some(write) = self.waiting.pop_front() {
            if !write.is_wanted() {
                continue;
            }
            let is_full = batch.len() >= MAX_WRITES || bytes.saturating_add(write.bytes()) > MAX_BYTES;
            if is_full && !batch.is_empty() {
                self.waiting.push_front(write);
                break;
            }
            if write.key().is_some_and(|key| !keys.insert(key)) {
                excluded.push_back(write);
                continue;
            }
            bytes = bytes.saturating_add(write.bytes());
            batch.push(write);
        }
        excluded.append(&mut self.waiting);
        self.waiting = excluded;
        self.is_in_flight = !batch.is_empty();
        batch
    }
}

impl<W> fmt::Debug for Committer<W> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = self.queue.lock();
        formatter
            .debug_struct("Committer")
            .field("waiting", &queue.waiting.len())
            .field("is_in_flight", &queue.is_in_flight)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures_util::FutureExt as _;
    use tokio::sync::{Semaphore, oneshot};

    use super::*;

    #[derive(Debug)]
    struct Numbered {
        number: u32,
        key: Option<u32>,
        bytes: usize,
        done: oneshot::Sender<()>,
    }

    impl Write for Numbered {
        type Key = u32;

        fn key(&self) -> Option<u32> {
            self.key
        }

        fn bytes(&self) -> usize {
            self.bytes
        }

        fn is_wanted(&self) -> bool {
            !self.done.is_closed()
        }
    }

    fn numbered(number: u32) -> (Numbered, oneshot::Receiver<()>) {
        let (done, waits) = oneshot::channel();
        let write = Numbered {
            number,
            key: None,
            bytes: 1,
            done,
        };
        (write, waits)
    }

    type Batches = Arc<Mutex<Vec<Vec<u32>>>>;

    /// A committer whose batches wait for permits, and the numbers of each batch that it executed.
    fn recording() -> (Arc<Committer<Numbered>>, Batches, Arc<Semaphore>) {
        let batches = Batches::default();
        let permits = Arc::new(Semaphore::new(0));
        let (recorded, gate) = (Arc::clone(&batches), Arc::clone(&permits));
        let committer = Committer::new(None, move |batch: Vec<Numbered>| {
            let numbers = batch.iter().map(|write| write.number).collect();
            recorded.lock().push(numbers);
            let gate = Arc::clone(&gate);
            async move {
                gate.acquire().await.unwrap().forget();
                for write in batch {
                    let _ = write.done.send(());
                }
            }
            .boxed()
        });
        (committer, batches, permits)
    }

    #[tokio::test]
    async fn what_arrives_while_a_batch_is_in_flight_is_the_next_one() {
        let (committer, batches, permits) = recording();
        let (writes, waits): (Vec<_>, Vec<_>) = (0..5).map(numbered).unzip();
        for write in writes {
            committer.submit(write);
        }
        permits.add_permits(2);
        for done in waits {
            done.await.unwrap();
        }
        assert_eq!(*batches.lock(), [vec![0], vec![1, 2, 3, 4]]);
        let (last, done) = numbered(5);
        permits.add_permits(1);
        committer.submit(last);
        done.await.unwrap();
        assert_eq!(
            batches.lock().last(),
            Some(&vec![5]),
            "nothing waits for a batch to fill"
        );
    }

    #[tokio::test]
    async fn batches_are_bounded_in_writes_and_bytes() {
        let (committer, batches, permits) = recording();
        permits.add_permits(100);
        let (first, _waits) = numbered(0);
        committer.submit(first);
        let mut waits = Vec::new();
        let half = MAX_BYTES / 2;
        for (number, bytes) in [(1, half), (2, half), (3, 1), (4, MAX_BYTES * 2), (5, 1)] {
            let (write, done) = numbered(number);
            committer.submit(Numbered { bytes, ..write });
            waits.push(done);
        }
        for number in 6..200 {
            let (write, done) = numbered(number);
            committer.submit(write);
            waits.push(done);
        }
        for done in waits {
            done.await.unwrap();
        }
        let batches = batches.lock();
        assert_eq!(batches[..4], [vec![0], vec![1, 2], vec![3], vec![4]]);
        let lengths: Vec<_> = batches[4..].iter().map(Vec::len).collect();
        assert_eq!(lengths, [MAX_WRITES, MAX_WRITES, MAX_WRITES, 3]);
    }

    #[tokio::test]
    async fn writes_that_exclude_each_other_are_in_different_batches_in_their_order() {
        let (committer, batches, permits) = recording();
        permits.add_permits(100);
        let (first, _waits) = numbered(0);
        committer.submit(first);
        let mut waits = Vec::new();
        for (number, key) in [
            (1, Some(7)),
            (2, Some(7)),
            (3, None),
            (4, Some(8)),
            (5, Some(7)),
            (6, None),
        ] {
            let (write, done) = numbered(number);
            committer.submit(Numbered { key, ..write });
            waits.push(done);
        }
        for done in waits {
            done.await.unwrap();
        }
        assert_eq!(*batches.lock(), [vec![0], vec![1, 3, 4, 6], vec![2], vec![5]]);
    }

    #[tokio::test]
    async fn a_write_whose_caller_is_gone_is_left_out() {
        let (committer, batches, permits) = recording();
        let (writes, mut waits): (Vec<_>, Vec<_>) = (0..4).map(numbered).unzip();
        for write in writes {
            committer.submit(write);
        }
        waits.truncate(2);
        permits.add_permits(2);
        for done in waits {
            done.await.unwrap();
        }
        committer.close().await;
        assert_eq!(*batches.lock(), [vec![0], vec![1]]);
    }

    #[tokio::test]
    async fn a_batch_that_panics_holds_up_no_other() {
        let has_panicked = Arc::<AtomicBool>::default();
        let panics = Arc::clone(&has_panicked);
        let committer = Committer::new(None, move |batch: Vec<Numbered>| {
            let panics = Arc::clone(&panics);
            async move {
                assert!(panics.swap(true, Ordering::SeqCst), "the first batch panics");
                for write in batch {
                    let _ = write.done.send(());
                }
            }
            .boxed()
        });
        let (writes, waits): (Vec<_>, Vec<_>) = (0..3).map(numbered).unzip();
        for write in writes {
            committer.submit(write);
        }
        let [first, second, third] = waits.try_into().unwrap();
        assert!(first.await.is_err());
        second.await.unwrap();
        third.await.unwrap();
    }

    #[tokio::test]
    async fn closing_waits_for_all_that_waits() {
        let (committer, batches, permits) = recording();
        let (writes, waits): (Vec<_>, Vec<_>) = (0..3).map(numbered).unzip();
        for write in writes {
            committer.submit(write);
        }
        let mut closing = Box::pin(committer.close());
        assert!(closing.as_mut().now_or_never().is_none());
        permits.add_permits(2);
        closing.await;
        assert_eq!(*batches.lock(), [vec![0], vec![1, 2]]);
        for done in waits {
            done.now_or_never().unwrap().unwrap();
        }
    }
}
