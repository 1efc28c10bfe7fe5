//! An API key in its stored form: only the hash of the secret.

use std::fmt;
use std::str::FromStr;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::audit::Requester;
use super::error::StoreError;
use values::clock::Timestamp;
use values::ids::ApiKeyId;
use values::limits::RunLimits;
use values::session::Hash;
use values::tenant::TenantId;

/// A permission of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Scope {
    /// Start runs and import sessions.
    #[serde(rename = "runs:write")]
    RunsWrite,
    /// Read sessions, runs and agents.
    #[serde(rename = "sessions:read")]
    SessionsRead,
    /// Everything of the tenant, agents' definitions included.
    #[serde(rename = "admin")]
    Admin,
    /// Read the metrics of the whole service.
    #[serde(rename = "metrics")]
    Metrics,
    /// Read the audit log of the tenant.
    #[serde(rename = "audit")]
    Audit,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 5] = [
        Self::RunsWrite,
        Self::SessionsRead,
        Self::Admin,
        Self::Metrics,
        Self::Audit,
    ];

    /// Returns the name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunsWrite => "runs:write",
            Self::SessionsRead => "sessions:read",
            Self::Admin => "admin",
            Self::Metrics => "metrics",
            Self::Audit => "audit",
        }
    }

    /// Returns whether a key with these scopes has this one. `admin` includes all scopes that
    /// concern the tenant of the key alone.
    pub fn is_granted(self, scopes: &[Self]) -> bool {
        scopes.contains(&self) || (self != Self::Metrics && scopes.contains(&Self::Admin))
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Scope {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|scope| scope.as_str() == text);
        known.ok_or_else(|| format!("{text:?} is none of runs:write, sessions:read, admin, metrics, audit"))
    }
}

/// A stored API key: never the secret, only its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyRecord {
    /// The id of the key.
    pub key_id: ApiKeyId,
    /// The hash of its secret.
    pub secret_hash: Hash,
    /// The tenant whose data the key gives access to.
    pub tenant: TenantId,
    /// The scopes that it has.
    pub scopes: Vec<Scope>,
    /// The purpose, in the operator's words.
    pub label: String,
    /// The limits of runs that its callers start, within the limits of the tenant.
    pub limits: RunLimits,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// Stores API keys by the hash of their secret.
#[async_trait]
pub trait KeyStore: Send + Sync + fmt::Debug {
    /// Stores a key.
    async fn key_insert(&self, key: &ApiKeyRecord, by: &Requester) -> Result<(), StoreError>;

    /// Finds the key, revoked or not, whose secret has this hash.
    async fn key_lookup(&self, secret_hash: Hash) -> Result<Option<ApiKeyRecord>, StoreError>;

    /// Lists all keys, newest first.
    async fn key_list(&self) -> Result<Vec<ApiKeyRecord>, StoreError>;

    /// Revokes a key. Returns whether there was one in force.
    async fn key_revoke(&self, key_id: ApiKeyId, by: &Requester) -> Result<bool, StoreError>;

    /// Returns whether any key exists, revoked or not. Once one exists, requests need a key.
    async fn key_exists(&self) -> Result<bool, StoreError>;
}
