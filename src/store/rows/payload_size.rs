//! The size of a stored payload, without reading it: a compressed payload begins with its
//! uncompressed size.

use super::from_row;
use crate::store::codec::full_length;

/// The columns that tell the size of a payload.
#[derive(Debug)]
pub(crate) struct PayloadSizeRow {
    encoding: i16,
    stored_bytes: i64,
    beginning: Vec<u8>,
}

from_row!(PayloadSizeRow {
    encoding,
    stored_bytes,
    beginning,
});

impl PayloadSizeRow {
    /// Returns the bytes of the payload as JSON.
    pub(crate) fn bytes(&self) -> u64 {
        let stored = u64::try_from(self.stored_bytes).unwrap_or_default();
        full_length(self.encoding, &self.beginning, stored)
    }
}
