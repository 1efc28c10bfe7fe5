//! Idempotency keys: they return the result of the first request to a repeated one.

use uuid::Uuid;

use crate::clock::Timestamp;
use crate::store::error::StoreError;
use crate::store::queue::{IdempotencyKey, KnownRequest};
use crate::store::rows::{RowName, StoredTime, row};
use crate::store::sql::engine::Engine;
use crate::store::sql::statement::Statement;
use crate::tenant::TenantId;

/// What idempotency keys are claimed for, in errors.
const OPERATION: &str = "claim idempotency key";

/// Reserves an id under a key, or returns the earlier request of the key. A repeated attempt finds
/// its own id, which is no earlier request.
pub(super) async fn idempotency_claim(
    engine: &impl Engine,
    tenant: &TenantId,
    key: &IdempotencyKey,
    resource_id: Uuid,
) -> Result<Option<KnownRequest>, StoreError> {
    loop {
        let claimed = key_claim_statement(tenant, key, resource_id).execute(engine).await?;
        if claimed > 0 {
            return Ok(None);
        }
        if let Some(known) = key_lookup(engine, tenant, &key.key).await? {
            let is_own = known.resource_id == resource_id && known.digest == key.digest;
            return Ok((!is_own).then_some(known));
        }
        // It expired and was removed in between: the next attempt gets it.
    }
}

/// Finds the earlier request of a key that has not expired.
pub(super) async fn idempotency_lookup(
    engine: &impl Engine,
    tenant: &TenantId,
    key: &str,
    now: Timestamp,
) -> Result<Option<KnownRequest>, StoreError> {
    let statement =
        "select resource_id, digest from idempotency_keys where tenant = $1 and key = $2 and expires_at > $3";
    let row: Option<KeyRow> = Statement::new("look up idempotency key", statement)
        .bind(tenant.as_str())
        .bind(key)
        .bind(StoredTime(now))
        .fetch_optional(engine)
        .await?;
    row.map(KnownRequest::try_from).transpose()
}

/// Claims a key that is free or has expired; changes no row otherwise.
pub(crate) fn key_claim_statement<'v>(
    tenant: &'v TenantId,
    key: &'v IdempotencyKey,
    resource_id: Uuid,
) -> Statement<'v> {
    let statement = "insert into idempotency_keys (tenant, key, resource_id, digest, expires_at)
        values ($1, $2, $3, $4, $5)
        on conflict (tenant, key) do update set
            resource_id = excluded.resource_id, digest = excluded.digest, expires_at = excluded.expires_at
        where idempotency_keys.expires_at <= $6";
    Statement::new(OPERATION, statement)
        .bind(tenant.as_str())
        .bind(key.key.as_str())
        .bind(resource_id)
        .bind(key.digest.as_bytes().as_slice())
        .bind(StoredTime(key.expires_at))
        .bind(StoredTime(key.claimed_at))
}

/// Finds the request of a key.
pub(crate) async fn key_lookup(
    engine: &impl Engine,
    tenant: &TenantId,
    key: &str,
) -> Result<Option<KnownRequest>, StoreError> {
    let row: Option<KeyRow> = Statement::new(
        OPERATION,
        "select resource_id, digest from idempotency_keys where tenant = $1 and key = $2",
    )
    .bind(tenant.as_str())
    .bind(key)
    .fetch_optional(engine)
    .await?;
    row.map(KnownRequest::try_from).transpose()
}

row! {
    #[derive(Debug)]
    struct KeyRow {
        resource_id: Uuid,
        digest: Vec<u8>,
    }
}

impl TryFrom<KeyRow> for KnownRequest {
    type Error = StoreError;

    fn try_from(row: KeyRow) -> Result<Self, StoreError> {
        let name = RowName::new("idempotency_keys", &row.resource_id);
        Ok(Self {
            resource_id: row.resource_id,
            digest: name.hash("digest", &row.digest)?,
        })
    }
}
