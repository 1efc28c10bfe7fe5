//! A list of hashes as one value: an array of `bytea` in PostgreSQL, a JSON array of hexadecimal
//! digits in SQLite.

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgTypeInfo, Postgres};
use sqlx::sqlite::{Sqlite, SqliteArgumentsBuffer, SqliteTypeInfo};
use sqlx::{Encode, Type};

use values::session::Hash;

/// Hashes that a statement selects from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HashList<'v>(pub(crate) &'v [Hash]);

impl Type<Postgres> for HashList<'_> {
    fn type_info() -> PgTypeInfo {
        <Vec<&[u8]> as Type<Postgres>>::type_info()
    }
}

impl Encode<'_, Postgres> for HashList<'_> {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let hashes: Vec<&[u8]> = self.0.iter().map(|hash| hash.as_bytes().as_slice()).collect();
        <Vec<&[u8]> as Encode<'_, Postgres>>::encode(hashes, buffer)
    }
}

impl Type<Sqlite> for HashList<'_> {
    fn type_info() -> SqliteTypeInfo {
        <String as Type<Sqlite>>::type_info()
    }
}

impl Encode<'_, Sqlite> for HashList<'_> {
    fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
        <String as Encode<'_, Sqlite>>::encode(serde_json::to_string(self.0)?, buffer)
    }
}
