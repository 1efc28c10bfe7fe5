//! The audit log: one entry for each administrative act, written in the transaction of the act.
//!
//! The entries of a tenant are a chain: each has the hash of the one before, so a changed or
//! removed entry is noticed. Acts that concern no tenant are in a chain of their own. The database
//! refuses to change or delete entries, also those of removed tenants. They have no contents of
//! sessions.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use async_trait::async_trait;
use serde::ser::{Error as _, SerializeStruct as _};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;

use super::error::StoreError;
use agent::record::{CertificateCreator, TokenCreator};
use values::clock::Timestamp;
use values::ids::ApiKeyId;
use values::json::{Object, Value};
use values::session::Hash;
use values::tenant::{ParseTenantError, TenantId};

/// The chain to which an entry belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditChain {
    /// Acts that concern the whole service.
    Service,
    /// Acts that concern a tenant.
    Tenant(TenantId),
}

/// Who acts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Actor {
    /// Anybody, while requests need no credentials.
    Anonymous,
    /// The holder of an API key.
    Key {
        /// Names the key.
        key_id: ApiKeyId,
        /// Its purpose, in the operator's words.
        label: String,
    },
    /// The holder of a token of an identity provider.
    Token(TokenCreator),
    /// The owner of a client certificate.
    Certificate(CertificateCreator),
    /// The user of the command line, as the operating system names it.
    Command {
        /// The account.
        user: String,
        /// The machine.
        host: String,
    },
}

/// Who asks for an administrative act, when, and by which request.
#[derive(Debug, Clone)]
pub struct Requester {
    /// Who asks.
    pub actor: Actor,
    /// When it was asked for.
    pub at: Timestamp,
    /// The id of the request; `None` for commands.
    pub request_id: Option<String>,
    /// The address from which the request comes: that of a proxy, if there is one.
    pub address: Option<IpAddr>,
}

/// What an administrative act does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum AuditAction {
    /// An API key was made.
    #[serde(rename = "key.created")]
    KeyCreated,
    /// An API key was revoked.
    #[serde(rename = "key.revoked")]
    KeyRevoked,
    /// The tokens of a subject were revoked.
    #[serde(rename = "tokens.revoked")]
    TokensRevoked,
    /// A version of an agent became its current one.
    #[serde(rename = "agent.stored")]
    AgentStored,
    /// The name of an agent was taken away.
    #[serde(rename = "agent.deleted")]
    AgentDeleted,
    /// The files of agents were read again.
    #[serde(rename = "agent_files.reloaded")]
    AgentFilesReloaded,
    /// A session was removed.
    #[serde(rename = "session.removed")]
    SessionRemoved,
    /// A tenant was removed.
    #[serde(rename = "tenant.removed")]
    TenantRemoved,
    /// Expired data was removed by a command.
    #[serde(rename = "sweep.started")]
    SweepStarted,
    /// The store was prepared after a restore from a backup.
    #[serde(rename = "restore.finished")]
    RestoreFinished,
    /// The message of a webhook was sent again.
    #[serde(rename = "webhook.redelivered")]
    WebhookRedelivered,
    /// A browser logged in to the console.
    #[serde(rename = "browser.logged_in")]
    BrowserLoggedIn,
    /// A browser logged out.
    #[serde(rename = "browser.logged_out")]
    BrowserLoggedOut,
}

/// An act that is done.
#[derive(Debug, Clone)]
pub struct Act {
    /// The chain of its entry.
    pub chain: AuditChain,
    /// Who asks for it.
    pub by: Requester,
    /// What it does.
    pub action: AuditAction,
    /// To what, such as the id of a key.
    pub target: String,
    /// More about it. An entry has at most 8 KiB of it.
    pub details: Object,
}

/// An entry of the audit log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Its position in the chain, from 1.
    pub number: u64,
    /// When the act was done.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    pub at: Timestamp,
    /// The tenant that the act concerns; absent if it concerns the whole service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub tenant: Option<TenantId>,
    /// Who acted.
    pub actor: Actor,
    /// What was done.
    pub action: AuditAction,
    /// To what.
    pub target: String,
    /// More about it.
    #[serde(default, skip_serializing_if = "Object::is_empty")]
    pub details: Object,
    /// The id of the request; absent for commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The address from which the request came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub address: Option<IpAddr>,
}

/// A stored entry with its hashes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditRecord {
    /// Its position in the chain, as its row names it.
    pub number: u64,
    /// The text of an [`AuditEntry`], as it was hashed.
    pub entry: String,
    /// The hash of the entry before; zeros for the first one.
    pub previous_hash: Hash,
    /// BLAKE3 of the 32 bytes of `previous_hash`, followed by the text of the entry.
    pub hash: Hash,
}

/// Writes the entry as JSON, byte for byte. A text that somebody has damaged becomes a string.
impl Serialize for AuditRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entry = RawValue::from_string(self.entry.clone()).or_else(|_| to_raw_value(&self.entry));
        let mut record = serializer.serialize_struct("AuditRecord", 3)?;
        record.serialize_field("entry", &entry.map_err(S::Error::custom)?)?;
        record.serialize_field("previous_hash", &self.previous_hash)?;
        record.serialize_field("hash", &self.hash)?;
        record.end()
    }
}

/// What the check of a chain reads of an entry, which a newer version may have written.
#[derive(Deserialize)]
struct Position {
    number: u64,
    tenant: Option<TenantId>,
}

/// The end of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditHead {
    /// The chain.
    pub chain: AuditChain,
    /// The number of its last entry.
    pub number: u64,
    /// The hash of that entry.
    pub hash: Hash,
}

