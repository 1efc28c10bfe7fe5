//! Caches the revocations of tokens for 5 seconds. The table is small, so it is read as a whole.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::lookups::{Freshness, LIFETIME, REFRESH_TIMEOUT};
use store::{Store, StoreError};
use values::clock::Timestamp;

/// The times before which tokens are refused, by issuer and subject.
type Revoked = HashMap<String, HashMap<String, Timestamp>>;

/// Caches revocations of the store.
#[derive(Debug)]
pub(super) struct Revocations {
    store: Arc<dyn Store>,
    cached: Mutex<Option<(Arc<Revoked>, Freshness)>>,
}

impl Revocations {
    /// Makes an empty cache.
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            cached: Mutex::default(),
        }
    }

    /// Returns whether the tokens of a subject that were issued at a time are revoked. During an
    /// outage of the store, what was read last counts for a minute.
    pub(super) async fn contains(&self, issuer: &str, subject: &str, issued_at: Timestamp) -> Result<bool, StoreError> {
        let revoked = self.read().await?;
        let before = revoked.get(issuer).and_then(|subjects| subjects.get(subject));
        Ok(before.is_some_and(|before| issued_at < *before))
    }

    async fn read(&self) -> Result<Arc<Revoked>, StoreError> {
        let asked = Instant::now();
        let stale = match self.cached.lock().as_mut() {
            None => None,
            Some((revoked, freshness)) if !freshness.is_due(LIFETIME, asked) => return Ok(Arc::clone(revoked)),
            Some((revoked, freshness)) => {
                freshness.next_read = asked + REFRESH_TIMEOUT;
                let is_valid = freshness.is_valid_in_outage(LIFETIME, asked);
                is_valid.then(|| Arc::clone(revoked))
            }
        };
        let listed = match (self.store.token_revocation_list().await, stale) {
            (Err(error), Some(stale)) if error.is_transient() => return Ok(stale),
            (listed, _) => listed?,
        };
        let mut revoked = Revoked::new();
        for revocation in listed {
            let subjects = revoked.entry(revocation.issuer).or_default();
            subjects.insert(revocation.subject, revocation.issued_before);
        }
        let revoked = Arc::new(revoked);
        *self.cached.lock() = Some((Arc::clone(&revoked), Freshness::since(asked, LIFETIME)));
        Ok(revoked)
    }
}
