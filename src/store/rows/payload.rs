//! The columns of a payload.

use super::from_row;
use crate::store::codec::StoredPayload;

/// A payload with its version and encoding: `Vec<u8>`, or `&[u8]` that is borrowed from a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PayloadRow<B> {
    schema_version: i16,
    encoding: i16,
    payload: B,
}

from_row!(PayloadRow<Vec<u8>> {
    schema_version,
    encoding,
    payload
});

from_row!(PayloadRow<&'r [u8]> {
    schema_version,
    encoding,
    payload
});

impl<B: AsRef<[u8]>> PayloadRow<B> {
    /// Returns the payload as it is stored.
    pub(crate) fn stored(&self) -> StoredPayload<'_> {
        StoredPayload {
            schema_version: self.schema_version,
            encoding: self.encoding,
            bytes: self.payload.as_ref(),
        }
    }
}
