//! Rows of `agent_versions`.

use std::sync::Arc;

use super::{PayloadRow, RowName, StoredTime, row};
use crate::agents::AgentRecord;
use crate::codec::decode_definition;
use crate::error::StoreError;
use values::session::Hash;

row! {
    /// A version of an agent's definition.
    #[derive(Debug)]
    pub(crate) struct AgentRow {
        version: Vec<u8>,
        created_at: StoredTime,
        ;
        payload: PayloadRow<Vec<u8>>,
    }
}

impl TryFrom<AgentRow> for AgentRecord {
    type Error = StoreError;

    fn try_from(row: AgentRow) -> Result<Self, StoreError> {
        let version = Hash::try_from(row.version.as_slice()).map_err(|error| {
            RowName::new("agent_versions", &format_args!("{:?}", row.version)).corrupt("version", error)
        })?;
        let definition = decode_definition(row.payload.stored())
            .map_err(|error| RowName::new("agent_versions", &version).undecodable("payload", error))?;
        Ok(Self {
            definition: Arc::new(definition),
            version,
            created_at: row.created_at.0,
        })
    }
}
