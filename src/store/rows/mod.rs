//! Rows of both engines and their conversion to domain types. An error names table, column and id.
//! No SQL.

mod agent;
mod delivery;
mod key;
mod payload;
mod payload_size;
mod progress;
mod queue;
mod removed;
mod run;
mod segment;
mod session;
mod thread;
mod time;

pub(crate) use self::agent::AgentRow;
pub(crate) use self::delivery::{DeliveryRow, DueDeliveryRow};
pub(crate) use self::key::{KeyRow, scopes_text};
pub(crate) use self::payload::PayloadRow;
pub(crate) use self::payload_size::PayloadSizeRow;
pub(crate) use self::progress::{EventsRow, JournalRow, SteeringRow};
pub(crate) use self::queue::{LeaseKey, LeasedRunRow, RenewedLeaseRow, UnreadableRun};
pub(crate) use self::removed::RemovedSessionRow;
pub(crate) use self::run::{RunRecordRow, RunSummaryRow, StepsRow};
pub(crate) use self::segment::{SegmentRow, SegmentSizeRow};
pub(crate) use self::session::{BundleParts, BundleRow, PlaceRow, SessionRow, StateRow};
pub(crate) use self::thread::{ThreadPlaceRow, ThreadRow};
pub(crate) use self::time::StoredTime;

use super::codec::DecodeError;
use super::error::StoreError;
use crate::session::Hash;

/// Reads the named columns of either engine's row into the fields of the same names. The parts after a `;` read their own columns.
macro_rules! from_row {
    ($name:ty { $($field:ident),* $(,)? $(; $($part:ident),+ $(,)?)? }) => {
        from_row!(@engine sqlx::postgres::PgRow, $name { $($field),*; $($($part),+)? });
        from_row!(@engine sqlx::sqlite::SqliteRow, $name { $($field),*; $($($part),+)? });
    };
    (@engine $row:ty, $name:ty { $($field:ident),*; $($part:ident),* }) => {
        impl<'r> sqlx::FromRow<'r, $row> for $name {
            fn from_row(row: &'r $row) -> Result<Self, sqlx::Error> {
                Ok(Self {
                    $($field: sqlx::Row::try_get(row, stringify!($field))?,)*
                    $($part: sqlx::FromRow::from_row(row)?,)*
                })
            }
        }
    };
}
pub(crate) use from_row;

/// Turns a count into a column's value. Counts never come near the limit; one that did would not be read back.
pub(crate) fn stored_count(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

/// Names a row in errors.
#[derive(Debug, Clone)]
pub(crate) struct RowName {
    table: &'static str,
    id: String,
}

impl RowName {
    /// Names a row by its table and key.
    pub(crate) fn new(table: &'static str, id: &impl std::fmt::Display) -> Self {
        Self {
            table,
            id: id.to_string(),
        }
    }

    /// Makes the error of a column that can't be understood.
    pub(crate) fn corrupt(
        &self,
        column: &'static str,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> StoreError {
        StoreError::Corrupt {
            table: self.table,
            column,
            id: self.id.clone(),
            source: source.into(),
        }
    }

    /// Makes the error of a payload that can't be understood.
    pub(crate) fn undecodable(&self, column: &'static str, error: DecodeError) -> StoreError {
        self.corrupt(error.column(column), error)
    }

    /// Reads a count, which is never negative.
    pub(crate) fn count(&self, column: &'static str, value: i64) -> Result<u64, StoreError> {
        u64::try_from(value).map_err(|error| self.corrupt(column, error))
    }

    /// Reads a hash.
    pub(crate) fn hash(&self, column: &'static str, bytes: &[u8]) -> Result<Hash, StoreError> {
        Hash::try_from(bytes).map_err(|error| self.corrupt(column, error))
    }
}
