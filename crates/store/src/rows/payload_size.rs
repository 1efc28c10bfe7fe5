//! The size of a stored payload, without reading the whole payload: a compressed payload starts
//! with its uncompressed size.

use super::row;
use crate::codec::full_length;

row! {
    /// The columns from which the size of a payload is computed.
    #[derive(Debug)]
    pub(crate) struct PayloadSizeRow {
        encoding: i16,
        stored_bytes: i64,
        beginning: Vec<u8>,
    }
}

impl PayloadSizeRow {
    /// Returns the bytes of the payload as JSON.
    pub(crate) fn bytes(&self) -> u64 {
        let stored = u64::try_from(self.stored_bytes).unwrap_or_default();
        full_length(self.encoding, &self.beginning, stored)
    }
}
