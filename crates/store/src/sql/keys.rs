//! API keys.

use async_trait::async_trait;
use serde_json::json;

use super::audit::record;
use super::connection::Ended;
use super::engine::Engine;
use super::statement::Statement;
use crate::audit::{Act, AuditAction, Requester};
use crate::codec::encode_limits;
use crate::error::StoreError;
use crate::keys::{ApiKeyRecord, KeyStore};
use crate::rows::{KeyRow, scopes_text, values};
use values::ids::ApiKeyId;
use values::session::Hash;

#[async_trait]
impl<E: Engine> KeyStore for E {
    async fn key_insert(&self, key: &ApiKeyRecord, by: &Requester) -> Result<(), StoreError> {
        const OPERATION: &str = "insert key";
        let (key, act) = (key.clone(), key_act(key, by, AuditAction::KeyCreated));
        let scopes = scopes_text(&key.scopes);
        let limits = encode_limits(&key.limits).map_err(StoreError::failed(OPERATION))?;
        let inserting = self.transact(OPERATION, move |mut connection| {
            Box::pin(async move {
                let statement =
                    "insert into api_keys (key_id, secret_hash, tenant, scopes, label, limits, created_at, revoked_at)
                    values ($1, $2, $3, $4, $5, $6, $7, $8)";
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
                record(&mut connection, &act).await?;
                connection
                    .execute(Statement::with(OPERATION, statement, values))
                    .await?;
                Ok(Ended::Committed(()))
            })
        });
        inserting.await
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

    async fn key_revoke(&self, key_id: ApiKeyId, by: &Requester) -> Result<bool, StoreError> {
        const OPERATION: &str = "revoke key";
        let statement =
            "select key_id, secret_hash, tenant, scopes, label, limits, created_at, revoked_at from api_keys
            where key_id = $1";
        let select = Statement::with("look up key", statement, values![key_id]);
        let Some(key) = select.find::<KeyRow, ApiKeyRecord>(self).await? else {
            return Ok(false);
        };
        let (act, now) = (key_act(&key, by, AuditAction::KeyRevoked), by.at);
        let revoking = self.transact(OPERATION, move |mut connection| {
            Box::pin(async move {
                record(&mut connection, &act).await?;
                let statement = "update api_keys set revoked_at = $2 where key_id = $1 and revoked_at is null";
                let update = Statement::with(OPERATION, statement, values![key_id, now]);
                Ok(match connection.execute(update).await? {
                    0 => Ended::RolledBack(false),
                    _ => Ended::Committed(true),
                })
            })
        });
        revoking.await
    }

    async fn key_exists(&self) -> Result<bool, StoreError> {
        let select = Statement::new("count keys", "select exists (select 1 from api_keys)");
        let row: Option<(bool,)> = select.fetch_optional(self).await?;
        Ok(row.is_some_and(|(exists,)| exists))
    }
}

fn key_act(key: &ApiKeyRecord, by: &Requester, action: AuditAction) -> Act {
    Act::of(&key.tenant, by, action, key.key_id.to_string())
        .with("label", key.label.as_str())
        .with("scopes", json!(key.scopes))
        .with("limits", json!(key.limits))
}
