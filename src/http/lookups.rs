//! Caches what the store has under the hashes of secrets, so that a request costs no round trip.
//!
//! Time is measured with the monotonic clock. So a change of the machine's clock neither extends a
//! revoked key nor drops a valid one. Lookups that find nothing are limited, so that a flood of
//! wrong secrets does not become a flood of queries. Known ones are not limited.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::codes::ProblemCode;
use super::problem::Problem;
use store::StoreError;
use values::session::Hash;

/// How long an entry is used without a new look-up.
pub(super) const LIFETIME: Duration = Duration::from_secs(5);
/// How long a secret counts as unknown after a look-up. It may be created meanwhile.
const UNKNOWN_LIFETIME: Duration = Duration::from_secs(2);
/// How long concurrent callers use a stale entry while one refreshes it.
pub(super) const REFRESH_TIMEOUT: Duration = Duration::from_secs(1);
/// How much longer an entry is used while the store is unavailable, so that active runs stay
/// readable.
const OUTAGE_GRACE: Duration = Duration::from_mins(1);
/// The most entries in the cache.
const MAX_KNOWN: usize = 100_000;
/// The number of unknown secrets at which expired ones are removed. The budget allows fewer within
/// their lifetime.
const MAX_UNKNOWN: usize = 1_000;
/// The failed look-ups in a burst, and per second after it.
const BURST: f64 = 500.0;
const PER_SECOND: f64 = 50.0;

/// Looks up values by the hashes of secrets, and caches them.
#[derive(Debug)]
pub(super) struct LookUps<T>(Mutex<Entries<T>>);

#[derive(Debug)]
struct Entries<T> {
    known: HashMap<Hash, (Arc<T>, Freshness)>,
    /// The unknown secrets, each with the time until which it is not looked up again.
    unknown: HashMap<Hash, Instant>,
    budget: Budget,
    /// The number of entries that callers have changed. A look-up that began before such a change
    /// may have read what the entry was before.
    changes: u64,
}

/// When an entry was read, and when its next refresh is due.
#[derive(Debug, Clone, Copy)]
pub(super) struct Freshness {
    read_at: Instant,
    pub(super) next_read: Instant,
}

/// The next step of a look-up.
#[derive(Debug)]
enum Step<T> {
    Answer(Option<Arc<T>>),
    /// Reads the store. If the store is unavailable, this stale entry is used.
    LookUp(Option<Arc<T>>),
    Refuse,
}

impl<T> Default for LookUps<T> {
    fn default() -> Self {
        Self(Mutex::new(Entries::default()))
    }
}

impl<T> LookUps<T> {
    /// Returns the entry of a secret with the hash. `reading` reads it from the store if it is not
    /// cached.
    pub(super) async fn find(
        &self,
        secret_hash: Hash,
        reading: impl Future<Output = Result<Option<T>, StoreError>>,
    ) -> Result<Option<Arc<T>>, Problem> {
        let asked = Instant::now();
        // A panic leaves the data valid: single calls change each map, and a missing entry is
        // looked up again.
        let (cached, changes) = {
            let mut entries = self.0.lock();
            match entries.step(secret_hash, asked) {
                Step::Answer(value) => return Ok(value),
                Step::LookUp(cached) => (cached, entries.changes),
                Step::Refuse => return Err(too_many()),
            }
        };
        let found = match (reading.await, cached) {
            (Err(error), Some(value)) if error.is_transient() => return Ok(Some(value)),
            (found, _) => found?,
        };
        let value = found.map(Arc::new);
        let mut entries = self.0.lock();
        if entries.changes == changes {
            entries.insert(secret_hash, value.clone(), asked);
        }
        Ok(value)
    }

    /// Replaces a cached entry by a value that is about to be written. An entry that was deleted
    /// meanwhile stays deleted.
    pub(super) fn update(&self, secret_hash: Hash, value: T) {
        let mut entries = self.0.lock();
        if entries.known.contains_key(&secret_hash) {
            entries.changes += 1;
            entries.insert(secret_hash, Some(Arc::new(value)), Instant::now());
        }
    }

