//! Rows of `console_sessions`.

use uuid::Uuid;

use super::{RowName, StoredTime, row};
use crate::console_sessions::ConsoleSession;
use crate::error::StoreError;
use values::ids::ApiKeyId;

row! {
    /// A session of the console, with the hash of its key's secret.
    #[derive(Debug)]
    pub(crate) struct ConsoleSessionRow {
        secret_hash: Vec<u8>,
        key_id: Uuid,
        key_hash: Vec<u8>,
        tenant: String,
        created_at: StoredTime,
        expires_at: StoredTime,
    }
}

impl TryFrom<ConsoleSessionRow> for ConsoleSession {
    type Error = StoreError;

    fn try_from(row: ConsoleSessionRow) -> Result<Self, StoreError> {
        // A hash of a secret is in no message, so an error names the key.
        let name = RowName::new("console_sessions", &row.key_id);
        Ok(Self {
            secret_hash: name.hash("secret_hash", &row.secret_hash)?,
            key_id: ApiKeyId::from_uuid(row.key_id),
            key_hash: name.hash("key_hash", &row.key_hash)?,
            tenant: name.parse("tenant", &row.tenant)?,
            created_at: row.created_at.0,
            expires_at: row.expires_at.0,
        })
    }
}
