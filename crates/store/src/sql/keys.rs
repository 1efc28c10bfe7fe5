//! API keys.

use async_trait::async_trait;

use super::engine::Engine;
use super::statement::Statement;
use crate::codec::encode_limits;
use crate::error::StoreError;
use crate::keys::{ApiKeyRecord, KeyStore};
use crate::rows::{KeyRow, scopes_text, values};
use values::clock::Timestamp;
use values::ids::ApiKeyId;
use values::session::Hash;

#[async_trait]
impl<E: Engine> KeyStore for E {
    async fn key_insert(&self, key: &ApiKeyRecord) -> Result<(), StoreError> {
        const OPERATION: &str = "insert key";
        let statement =
            "insert into api_keys (key_id, secret_hash, tenant, scopes, label, limits, created_at, revoked_at)
            values ($1, $2, $3, $4, $5, $6, $7, $8)";
        let scopes = scopes_text(&key.scopes);
        let limits = encode_limits(&key.limits).map_err(StoreError::failed(OPERATION))?;
        let values = values![
            key.key_id,
            &key.secret_hash,
            &key.tenant,
            &scopes,
            &key.label,
            &limits,
            key.created_at,
            key.revoked_at
        ];
        Statement::with(OPERATION, statement, values).execute(self).await?;
        Ok(())
    }

    async fn key_lookup(&self, secret_hash: Hash) -> Result<Option<ApiKeyRecord>, StoreError> {
        let statement =
            "select key_id, secret_hash, tenant, scopes, label, limits, created_at, revoked_at from api_keys
            where secret_hash = $1";
        let select = Statement::with("look up key", statement, values![&secret_hash]);
        select.find::<KeyRow, _>(self).await
    }

    async fn key_list(&self) -> Result<Vec<ApiKeyRecord>, StoreError> {
        let statement =
            "select key_id, secret_hash, tenant, scopes, label, limits, created_at, revoked_at from api_keys
            order by key_id desc";
        Statement::new("list keys", statement).list::<KeyRow, _>(self).await
    }

    async fn key_revoke(&self, key_id: ApiKeyId, now: Timestamp) -> Result<bool, StoreError> {
        let statement = "update api_keys set revoked_at = $2 where key_id = $1 and revoked_at is null";
        let update = Statement::with("revoke key", statement, values![key_id, now]);
        Ok(update.execute(self).await? > 0)
    }

    async fn key_exists(&self) -> Result<bool, StoreError> {
        let select = Statement::new("count keys", "select exists (select 1 from api_keys)");
        let row: Option<(bool,)> = select.fetch_optional(self).await?;
        Ok(row.is_some_and(|(exists,)| exists))
    }
}
