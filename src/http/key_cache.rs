//! What the store knows of API keys, kept for a few seconds: a request costs no round trip, and a revoked key ends soon.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::TimeDelta;

use crate::clock::{Clock, Timestamp};
use crate::session::Hash;
use crate::store::{ApiKeyRecord, Store, StoreError};

/// How long an answer of the store is believed.
const LIFETIME: TimeDelta = TimeDelta::seconds(5);
/// How long it is believed that there is no key at all.
const OPEN_LIFETIME: TimeDelta = TimeDelta::seconds(1);
/// How much longer an answer is believed while the store is unavailable, so that live runs stay readable through an outage.
const OUTAGE_GRACE: TimeDelta = TimeDelta::seconds(60);
/// The most answers that are kept; wrong keys count too, so a flood of them must not fill the memory.
const CAPACITY: usize = 10_000;

/// Looks keys up.
#[derive(Debug)]
pub(super) struct KeyCache {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    keys: Mutex<BTreeMap<Hash, Entry>>,
    open_until: Mutex<Option<Timestamp>>,
    key_was_made: AtomicBool,
}

#[derive(Debug, Clone)]
struct Entry {
    key: Option<Arc<ApiKeyRecord>>,
    until: Timestamp,
}

impl KeyCache {
    /// Makes an empty cache.
    pub(super) fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            keys: Mutex::default(),
            open_until: Mutex::default(),
            key_was_made: AtomicBool::new(false),
        }
    }

    /// Returns the key in force whose secret has the hash.
    pub(super) async fn key(&self, secret_hash: Hash) -> Result<Option<Arc<ApiKeyRecord>>, StoreError> {
        let now = self.clock.now();
        let kept = lock(&self.keys).get(&secret_hash).cloned();
        if let Some(entry) = kept.as_ref().filter(|entry| entry.until > now) {
            return Ok(entry.key.clone());
        }
        let found = match (self.store.key_lookup(secret_hash).await, kept) {
            (Err(error), Some(entry)) if error.is_transient() && entry.until + OUTAGE_GRACE > now => {
                return Ok(entry.key);
            }
            (found, _) => found?,
        };
        let key = found.filter(|key| key.revoked_at.is_none()).map(Arc::new);
        let mut keys = lock(&self.keys);
        if keys.len() >= CAPACITY {
            keys.retain(|_, entry| entry.until > now);
        }
        if keys.len() >= CAPACITY {
            keys.clear();
        }
        keys.insert(
            secret_hash,
            Entry {
                key: key.clone(),
                until: now + LIFETIME,
            },
        );
        Ok(key)
    }

    /// Tells whether requests need a key: from the first key ever made on, for good.
    pub(super) async fn is_key_needed(&self) -> Result<bool, StoreError> {
        if self.key_was_made.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let now = self.clock.now();
        let open_until = *lock(&self.open_until);
        if open_until.is_some_and(|until| until > now) {
            return Ok(false);
        }
        let needed = match (self.store.key_exists().await, open_until) {
            (Err(error), Some(until)) if error.is_transient() && until + OUTAGE_GRACE > now => return Ok(false),
            (needed, _) => needed?,
        };
        self.key_was_made.fetch_or(needed, Ordering::Relaxed);
        *lock(&self.open_until) = Some(now + OPEN_LIFETIME);
        Ok(needed)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change is a single call, so a panic elsewhere can't leave it half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
