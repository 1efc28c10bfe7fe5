//! Rows of `threads`.

use uuid::Uuid;

use super::{RowName, StoredTime, row};
use crate::error::StoreError;
use agent::record::ThreadRecord;
use values::ids::SessionId;

row! {
    /// A thread.
    #[derive(Debug)]
    pub(crate) struct ThreadRow {
        name: String,
        title: Option<String>,
        metadata: String,
        session_id: Option<Uuid>,
        agent: Option<String>,
        message_count: Option<i64>,
        run_count: i64,
        version: i64,
        created_at: StoredTime,
        updated_at: StoredTime,
    }
}

impl TryFrom<ThreadRow> for ThreadRecord {
    type Error = StoreError;

    fn try_from(row: ThreadRow) -> Result<Self, StoreError> {
        let name = RowName::new("threads", &row.name);
        Ok(Self {
            metadata: name.json("metadata", &row.metadata)?,
            session_id: row.session_id.map(SessionId::from_uuid),
            message_count: name.count("message_count", row.message_count.unwrap_or(0))?,
            run_count: name.count("run_count", row.run_count)?,
            version: name.count("version", row.version)?,
            created_at: row.created_at.0,
            updated_at: row.updated_at.0,
            name: name.parse("name", &row.name)?,
            title: row.title,
            agent: row.agent,
        })
    }
}
