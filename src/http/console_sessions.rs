//! Sessions of the console: a browser logs in once with an API key, and holds another secret from
//! then on.
//!
//! The store has them, so every replica knows them. A session has the scopes and the tenant of its
//! key, and ends with it. It also ends some time after its last use, but a use is rarely written.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use secrecy::SecretString;

use super::lookups::LookUps;
use super::problem::Problem;
use crate::api_key;
use store::audit::Requester;
use store::console_sessions::ConsoleSession;
use store::keys::ApiKeyRecord;
use store::{Store, StoreError};
use values::clock::Timestamp;
use values::session::Hash;

/// The longest life of a session.
pub(super) const MAX_AGE: Duration = Duration::from_hours(12);
/// How long a session lasts after its last use.
const MAX_IDLE: Duration = Duration::from_hours(2);
/// How much earlier a session may end, so that few uses are written.
const PRECISION: Duration = Duration::from_mins(5);
/// The most sessions of a key.
const MAX_PER_KEY: u32 = 100;

/// Stores and caches sessions of the console.
#[derive(Debug)]
pub(super) struct ConsoleSessions {
    store: Arc<dyn Store>,
    found: LookUps<ConsoleSession>,
}

impl ConsoleSessions {
    /// Makes an empty cache of a store.
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            found: LookUps::default(),
        }
    }

    /// Begins a session of a key. Returns it with the secret for the browser.
    pub(super) async fn begin(
        &self,
        key: &ApiKeyRecord,
        by: &Requester,
    ) -> Result<(ConsoleSession, SecretString), Problem> {
        let now = by.at;
        let made = api_key::generate_session();
        let (secret, secret_hash) = made.map_err(|error| Problem::internal(error.to_string()))?;
        let session = ConsoleSession {
            secret_hash,
            key_id: key.key_id,
            key_hash: key.secret_hash,
            tenant: key.tenant.clone(),
            created_at: now,
            expires_at: expiry(now, now),
        };
        self.store.console_session_insert(&session, MAX_PER_KEY, by).await?;
        Ok((session, secret))
    }

    /// Returns the session whose secret has the hash, unless it has expired.
    pub(super) async fn find(&self, secret_hash: Hash, now: Timestamp) -> Result<Option<Arc<ConsoleSession>>, Problem> {
        let reading = self.store.console_session_lookup(secret_hash);
        let found = self.found.find(secret_hash, reading).await?;
        Ok(found.filter(|session| session.expires_at > now))
    }

    /// Extends a session that is used. A failure is no reason to refuse the request.
    pub(super) async fn extend(&self, session: &ConsoleSession, now: Timestamp) {
        let (secret_hash, expires_at) = (session.secret_hash, expiry(session.created_at, now));
        if expires_at < session.expires_at + PRECISION {
            return;
        }
        // Concurrent requests find it extended. After a failure, the next look-up does not, and a
        // request tries again.
        let extended = ConsoleSession {
            expires_at,
            ..session.clone()
        };
        self.found.update(secret_hash, extended);
        if let Err(error) = self.store.console_session_extend(secret_hash, expires_at).await {
            let error = &error as &dyn Error;
            tracing::warn!(error, "a session of the console can't be extended");
        }
    }

    /// Ends a session. Other replicas may accept it for some seconds more.
    pub(super) async fn end(&self, session: &ConsoleSession, by: &Requester) -> Result<(), StoreError> {
        self.store.console_session_delete(session, by).await?;
        self.found.remove(session.secret_hash);
        Ok(())
    }
}

/// Returns when a session ends that is used now and not again.
fn expiry(created_at: Timestamp, now: Timestamp) -> Timestamp {
    (created_at + MAX_AGE).min(now + MAX_IDLE)
}
