//! API keys.

use super::engine::Engine;
use super::statement::Statement;
use crate::clock::Timestamp;
use crate::ids::ApiKeyId;
use crate::session::Hash;
use crate::store::codec::encode_limits;
use crate::store::error::{StoreError, StoreFuture};
use crate::store::key::ApiKeyRecord;
use crate::store::rows::{KeyRow, StoredTime, scopes_text};
use crate::store::traits::KeyStore;

impl<E: Engine> KeyStore for E {
    fn key_insert<'a>(&'a self, key: &'a ApiKeyRecord) -> StoreFuture<'a, ()> {
        Box::pin(key_insert(self, key))
    }

    fn key_lookup(&self, secret_hash: Hash) -> StoreFuture<'_, Option<ApiKeyRecord>> {
        Box::pin(key_lookup(self, secret_hash))
    }

    fn key_list(&self) -> StoreFuture<'_, Vec<ApiKeyRecord>> {
        Box::pin(key_list(self))
    }

    fn key_revoke(&self, key_id: ApiKeyId, now: Timestamp) -> StoreFuture<'_, bool> {
        Box::pin(key_revoke(self, key_id, now))
    }

    fn key_exists(&self) -> StoreFuture<'_, bool> {
        Box::pin(key_exists(self))
    }
}

async fn key_insert(engine: &impl Engine, key: &ApiKeyRecord) -> Result<(), StoreError> {
    let statement = "insert into api_keys (key_id, secret_hash, tenant, scopes, label, limits, created_at, revoked_at)
        values ($1, $2, $3, $4, $5, $6, $7, $8)";
    let scopes = scopes_text(&key.scopes);
    let limits = encode_limits(&key.limits).map_err(|error| StoreError::Failed {
        operation: "insert key",
        source: error.into(),
    })?;
    Statement::new("insert key", statement)
        .bind(key.key_id.as_uuid())
        .bind(key.secret_hash.as_bytes().as_slice())
        .bind(key.tenant.as_str())
        .bind(scopes.as_str())
        .bind(key.label.as_str())
        .bind(limits.as_deref())
        .bind(StoredTime(key.created_at))
        .bind(key.revoked_at.map(StoredTime))
        .execute(engine)
        .await?;
    Ok(())
}

async fn key_lookup(engine: &impl Engine, secret_hash: Hash) -> Result<Option<ApiKeyRecord>, StoreError> {
    let statement = "select key_id, secret_hash, tenant, scopes, label, limits, created_at, revoked_at from api_keys
        where secret_hash = $1";
    let row: Option<KeyRow> = Statement::new("look up key", statement)
        .bind(secret_hash.as_bytes().as_slice())
        .fetch_optional(engine)
        .await?;
    row.map(ApiKeyRecord::try_from).transpose()
}

async fn key_list(engine: &impl Engine) -> Result<Vec<ApiKeyRecord>, StoreError> {
    let statement = "select key_id, secret_hash, tenant, scopes, label, limits, created_at, revoked_at from api_keys
        order by key_id desc";
    let rows: Vec<KeyRow> = Statement::new("list keys", statement).fetch_all(engine).await?;
    rows.into_iter().map(ApiKeyRecord::try_from).collect()
}

async fn key_revoke(engine: &impl Engine, key_id: ApiKeyId, now: Timestamp) -> Result<bool, StoreError> {
    let statement = "update api_keys set revoked_at = $2 where key_id = $1 and revoked_at is null";
    let revoked = Statement::new("revoke key", statement)
        .bind(key_id.as_uuid())
        .bind(StoredTime(now))
        .execute(engine)
        .await?;
    Ok(revoked > 0)
}

async fn key_exists(engine: &impl Engine) -> Result<bool, StoreError> {
    let statement = "select exists (select 1 from api_keys)";
    let row: Option<(bool,)> = Statement::new("count keys", statement).fetch_optional(engine).await?;
    Ok(row.is_some_and(|(exists,)| exists))
}
