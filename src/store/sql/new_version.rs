//! An encoded version of an agent's definition, and its insertion.

use super::statement::Statement;
use crate::agent::AgentDefinition;
use crate::clock::Timestamp;
use crate::session::Hash;
use crate::store::codec::{Payload, encode_definition};
use crate::store::error::StoreError;
use crate::store::rows::StoredTime;
use crate::tenant::TenantId;

/// Inserts a version that is not stored yet.
pub(crate) const VERSION_INSERT: &str = "insert into agent_versions (
        tenant, version, name, created_at, schema_version, encoding, payload)
    values ($1, $2, $3, $4, $5, $6, $7)
    on conflict do nothing";

/// An encoded definition.
#[derive(Debug)]
pub(crate) struct NewVersion<'a> {
    pub(crate) operation: &'static str,
    pub(crate) tenant: &'a str,
    pub(crate) name: &'a str,
    pub(crate) version: Hash,
    created_at: StoredTime,
    payload: Payload,
}

impl<'a> NewVersion<'a> {
    pub(super) fn new(
        operation: &'static str,
        tenant: &'a TenantId,
        definition: &'a AgentDefinition,
        created_at: Timestamp,
    ) -> Result<Self, StoreError> {
        let (version, payload) = encode_definition(definition).map_err(|error| StoreError::Failed {
            operation,
            source: error.into(),
        })?;
        Ok(Self {
            operation,
            tenant: tenant.as_str(),
            name: definition.name.as_str(),
            version,
            created_at: StoredTime(created_at),
            payload,
        })
    }

    /// Binds tenant, version, name, time and the three columns of the payload as `$1` to `$7`.
    pub(crate) fn bind_to(&self, sql: &'static str) -> Statement<'_> {
        Statement::new(self.operation, sql)
            .bind(self.tenant)
            .bind(self.version.as_bytes().as_slice())
            .bind(self.name)
            .bind(self.created_at)
            .bind_payload(&self.payload)
    }
}
