//! Rows of `history_segments`; the payload is borrowed, since a long history has many of them.

use uuid::Uuid;

use super::{RowName, from_row};
use crate::session::Hash;
use crate::store::codec::{DecodeError, HistoryBuilder, StoredPayload, StoredSegment, stated_length};
use crate::store::error::StoreError;
use crate::store::traits::SegmentSize;

/// A segment of a history.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentRow<'r> {
    pub(crate) branch_id: Uuid,
    pub(crate) position: i64,
    pub(crate) first_index: i64,
    message_count: i32,
    schema_version: i16,
    encoding: i16,
    payload: &'r [u8],
}

from_row!(SegmentRow<'r> {
    branch_id, position, first_index, message_count, schema_version, encoding, payload,
});

/// How large a segment is.
#[derive(Debug)]
pub(crate) struct SegmentSizeRow {
    first_index: i64,
    message_count: i32,
    encoding: i16,
    stored_bytes: i64,
    beginning: Vec<u8>,
}

from_row!(SegmentSizeRow {
    first_index,
    message_count,
    encoding,
    stored_bytes,
    beginning,
});

impl SegmentSizeRow {
    /// Returns the size of a segment of the session.
    pub(crate) fn size(&self, session: &RowName) -> Result<SegmentSize, StoreError> {
        Ok(SegmentSize {
            first_index: session.count("message_count", self.first_index)?,
            message_count: session.count("message_count", i64::from(self.message_count))?,
            bytes: match stated_length(self.encoding, &self.beginning) {
                Some(bytes) => bytes,
                None => session.count("message_count", self.stored_bytes)?,
            },
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

    /// Checks that the messages can be decoded and hashes them; also returns the end of what their newest summary covers.
    pub(crate) fn inspect(&self, builder: &mut HistoryBuilder) -> Result<(Hash, Option<u64>), DecodeError> {
        builder.inspect(self.stored())
    }

    fn stored(&self) -> StoredSegment<'_> {
        StoredSegment {
            first_index: self.first_index,
            message_count: self.message_count(),
            payload: StoredPayload {
                schema_version: self.schema_version,
                encoding: self.encoding,
                bytes: self.payload,
            },
        }
    }
}
