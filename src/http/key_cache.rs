//! Caches API keys for 5 seconds, so that a request costs no round trip and a revoked key ends
//! soon.
//!
//! Time is measured with the monotonic clock. So a change of the machine's clock neither extends a
//! revoked key nor drops a valid one. Lookups that find nothing are limited, so that a flood of
//! wrong keys does not become a flood of queries. Known keys are not limited.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::codes::ProblemCode;
use super::problem::Problem;
use store::keys::ApiKeyRecord;
use store::{Store, StoreError};
use values::session::Hash;

/// How long a found key is used without a new look-up.
const LIFETIME: Duration = Duration::from_secs(5);
/// How long a key counts as unknown after a look-up. It may be created meanwhile.
const UNKNOWN_LIFETIME: Duration = Duration::from_secs(2);
/// How long the result that no key exists is used.
const OPEN_LIFETIME: Duration = Duration::from_secs(1);
/// How long concurrent callers use a stale entry while one refreshes it.
const REFRESH_TIMEOUT: Duration = Duration::from_secs(1);
/// How much longer an entry is used while the store is unavailable, so that active runs stay
/// readable.
const OUTAGE_GRACE: Duration = Duration::from_mins(1);
/// The most keys in the cache.
const MAX_KNOWN: usize = 100_000;
/// The number of unknown keys at which expired ones are removed. The budget allows fewer within
/// their lifetime.
const MAX_UNKNOWN: usize = 1_000;
/// The failed look-ups in a burst, and per second after it.
const BURST: f64 = 500.0;
const PER_SECOND: f64 = 50.0;

/// Caches keys of the store.
#[derive(Debug)]
pub(super) struct KeyCache {
    store: Arc<dyn Store>,
    keys: Mutex<Keys>,
    open: Mutex<Option<Freshness>>,
    key_was_made: AtomicBool,
}

#[derive(Debug, Default)]
struct Keys {
    known: HashMap<Hash, (Arc<ApiKeyRecord>, Freshness)>,
    /// The unknown secrets, each with the time until which it is not looked up again.
    unknown: HashMap<Hash, Instant>,
    budget: Budget,
}

/// When an entry was read, and when its next refresh is due.
#[derive(Debug, Clone, Copy)]
struct Freshness {
    read_at: Instant,
    next_read: Instant,
}

/// The next step of a look-up.
#[derive(Debug)]
enum Step {
    Answer(Option<Arc<ApiKeyRecord>>),
    /// Reads the store. If the store is unavailable, this stale key is used.
    LookUp(Option<Arc<ApiKeyRecord>>),
    Refuse,
}

impl KeyCache {
    /// Makes an empty cache.
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            keys: Mutex::default(),
            open: Mutex::default(),
            key_was_made: AtomicBool::new(false),
        }
    }

    /// Returns the valid key whose secret has the hash.
    pub(super) async fn key(&self, secret_hash: Hash) -> Result<Option<Arc<ApiKeyRecord>>, Problem> {
        let asked = Instant::now();
        let cached = match lock(&self.keys).step(secret_hash, asked) {
            Step::Answer(key) => return Ok(key),
            Step::LookUp(cached) => cached,
            Step::Refuse => return Err(too_many()),
        };
        let found = match (self.store.key_lookup(secret_hash).await, cached) {
            (Err(error), Some(key)) if error.is_transient() => return Ok(Some(key)),
            (found, _) => found?,
        };
        if found.is_some() {
            self.key_was_made.store(true, Ordering::Relaxed);
        }
        let key = found.filter(|key| key.revoked_at.is_none()).map(Arc::new);
        lock(&self.keys).insert(secret_hash, key.clone(), asked);
        Ok(key)
    }

    /// Returns whether requests need a key. They always do once a first key was created.
    pub(super) async fn is_key_needed(&self) -> Result<bool, StoreError> {
        if self.key_was_made.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let asked = Instant::now();
        let cached = match lock(&self.open).as_mut() {
            None => false,
            Some(open) if !open.is_due(OPEN_LIFETIME, asked) => return Ok(false),
            Some(open) => {
                open.next_read = asked + REFRESH_TIMEOUT;
                open.is_valid_in_outage(OPEN_LIFETIME, asked)
            }
        };
        let needed = match self.store.key_exists().await {
            Err(error) if error.is_transient() && cached => return Ok(false),
            needed => needed?,
        };
        self.key_was_made.fetch_or(needed, Ordering::Relaxed);
        *lock(&self.open) = Some(Freshness::since(asked, OPEN_LIFETIME));
        Ok(needed)
    }
}

