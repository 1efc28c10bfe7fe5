//! The columns of a payload.

use super::{Row, Value, row};
use crate::codec::{Payload, StoredPayload};

/// A payload with its version and encoding: `Vec<u8>`, or `&[u8]` that is borrowed from a row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PayloadRow<B> {
    schema_version: i16,
    encoding: i16,
    payload: B,
}

row!(@engine sqlx::postgres::PgRow, PayloadRow<Vec<u8>>; schema_version encoding payload;);
row!(@engine sqlx::postgres::PgRow, PayloadRow<&'r [u8]>; schema_version encoding payload;);
row!(@engine sqlx::sqlite::SqliteRow, PayloadRow<Vec<u8>>; schema_version encoding payload;);
row!(@engine sqlx::sqlite::SqliteRow, PayloadRow<&'r [u8]>; schema_version encoding payload;);

impl<B> PayloadRow<B> {
    /// Makes the columns of a payload that was read from elsewhere.
    pub(crate) fn new(schema_version: i16, encoding: i16, payload: B) -> Self {
        Self {
            schema_version,
            encoding,
            payload,
        }
    }
}

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

impl Row for Payload {
    fn visit<'v>(&'v self, column: &mut dyn FnMut(&'static str, Value<'v>)) {
        column("schema_version", self.schema_version.into());
        column("encoding", self.encoding.into());
        column("payload", (&self.bytes).into());
    }
}
