//! Caches API keys for 5 seconds, so that a request costs no round trip and a revoked key ends
//! soon.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::lookups::{Freshness, LookUps, REFRESH_TIMEOUT};
use super::problem::Problem;
use crate::api_key::hash_secret;
use store::keys::ApiKeyRecord;
use store::{Store, StoreError};
use values::session::Hash;

/// How long the result that no key exists is used.
const OPEN_LIFETIME: Duration = Duration::from_secs(1);

/// Caches keys of the store.
#[derive(Debug)]
pub(super) struct KeyCache {
    store: Arc<dyn Store>,
    keys: LookUps<ApiKeyRecord>,
    open: Mutex<Option<Freshness>>,
    key_was_made: AtomicBool,
}

impl KeyCache {
    /// Makes an empty cache.
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            keys: LookUps::default(),
            open: Mutex::default(),
            key_was_made: AtomicBool::new(false),
        }
    }

    /// Returns the valid key with the secret.
    pub(super) async fn key_with_secret(&self, secret: &str) -> Result<Option<Arc<ApiKeyRecord>>, Problem> {
        match hash_secret(secret) {
            Some(hash) => self.key(hash).await,
            None => Ok(None),
        }
    }

    /// Returns the valid key whose secret has the hash.
    pub(super) async fn key(&self, secret_hash: Hash) -> Result<Option<Arc<ApiKeyRecord>>, Problem> {
        let reading = async {
            let found = self.store.key_lookup(secret_hash).await?;
            if found.is_some() {
                self.key_was_made.store(true, Ordering::Relaxed);
            }
            Ok::<_, StoreError>(found.filter(|key| key.revoked_at.is_none()))
        };
        self.keys.find(secret_hash, reading).await
    }

    /// Makes requests need credentials from now on.
    pub(super) fn require(&self) {
        self.key_was_made.store(true, Ordering::Relaxed);
    }

    /// Returns whether requests need a key. They always do once a first key was created.
    pub(super) async fn is_key_needed(&self) -> Result<bool, StoreError> {
        if self.key_was_made.load(Ordering::Relaxed) {
            return Ok(true);
        }
        let asked = Instant::now();
        let cached = match self.open.lock().as_mut() {
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
        *self.open.lock() = Some(Freshness::since(asked, OPEN_LIFETIME));
        Ok(needed)
    }
}
