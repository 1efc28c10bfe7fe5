//! Idempotency keys: recognizes repeated requests.
//!
//! A queued run claims its key in the transaction that accepts it. Everything else claims it here.
//! Keys expire by database time, like leases. So a wrong clock on one machine neither expires nor
//! revives a key.

use uuid::Uuid;

use super::RunContext;
use crate::run::refusal::Refusal;
use crate::run::request::RequestKey;
use store::queue::IdempotencyKey;
use values::tenant::TenantId;

/// Checks that no other request has used the key. For requests that are idempotent themselves:
/// a repeated request is simply executed again.
pub async fn check_key(
    ctx: &RunContext,
    tenant: &TenantId,
    key: Option<&RequestKey>,
    resource_id: Uuid,
) -> Result<(), Refusal> {
    claim_key(ctx, tenant, key, resource_id).await.map(drop)
}

/// Reserves an id under the key, or returns the id that the same request reserved before.
pub(in crate::run) async fn claim_key(
    ctx: &RunContext,
    tenant: &TenantId,
    key: Option<&RequestKey>,
    resource_id: Uuid,
) -> Result<Option<Uuid>, Refusal> {
    let Some(key) = key else { return Ok(None) };
    let claim = stored_key(ctx, key);
    let known = ctx.store.idempotency_claim(tenant, &claim, resource_id);
    let Some(known) = known.await? else { return Ok(None) };
    key.check(known.digest)?;
    Ok(Some(known.resource_id))
}

/// Returns the key in its stored form. The configured retention begins when the key is claimed,
/// or at the end of its own validity.
pub(in crate::run) fn stored_key(ctx: &RunContext, key: &RequestKey) -> IdempotencyKey {
    let claimed_at = ctx.process.leases.now();
    IdempotencyKey {
        key: key.key.clone(),
        digest: key.digest,
        claimed_at,
        expires_at: key.valid_until.map_or(claimed_at, |until| until.max(claimed_at)) + ctx.idempotency.retention,
    }
}
