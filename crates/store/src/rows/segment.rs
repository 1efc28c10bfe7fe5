//! Rows of `history_segments`. The payload is borrowed, since a long history has many rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use uuid::Uuid;

use super::{PayloadRow, PayloadSizeRow, RowName, row};
use crate::codec::{DecodeError, HistoryBuilder, MessagePart, StoredSegment};
use crate::error::StoreError;
use crate::sessions::SegmentSize;
use values::ids::{BranchId, StepId};
use values::message::Message;
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
    /// The segment that a session added.
    #[derive(Debug)]
    pub(crate) struct NewSegmentRow {
        branch_id: Uuid,
        position: i64,
        message_count: i32,
        ;
        payload: PayloadRow<Vec<u8>>,
    }
}

impl NewSegmentRow {
    /// Returns the bytes of the messages as JSON.
    pub(crate) fn bytes(&self) -> u64 {
        self.payload.stored().length()
    }

    /// Decodes the messages that the steps produced.
    pub(crate) fn messages_of(&self, steps: &BTreeSet<StepId>) -> Result<Vec<Arc<Message>>, StoreError> {
        let segment = StoredSegment {
            first_index: 0,
            message_count: i64::from(self.message_count),
            payload: self.payload.stored(),
        };
        let messages = segment.messages(MessagePart::OfSteps(steps));
        messages.map_err(|error| segment_name(self.branch_id, self.position).undecodable("payload", error))
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
        let name = segment_name(self.branch_id, self.position);
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
        builder
            .push(self.stored())
            .map_err(|error| segment_name(self.branch_id, self.position).undecodable("payload", error))
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

fn segment_name(branch_id: Uuid, position: i64) -> RowName {
    RowName::new("history_segments", &format_args!("{branch_id}/{position}"))
}
