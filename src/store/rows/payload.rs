//! The columns of a payload.

use super::from_row;
use crate::store::codec::StoredPayload;

/// A payload with its version and encoding.
#[derive(Debug)]
pub(super) struct PayloadRow {
    schema_version: i16,
    encoding: i16,
    payload: Vec<u8>,
}

from_row!(PayloadRow {
    schema_version,
    encoding,
    payload
});

impl PayloadRow {
    pub(super) fn stored(&self) -> StoredPayload<'_> {
        StoredPayload {
            schema_version: self.schema_version,
            encoding: self.encoding,
            bytes: &self.payload,
        }
    }
}

/// The same columns, borrowed from a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PayloadColumns<'r> {
    schema_version: i16,
    encoding: i16,
    payload: &'r [u8],
}

from_row!(PayloadColumns<'r> {
    schema_version,
    encoding,
    payload
});

impl<'r> PayloadColumns<'r> {
    /// Returns the payload as it is stored.
    pub(crate) fn stored(&self) -> StoredPayload<'r> {
        StoredPayload {
            schema_version: self.schema_version,
            encoding: self.encoding,
            bytes: self.payload,
        }
    }
}
