//! Rows of `api_keys`.

use uuid::Uuid;

use super::{RowName, StoredTime, row};
use crate::codec::decode_limits;
use crate::error::StoreError;
use crate::keys::{ApiKeyRecord, Scope};
use values::ids::ApiKeyId;

row! {
    /// An API key.
    #[derive(Debug)]
    pub(crate) struct KeyRow {
        key_id: Uuid,
        secret_hash: Vec<u8>,
        tenant: String,
        scopes: String,
        label: String,
        limits: Option<String>,
        created_at: StoredTime,
        revoked_at: Option<StoredTime>,
    }
}

impl TryFrom<KeyRow> for ApiKeyRecord {
    type Error = StoreError;

    fn try_from(row: KeyRow) -> Result<Self, StoreError> {
        let name = RowName::new("api_keys", &row.key_id);
        let scopes = row.scopes.split_whitespace();
        Ok(Self {
            key_id: ApiKeyId::from_uuid(row.key_id),
            secret_hash: name.hash("secret_hash", &row.secret_hash)?,
            tenant: name.parse("tenant", &row.tenant)?,
            scopes: scopes
                .map(|scope| name.parse("scopes", scope))
                .collect::<Result<_, _>>()?,
            label: row.label,
            limits: decode_limits(row.limits.as_deref()).map_err(|error| name.corrupt("limits", error))?,
            created_at: row.created_at.0,
            revoked_at: row.revoked_at.map(|time| time.0),
        })
    }
}

/// Joins the names of scopes with spaces.
pub(crate) fn scopes_text(scopes: &[Scope]) -> String {
    let names: Vec<&str> = scopes.iter().map(|scope| scope.as_str()).collect();
    names.join(" ")
}