/// A chain that is not as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuditFault {
    /// There is no entry with this number, but there is a later one.
    #[error("entry {0} is missing")]
    Missing(u64),
    /// The entry with this number was changed, or one before it.
    #[error("entry {0} does not have its hash")]
    Changed(u64),
    /// The chain ends with another entry than its head names.
    #[error("the chain ends with entry {last}, and its head names entry {head}")]
    Cut {
        /// The last entry that is there.
        last: u64,
        /// The last entry that was written.
        head: u64,
    },
    /// There is an entry that was not appended by an act.
    #[error("there is an entry {0}, and the head of the chain does not know it")]
    Unknown(u64),
}

/// Checks the entries of a chain one after the other.
#[derive(Debug)]
pub struct ChainCheck {
    head: AuditHead,
    checked: u64,
    previous: Hash,
}

impl Act {
    /// Makes an act that concerns the whole service.
    pub fn of_service(by: &Requester, action: AuditAction, target: impl Into<String>) -> Self {
        Self::new(AuditChain::Service, by, action, target)
    }

    /// Makes an act that concerns a tenant.
    pub(crate) fn of(tenant: &TenantId, by: &Requester, action: AuditAction, target: impl Into<String>) -> Self {
        Self::new(AuditChain::Tenant(tenant.clone()), by, action, target)
    }

    fn new(chain: AuditChain, by: &Requester, action: AuditAction, target: impl Into<String>) -> Self {
        Self {
            chain,
            by: by.clone(),
            action,
            target: target.into(),
            details: Object::new(),
        }
    }

    /// Adds a detail.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }
}

impl AuditChain {
    /// The name of the chain of the service, which no tenant can have.
    const SERVICE: &'static str = "";

    /// Returns the name under which it is stored.
    pub(crate) fn as_str(&self) -> &str {
        self.tenant().map_or(Self::SERVICE, TenantId::as_str)
    }

    /// Returns the tenant, if the chain is that of one.
    pub fn tenant(&self) -> Option<&TenantId> {
        match self {
            Self::Service => None,
            Self::Tenant(tenant) => Some(tenant),
        }
    }
}

impl FromStr for AuditChain {
    type Err = ParseTenantError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            Self::SERVICE => Ok(Self::Service),
            tenant => tenant.parse().map(Self::Tenant),
        }
    }
}

/// Writes the action as JSON has it.
impl fmt::Display for AuditAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for AuditChain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Service => f.write_str("the service"),
            Self::Tenant(tenant) => write!(f, "tenant {tenant}"),
        }
    }
}

impl AuditHead {
    /// Returns the end of a chain without entries.
    pub(crate) fn of_empty(chain: AuditChain) -> Self {
        Self {
            chain,
            number: 0,
            hash: no_hash(),
        }
    }
}

/// The hash before the first entry of a chain.
pub(crate) fn no_hash() -> Hash {
    Hash::from([0; 32])
}

/// Returns the hash of an entry.
pub(crate) fn chained(previous: &Hash, entry: &str) -> Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(previous.as_bytes()).update(entry.as_bytes());
    Hash::from(*hasher.finalize().as_bytes())
}

impl ChainCheck {
    /// Begins to check a chain up to an end that was read before.
    pub fn new(head: AuditHead) -> Self {
        Self {
            head,
            checked: 0,
            previous: no_hash(),
        }
    }

    /// Returns the number of the entry to check next; `None` at the end.
    pub fn next(&self) -> Option<u64> {
        (self.checked < self.head.number).then_some(self.checked + 1)
    }

    /// Checks the next entry.
    pub fn add(&mut self, record: &AuditRecord) -> Result<(), AuditFault> {
        let number = self.checked + 1;
        if record.number != number {
            return Err(AuditFault::Missing(number));
        }
        let is_same = record.previous_hash == self.previous
            && record.hash == chained(&self.previous, &record.entry)
            && serde_json::from_str::<Position>(&record.entry)
                .is_ok_and(|entry| entry.number == number && entry.tenant.as_ref() == self.head.chain.tenant());
        if !is_same {
            return Err(AuditFault::Changed(number));
        }
        (self.checked, self.previous) = (number, record.hash);
        Ok(())
    }

    /// Checks that the chain ends as its head names it.
    pub fn end(self) -> Result<AuditHead, AuditFault> {
        if self.checked == self.head.number && self.previous == self.head.hash {
            return Ok(self.head);
        }
        Err(AuditFault::Cut {
            last: self.checked,
            head: self.head.number,
        })
    }
}

/// Reads the audit log, and records acts that the store does not do itself.
#[async_trait]
pub trait AuditStore: Send + Sync + fmt::Debug {
    /// Records an act.
    async fn audit_insert(&self, act: &Act) -> Result<(), StoreError>;

    /// Lists the chains that have entries, by name. Reads all entries.
    async fn audit_chains(&self) -> Result<Vec<AuditChain>, StoreError>;

    /// Returns the ends of all chains, by name.
    async fn audit_heads(&self) -> Result<Vec<AuditHead>, StoreError>;

    /// Returns the end of a chain. A chain without entries ends with number 0.
    async fn audit_head(&self, chain: &AuditChain) -> Result<AuditHead, StoreError>;

    /// Reads entries by their numbers, up to `limit` of them from `first` on, in their order.
    async fn audit_read(&self, chain: &AuditChain, first: u64, limit: u32) -> Result<Vec<AuditRecord>, StoreError>;
}