    /// Forgets an entry that was just deleted. Look-ups that began before do not bring it back.
    pub(super) fn remove(&self, secret_hash: Hash) {
        let mut entries = self.0.lock();
        entries.changes += 1;
        entries.insert(secret_hash, None, Instant::now());
    }
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self {
            known: HashMap::new(),
            unknown: HashMap::new(),
            budget: Budget::default(),
            changes: 0,
        }
    }
}

impl<T> Entries<T> {
    fn step(&mut self, secret_hash: Hash, now: Instant) -> Step<T> {
        if let Some((value, freshness)) = self.known.get_mut(&secret_hash) {
            let cached = freshness.is_valid_in_outage(LIFETIME, now).then(|| Arc::clone(value));
            if !freshness.is_due(LIFETIME, now) {
                return Step::Answer(cached);
            }
            freshness.next_read = now + REFRESH_TIMEOUT;
            return Step::LookUp(cached);
        }
        if self.unknown.get(&secret_hash).is_some_and(|until| *until > now) {
            return Step::Answer(None);
        }
        if self.budget.take(now) {
            Step::LookUp(None)
        } else {
            Step::Refuse
        }
    }

    fn insert(&mut self, secret_hash: Hash, value: Option<Arc<T>>, asked: Instant) {
        let was_known = self.known.remove(&secret_hash).is_some();
        let Some(value) = value else {
            if self.unknown.len() >= MAX_UNKNOWN {
                self.unknown.retain(|_, until| *until > asked);
            }
            self.unknown.insert(secret_hash, asked + UNKNOWN_LIFETIME);
            return;
        };
        if !was_known {
            self.budget.give_back();
        }
        if self.known.len() >= MAX_KNOWN {
            self.known
                .retain(|_, (_, freshness)| freshness.is_valid_in_outage(LIFETIME, asked));
        }
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.unknown.remove(&secret_hash);
        self.known
            .insert(secret_hash, (value, Freshness::since(asked, LIFETIME)));
    }
}

impl Freshness {
    pub(super) fn since(read_at: Instant, lifetime: Duration) -> Self {
        Self {
            read_at,
            next_read: read_at + lifetime,
        }
    }

    /// Returns whether this caller must refresh the entry. Only one caller does; others use the
    /// stale entry until it is too old.
    pub(super) fn is_due(&self, lifetime: Duration, now: Instant) -> bool {
        self.next_read <= now || !self.is_valid_in_outage(lifetime, now)
    }

    /// Returns whether the entry is valid while the store is unavailable.
    pub(super) fn is_valid_in_outage(&self, lifetime: Duration, now: Instant) -> bool {
        self.read_at + lifetime + OUTAGE_GRACE > now
    }
}

/// The budget of failed look-ups. Successful ones are refunded.
#[derive(Debug)]
struct Budget {
    left: f64,
    counted: Instant,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            left: BURST,
            counted: Instant::now(),
        }
    }
}

impl Budget {
    fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.counted).as_secs_f64();
        self.left = (self.left + passed * PER_SECOND).min(BURST);
        self.counted = now;
        let is_enough = self.left >= 1.0;
        if is_enough {
            self.left -= 1.0;
        }
        is_enough
    }

    fn give_back(&mut self) {
        self.left = (self.left + 1.0).min(BURST);
    }
}

fn too_many() -> Problem {
    let words = "too many unknown keys were sent in a short time, so that this one is not looked up now";
    Problem::new(ProblemCode::TooManyUnknownKeys, words).with_retry_after(Duration::from_secs(1))
}

#[cfg(test)]
mod tests {
    use std::future::ready;

    use futures_util::FutureExt as _;
    use tokio::sync::oneshot;
    use tokio::time::advance;

    use super::*;

