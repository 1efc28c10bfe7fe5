//! Times in rows: `timestamptz` in PostgreSQL, microseconds since 1970 in SQLite.

use chrono::DateTime;
use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgHasArrayType, PgTypeInfo, PgValueRef, Postgres};
use sqlx::sqlite::{Sqlite, SqliteArgumentsBuffer, SqliteTypeInfo, SqliteValueRef};
use sqlx::{Decode, Encode, Type};

use values::clock::Timestamp;

/// The start of PostgreSQL's time scale, 2000-01-01, in microseconds since 1970.
const POSTGRES_EPOCH: i64 = 946_684_800_000_000;

/// A time in a column. Fractions of a microsecond are cut off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredTime(pub(crate) Timestamp);

/// A time outside of the range of `Timestamp`, such as `infinity`.
#[derive(Debug, thiserror::Error)]
#[error("the time is out of range")]
struct TimeOutOfRange;

impl StoredTime {
    fn from_micros(micros: Option<i64>) -> Result<Self, BoxDynError> {
        let time = micros.and_then(DateTime::from_timestamp_micros);
        time.map(Self).ok_or_else(|| TimeOutOfRange.into())
    }
}

impl Type<Postgres> for StoredTime {
    fn type_info() -> PgTypeInfo {
        <Timestamp as Type<Postgres>>::type_info()
    }
}

// Replaces the driver's conversion, which panics on times out of range.
impl Encode<'_, Postgres> for StoredTime {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        let micros = self.0.timestamp_micros().checked_sub(POSTGRES_EPOCH);
        <i64 as Encode<'_, Postgres>>::encode(micros.ok_or(TimeOutOfRange)?, buffer)
    }
}

impl Decode<'_, Postgres> for StoredTime {
    fn decode(value: PgValueRef<'_>) -> Result<Self, BoxDynError> {
        let micros = <i64 as Decode<'_, Postgres>>::decode(value)?;
        Self::from_micros(micros.checked_add(POSTGRES_EPOCH))
    }
}

impl PgHasArrayType for StoredTime {
    fn array_type_info() -> PgTypeInfo {
        <Timestamp as PgHasArrayType>::array_type_info()
    }
}

impl Type<Sqlite> for StoredTime {
    fn type_info() -> SqliteTypeInfo {
        <i64 as Type<Sqlite>>::type_info()
    }

    fn compatible(other: &SqliteTypeInfo) -> bool {
        <i64 as Type<Sqlite>>::compatible(other)
    }
}

impl Encode<'_, Sqlite> for StoredTime {
    fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
        <i64 as Encode<'_, Sqlite>>::encode(self.0.timestamp_micros(), buffer)
    }
}

impl Decode<'_, Sqlite> for StoredTime {
    fn decode(value: SqliteValueRef<'_>) -> Result<Self, BoxDynError> {
        Self::from_micros(Some(<i64 as Decode<'_, Sqlite>>::decode(value)?))
    }
}
