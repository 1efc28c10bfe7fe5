//! Rows of `history_segments`. The payload is borrowed, since a long history has many rows.

use uuid::Uuid;

use super::{PayloadRow, PayloadSizeRow, RowName, row};
use crate::codec::{DecodeError, HistoryBuilder, StoredSegment};
use crate::error::StoreError;
use crate::sessions::SegmentSize;
use values::ids::BranchId;
use values::session::{BranchPosition, Hash};

row! {
    /// A segment of a history.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct SegmentRow<'r> {
        pub(crate) branch_id: Uuid,
        pub(crate) position: i64,
        pub(crate) first_index: i64,
        message_count: i32,
        ;
        payload: PayloadRow<&'r [u8]>,
    }
}

row! {
    /// The size of a segment.
    #[derive(Debug)]
    pub(crate) struct SegmentSizeRow {
        branch_id: Uuid,
        position: i64,
        first_index: i64,
        message_count: i32,
        /// The number of messages of the session whose segments are listed.
        pub(crate) total: i64,
        ;
        payload: PayloadSizeRow,
    }
}

impl SegmentSizeRow {
    /// Returns the size of the segment.
    pub(crate) fn size(&self) -> Result<SegmentSize, StoreError> {
        let name = RowName::new(
            "history_segments",
            &format_args!("{}/{}", self.branch_id, self.position),
        );
        Ok(SegmentSize {
            position: BranchPosition {
                branch_id: BranchId::from_uuid(self.branch_id),
                position: name.count("position", self.position)?,
            },
            first_index: name.count("first_index", self.first_index)?,
            message_count: name.count("message_count", i64::from(self.message_count))?,
            bytes: self.payload.bytes(),
        })
    }
}

impl SegmentRow<'_> {
    /// Returns the number of messages that the row states.
    pub(crate) fn message_count(&self) -> i64 {
        i64::from(self.message_count)
    }

    /// Decodes the messages into the builder.
    pub(crate) fn push_into(&self, builder: &mut HistoryBuilder) -> Result<(), StoreError> {
        builder.push(self.stored()).map_err(|error| {
            let name = RowName::new(
                "history_segments",
                &format_args!("{}/{}", self.branch_id, self.position),
            );
            name.undecodable("payload", error)
        })
    }

    /// Checks that the messages can be decoded, and hashes them. Also returns the end of the range
    /// that their newest summary covers.
    pub(crate) fn inspect(&self) -> Result<(Hash, Option<u64>), DecodeError> {
        self.stored().inspect()
    }

    fn stored(&self) -> StoredSegment<'_> {
        StoredSegment {
            first_index: self.first_index,
            message_count: self.message_count(),
            payload: self.payload.stored(),
        }
    }
}
