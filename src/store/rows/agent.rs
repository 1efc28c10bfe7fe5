//! Rows of `agent_versions`.

use std::sync::Arc;

use super::{RowName, StoredTime, from_row};
use crate::session::Hash;
use crate::store::codec::{StoredPayload, decode_definition};
use crate::store::error::StoreError;
use crate::store::traits::AgentRecord;

/// A version of an agent's definition.
#[derive(Debug)]
pub(crate) struct AgentRow {
    version: Vec<u8>,
    created_at: StoredTime,
    schema_version: i16,
    encoding: i16,
    payload: Vec<u8>,
}

from_row!(AgentRow {
    version,
    created_at,
    schema_version,
    encoding,
    payload
});

impl TryFrom<AgentRow> for AgentRecord {
    type Error = StoreError;

    fn try_from(row: AgentRow) -> Result<Self, StoreError> {
        let version = Hash::try_from(row.version.as_slice()).map_err(|error| {
            RowName::new("agent_versions", &format_args!("{:?}", row.version)).corrupt("version", error)
        })?;
        let stored = StoredPayload {
            schema_version: row.schema_version,
            encoding: row.encoding,
            bytes: &row.payload,
        };
        let definition = decode_definition(stored)
            .map_err(|error| RowName::new("agent_versions", &version).undecodable("payload", error))?;
        Ok(Self {
            definition: Arc::new(definition),
            version,
            created_at: row.created_at.0,
        })
    }
}
