//! Idempotency keys: recognises requests that are sent twice.
//!
//! A queued run claims its key in the transaction that accepts it. Everything else claims it here.
//! Keys expire by the database's time, as leases do. So a wrong clock on one machine neither ends a
//! key nor revives one.

use uuid::Uuid;

use super::error::Refusal;
use super::request::RequestKey;
use super::service::RunService;
use crate::store::IdempotencyKey;
use crate::tenant::TenantId;

impl RunService {
    /// Checks that no other request had the key. For requests that may be repeated by nature: a known one is simply done again.
    pub async fn check_key(
        &self,
        tenant: &TenantId,
        key: Option<&RequestKey>,
        resource_id: Uuid,
    ) -> Result<(), Refusal> {
        self.claim_key(tenant, key, resource_id).await.map(drop)
    }

    /// Reserves an id under the key, or returns the one that the same request reserved before.
    pub(super) async fn claim_key(
        &self,
        tenant: &TenantId,
        key: Option<&RequestKey>,
        resource_id: Uuid,
    ) -> Result<Option<Uuid>, Refusal> {
        let Some(key) = key else { return Ok(None) };
        let claim = self.stored_key(key);
        let known = self.ports.store.idempotency_claim(tenant, &claim, resource_id);
        match known.await? {
            Some(known) if known.digest != key.digest => Err(Refusal::OtherRequest { key: key.key.clone() }),
            known => Ok(known.map(|known| known.resource_id)),
        }
    }

    /// Returns the key as it is kept, for as long as is configured.
    pub(super) fn stored_key(&self, key: &RequestKey) -> IdempotencyKey {
        let claimed_at = self.lease_clock.now();
        IdempotencyKey {
            key: key.key.clone(),
            digest: key.digest,
            claimed_at,
            expires_at: claimed_at + self.settings.idempotency_retention,
        }
    }
}
