//! The definitions of agents as a trait.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use super::audit::Requester;
use super::error::StoreError;
use agent::definition::AgentDefinition;
use values::clock::Timestamp;
use values::session::Hash;
use values::tenant::TenantId;

/// Stores the definitions of agents as immutable versions.
#[async_trait]
pub trait AgentStore: Send + Sync + fmt::Debug {
    /// Makes the definition the current version of its name. Does not store an equal definition
    /// again.
    async fn agent_put(
        &self,
        tenant: &TenantId,
        definition: &AgentDefinition,
        by: &Requester,
    ) -> Result<AgentRecord, StoreError>;

    /// Stores a version without making it current, for agents of configuration files. Idempotent.
    async fn agent_version_put(&self, tenant: &TenantId, agent: &AgentRecord) -> Result<(), StoreError>;

    /// Reads the current version.
    async fn agent_lookup(&self, tenant: &TenantId, name: &str) -> Result<Option<AgentRecord>, StoreError>;

    /// Reads a version, current or not.
    async fn agent_version_lookup(&self, tenant: &TenantId, version: Hash) -> Result<Option<AgentRecord>, StoreError>;

    /// Lists the current versions by name.
    async fn agent_list(&self, tenant: &TenantId, page: &AgentPage<String>) -> Result<AgentList, StoreError>;

    /// Lists all stored versions of a name, the newest first.
    async fn agent_version_list(
        &self,
        tenant: &TenantId,
        name: &str,
        page: &AgentPage<Hash>,
    ) -> Result<AgentList, StoreError>;

    /// Deletes the name; its versions stay readable. Returns whether it existed.
    async fn agent_delete(&self, tenant: &TenantId, name: &str, by: &Requester) -> Result<bool, StoreError>;
}

/// A page of a list of agents or of versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentPage<K> {
    /// Only what comes after this name or version.
    pub after: Option<K>,
    /// The most rows.
    pub limit: u32,
    /// The page ends with the definition at which the sum of the sizes as JSON reaches this number
    /// of bytes.
    pub bytes: usize,
}

/// A page of agents.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentList {
    /// The agents or versions, in the order of the list.
    pub agents: Vec<AgentRecord>,
    /// Whether this is the last page.
    pub is_last: bool,
}

/// A stored version of an agent's definition.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRecord {
    /// The definition.
    pub definition: Arc<AgentDefinition>,
    /// The hash of the definition, which names the version.
    pub version: Hash,
    /// When the version was stored first.
    pub created_at: Timestamp,
}
