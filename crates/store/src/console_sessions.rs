//! Sessions of the console in their stored form. A browser has a secret in place of an API key, and
//! the store has its hash.

use std::fmt;

use async_trait::async_trait;

use super::audit::Requester;
use super::error::StoreError;
use values::clock::Timestamp;
use values::ids::ApiKeyId;
use values::session::Hash;
use values::tenant::TenantId;

/// A session of the console: never the secret, only its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsoleSession {
    /// The hash of the secret that the browser has.
    pub secret_hash: Hash,
    /// The API key of the login.
    pub key_id: ApiKeyId,
    /// The hash of the secret of that key, by which the key is looked up. Not part of the row.
    pub key_hash: Hash,
    /// The tenant of the key.
    pub tenant: TenantId,
    /// When it began.
    pub created_at: Timestamp,
    /// When it ends, unless it is extended.
    pub expires_at: Timestamp,
}

/// Stores sessions of the console by the hash of their secret.
#[async_trait]
pub trait ConsoleSessionStore: Send + Sync + fmt::Debug {
    /// Stores a session. Removes the oldest sessions of its key beyond the newest `limit`.
    async fn console_session_insert(
        &self,
        session: &ConsoleSession,
        limit: u32,
        by: &Requester,
    ) -> Result<(), StoreError>;

    /// Finds the session, expired or not, whose secret has this hash. There is none without the row
    /// of its key, which a revoked key still has.
    async fn console_session_lookup(&self, secret_hash: Hash) -> Result<Option<ConsoleSession>, StoreError>;

    /// Moves the expiry of a session to a later time, if the session exists.
    async fn console_session_extend(&self, secret_hash: Hash, expires_at: Timestamp) -> Result<(), StoreError>;

    /// Deletes a session, if it exists.
    async fn console_session_delete(&self, session: &ConsoleSession, by: &Requester) -> Result<(), StoreError>;
}