impl Keys {
    fn step(&mut self, secret_hash: Hash, now: Instant) -> Step {
        if let Some((key, freshness)) = self.known.get_mut(&secret_hash) {
            let cached = freshness.is_valid_in_outage(LIFETIME, now).then(|| Arc::clone(key));
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

    fn insert(&mut self, secret_hash: Hash, key: Option<Arc<ApiKeyRecord>>, asked: Instant) {
        let was_known = self.known.remove(&secret_hash).is_some();
        let Some(key) = key else {
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
        self.known.insert(secret_hash, (key, Freshness::since(asked, LIFETIME)));
    }
}

impl Freshness {
    fn since(read_at: Instant, lifetime: Duration) -> Self {
        Self {
            read_at,
            next_read: read_at + lifetime,
        }
    }

    /// Returns whether this caller must refresh the entry. Only one caller does; others use the
    /// stale entry until it is too old.
    fn is_due(&self, lifetime: Duration, now: Instant) -> bool {
        self.next_read <= now || !self.is_valid_in_outage(lifetime, now)
    }

    /// Returns whether the entry is valid while the store is unavailable.
    fn is_valid_in_outage(&self, lifetime: Duration, now: Instant) -> bool {
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
    let words = "too many unknown API keys were sent in a short time, so that this one is not looked up now";
    Problem::new(ProblemCode::TooManyUnknownKeys, words).with_retry_after(Duration::from_secs(1))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A panic leaves the data valid: single calls change each map, and a missing entry is looked up
    // again.
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;
    use values::clock::Timestamp;
    use values::ids::ApiKeyId;
    use values::limits::RunLimits;
    use values::tenant::TenantId;

    fn hash(number: u32) -> Hash {
        Hash::from(*blake3::hash(&number.to_le_bytes()).as_bytes())
    }

    fn key(number: u32) -> Arc<ApiKeyRecord> {
        Arc::new(ApiKeyRecord {
            key_id: ApiKeyId::from_uuid(uuid::Uuid::from_u128(number.into())),
            secret_hash: hash(number),
            tenant: TenantId::anonymous(),
            scopes: Vec::new(),
            label: String::new(),
            created_at: Timestamp::UNIX_EPOCH,
            revoked_at: None,
            limits: RunLimits::default(),
        })
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_refreshes_and_the_others_use_the_stale_entry() {
        let mut keys = Keys::default();
        keys.insert(hash(1), Some(key(1)), Instant::now());
        let mut steps = |seconds: u64| {
            let now = Instant::now() + Duration::from_secs(seconds);
            [0; 2].map(|_| match keys.step(hash(1), now) {
                Step::Answer(key) => ("answer", key.is_some()),
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
    async fn a_flood_of_unknown_keys_is_looked_up_at_a_bounded_rate() {
        let mut keys = Keys::default();
        let (mut number, mut looked_up) = (0, 0);
        for _ in 0..100 {
            for _ in 0..1_000 {
                number += 1;
                if matches!(keys.step(hash(number), Instant::now()), Step::LookUp(None)) {
                    looked_up += 1;
                    keys.insert(hash(number), None, Instant::now());
                }
            }
            assert!(keys.unknown.len() <= MAX_UNKNOWN);
            advance(Duration::from_millis(100)).await;
        }
        // A burst, and the look-ups that ten seconds allow.
        assert!((990..=1_000).contains(&looked_up), "{looked_up}");
        assert!(matches!(keys.step(hash(u32::MAX), Instant::now()), Step::LookUp(None)));
    }

    #[tokio::test(start_paused = true)]
    async fn keys_that_are_found_cost_no_budget_and_are_soon_no_longer_unknown() {
        let mut keys = Keys::default();
        for number in 0..5_000 {
            assert!(matches!(keys.step(hash(number), Instant::now()), Step::LookUp(None)));
            keys.insert(hash(number), Some(key(number)), Instant::now());
        }
        // A key that is created shortly after its first look-up.
        let made = hash(5_000);
        keys.insert(made, None, Instant::now());
        assert!(matches!(keys.step(made, Instant::now()), Step::Answer(None)));
        advance(UNKNOWN_LIFETIME).await;
        assert!(matches!(keys.step(made, Instant::now()), Step::LookUp(None)));
        keys.insert(made, Some(key(5_000)), Instant::now());
        assert!(matches!(keys.step(made, Instant::now()), Step::Answer(Some(_))));
    }
}