    fn hash(number: u32) -> Hash {
        Hash::from(*blake3::hash(&number.to_le_bytes()).as_bytes())
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_refreshes_and_the_others_use_the_stale_entry() {
        let mut entries = Entries::default();
        entries.insert(hash(1), Some(Arc::new(1)), Instant::now());
        let mut steps = |seconds: u64| {
            let now = Instant::now() + Duration::from_secs(seconds);
            [0; 2].map(|_| match entries.step(hash(1), now) {
                Step::Answer(value) => ("answer", value.is_some()),
                Step::LookUp(cached) => ("look up", cached.is_some()),
                Step::Refuse => ("refuse", false),
            })
        };
        assert_eq!(steps(4), [("answer", true); 2]);
        assert_eq!(steps(5), [("look up", true), ("answer", true)]);
        // The refreshing caller was cancelled.
        assert_eq!(steps(6), [("look up", true), ("answer", true)]);
        assert_eq!(steps(64), [("look up", true), ("answer", true)]);
        assert_eq!(steps(65), [("look up", false); 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_of_unknown_secrets_is_looked_up_at_a_bounded_rate() {
        let mut entries: Entries<u32> = Entries::default();
        let (mut number, mut looked_up) = (0, 0);
        for _ in 0..100 {
            for _ in 0..1_000 {
                number += 1;
                if matches!(entries.step(hash(number), Instant::now()), Step::LookUp(None)) {
                    looked_up += 1;
                    entries.insert(hash(number), None, Instant::now());
                }
            }
            assert!(entries.unknown.len() <= MAX_UNKNOWN);
            advance(Duration::from_millis(100)).await;
        }
        // A burst, and the look-ups that ten seconds allow.
        assert!((990..=1_000).contains(&looked_up), "{looked_up}");
        let step = entries.step(hash(u32::MAX), Instant::now());
        assert!(matches!(step, Step::LookUp(None)));
    }

    #[tokio::test(start_paused = true)]
    async fn secrets_that_are_found_cost_no_budget_and_are_soon_no_longer_unknown() {
        let mut entries = Entries::default();
        for number in 0..5_000 {
            assert!(matches!(entries.step(hash(number), Instant::now()), Step::LookUp(None)));
            entries.insert(hash(number), Some(Arc::new(number)), Instant::now());
        }
        // A key that is created shortly after its first look-up.
        let made = hash(5_000);
        entries.insert(made, None, Instant::now());
        assert!(matches!(entries.step(made, Instant::now()), Step::Answer(None)));
        advance(UNKNOWN_LIFETIME).await;
        assert!(matches!(entries.step(made, Instant::now()), Step::LookUp(None)));
        entries.insert(made, Some(Arc::new(5_000)), Instant::now());
        assert!(matches!(entries.step(made, Instant::now()), Step::Answer(Some(_))));
    }
    #[tokio::test(start_paused = true)]
    async fn an_entry_that_is_deleted_during_its_refresh_stays_deleted() {
        let entries = LookUps::default();
        let found = async |value: Option<u32>| entries.find(hash(1), ready(Ok(value))).await.unwrap();
        assert_eq!(found(Some(1)).await.as_deref(), Some(&1));
        advance(LIFETIME).await;
        let (read, reading) = oneshot::channel();
        let reading = reading.map(|value: Result<_, oneshot::error::RecvError>| Ok(value.unwrap()));
        let mut refresh = Box::pin(entries.find(hash(1), reading));
        assert!(refresh.as_mut().now_or_never().is_none());
        entries.remove(hash(1));
        // A request that found the entry before extends it, and the refresh has read it before.
        entries.update(hash(1), 2);
        read.send(Some(1)).unwrap();
        assert_eq!(refresh.await.unwrap().as_deref(), Some(&1));
        assert_eq!(found(Some(3)).await, None);
        // Other entries are cached on.
        advance(UNKNOWN_LIFETIME).await;
        assert_eq!(found(Some(3)).await.as_deref(), Some(&3));
        entries.update(hash(1), 4);
        assert_eq!(found(None).await.as_deref(), Some(&4));
    }
}
