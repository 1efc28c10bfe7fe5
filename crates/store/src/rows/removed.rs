//! Rows of `removed_sessions`.

use uuid::Uuid;

use super::{RowName, StoredTime, table_row};
use crate::error::StoreError;
use crate::retention::RemovedSession;
use values::ids::{BranchId, SessionId};
use values::session::BranchPosition;

table_row! {
    columns of "x";
    /// The tombstone of a session.
    #[derive(Debug)]
    pub(crate) struct RemovedSessionRow {
        session_id: Uuid,
        parent_session_id: Option<Uuid>,
        branch_id: Uuid,
        position: i64,
        depth: i64,
        message_count: i64,
        history_start: i64,
        removed_at: StoredTime,
        root_hash: Vec<u8>,
        segment_hash: Vec<u8>,
    }
}

impl TryFrom<RemovedSessionRow> for RemovedSession {
    type Error = StoreError;

    fn try_from(row: RemovedSessionRow) -> Result<Self, StoreError> {
        let name = RowName::new("removed_sessions", &row.session_id);
        Ok(Self {
            session_id: SessionId::from_uuid(row.session_id),
            parent_session_id: row.parent_session_id.map(SessionId::from_uuid),
            depth: name.count("depth", row.depth)?,
            message_count: name.count("message_count", row.message_count)?,
            history_start: name.count("history_start", row.history_start)?,
            root_hash: name.hash("root_hash", &row.root_hash)?,
            segment_hash: name.hash("segment_hash", &row.segment_hash)?,
            position: BranchPosition {
                branch_id: BranchId::from_uuid(row.branch_id),
                position: name.count("position", row.position)?,
            },
            removed_at: row.removed_at.0,
        })
    }
}
