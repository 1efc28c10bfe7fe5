//! Idempotency keys: recognizes repeated requests.
//!
//! A queued run claims its key in the transaction that accepts it. Everything else claims it here.
//! Keys expire by database time, like leases. So a wrong clock on one machine neither expires nor
//! revives a key.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::error::Refusal;
use super::queue::Leases;
use super::request::RequestKey;
use store::Store;
use store::queue::IdempotencyKey;
use values::tenant::TenantId;

/// Recognizes repeated requests by their keys.
#[derive(Debug)]
pub struct IdempotencyKeys {
    /// Stores the keys.
    pub store: Arc<dyn Store>,
    /// Provides the database time.
    pub leases: Arc<Leases>,
    /// How long a key is retained.
    pub retention: Duration,
}

impl IdempotencyKeys {
    /// Checks that no other request has used the key. For requests that are idempotent themselves:
    /// a repeated request is simply executed again.
    pub async fn check(&self, tenant: &TenantId, key: Option<&RequestKey>, resource_id: Uuid) -> Result<(), Refusal> {
        self.claim(tenant, key, resource_id).await.map(drop)
    }

    /// Reserves an id under the key, or returns the id that the same request reserved before.
    pub(super) async fn claim(
        &self,
        tenant: &TenantId,
        key: Option<&RequestKey>,
        resource_id: Uuid,
    ) -> Result<Option<Uuid>, Refusal> {
        let Some(key) = key else { return Ok(None) };
        let claim = self.stored(key);
        let known = self.store.idempotency_claim(tenant, &claim, resource_id);
        let Some(known) = known.await? else { return Ok(None) };
        key.check(known.digest)?;
        Ok(Some(known.resource_id))
    }

    /// Returns the key in its stored form. The configured retention begins when the key is claimed,
    /// or at the end of its own validity.
    pub(super) fn stored(&self, key: &RequestKey) -> IdempotencyKey {
        let claimed_at = self.leases.now();
        IdempotencyKey {
            key: key.key.clone(),
            digest: key.digest,
            claimed_at,
            expires_at: key.valid_until.map_or(claimed_at, |until| until.max(claimed_at)) + self.retention,
        }
    }
}
