//! Rows of both engines, and their conversion to domain values. An error names the table, the
//! column and the id of the bad row. Contains no SQL.
//!
//! Each column of a table is declared once; see `table.rs`.

mod agent;
mod audit;
mod command;
mod console_session;
mod content;
mod delivery;
mod hashes;
mod key;
mod payload;
mod payload_size;
mod progress;
mod queue;
mod removed;
mod run;
mod segment;
mod session;
mod spend;
mod state;
mod table;
mod thread;
mod time;
mod token_revocation;
mod usage;
mod value;

pub(crate) use self::agent::AgentRow;
pub(crate) use self::audit::{AuditChainRow, AuditEntryRow, AuditHeadRow};
pub(crate) use self::command::{CommandProgressRow, OutputPieceRow, RenewedCommandRow, TakenCommandRow};
pub(crate) use self::console_session::ConsoleSessionRow;
pub(crate) use self::content::{ContentRow, NewContentRow, ObjectRow, RenewedContentRow, is_node};
pub(crate) use self::delivery::{DeliveryRow, DueDeliveryRow, NewDeliveryRow};
pub(crate) use self::hashes::HashList;
pub(crate) use self::key::{KeyRow, scopes_text};
pub(crate) use self::payload::PayloadRow;
pub(crate) use self::payload_size::PayloadSizeRow;
pub(crate) use self::progress::{EventsRow, JournalRow, SteeringRow};
pub(crate) use self::queue::{LeaseKey, LeasedRunRow, QueueRow, RenewedLeaseRow, UnreadableRun};
pub(crate) use self::removed::RemovedSessionRow;
pub(crate) use self::run::{NewRun, RunRecordRow, RunRow, StepsRow, WaitingRunRow, WaitingSizeRow};
pub(crate) use self::segment::{NewSegmentRow, SegmentRow, SegmentSizeRow};
pub(crate) use self::session::{BundleParts, BundleRow, PositionRow, SessionRow, SessionTreeRow, StateRow};
pub(crate) use self::spend::{SettlementRow, SpendNewsRow, SpendRow};
pub(crate) use self::state::NewEnvironment;
pub(crate) use self::table::{Row, column_list, row, table_row, written_row};
pub(crate) use self::thread::ThreadRow;
pub(crate) use self::time::StoredTime;
pub(crate) use self::token_revocation::TokenRevocationRow;
pub(crate) use self::usage::UsageRow;
pub(crate) use self::value::{Value, values};

use std::error::Error as StdError;
use std::str::FromStr;

use serde::de::value::{Error as NameError, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer as _};

use super::codec::DecodeError;
use super::error::StoreError;
use values::session::Hash;

/// Turns a count into a column's value. No count comes near the limit.
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

    /// Returns the error of a column with an invalid value.
    pub(crate) fn corrupt(
        &self,
        column: &'static str,
        source: impl Into<Box<dyn StdError + Send + Sync>>,
    ) -> StoreError {
        StoreError::Corrupt {
            table: self.table,
            column,
            id: self.id.clone(),
            source: source.into(),
        }
    }

    /// Returns the error of a payload that can't be decoded.
    pub(crate) fn undecodable(&self, column: &'static str, error: DecodeError) -> StoreError {
        self.corrupt(error.column(column), error)
    }

    /// Reads a count, which is never negative.
    pub(crate) fn count(&self, column: &'static str, value: i64) -> Result<u64, StoreError> {
        u64::try_from(value).map_err(|error| self.corrupt(column, error))
    }

    /// Reads a count that fits into 32 bits.
    pub(crate) fn small_count(&self, column: &'static str, value: i32) -> Result<u32, StoreError> {
        u32::try_from(value).map_err(|error| self.corrupt(column, error))
    }

    /// Reads a value from its text.
    pub(crate) fn parse<T>(&self, column: &'static str, text: &str) -> Result<T, StoreError>
    where
        T: FromStr<Err: Into<Box<dyn StdError + Send + Sync>>>,
    {
        text.parse().map_err(|error| self.corrupt(column, error))
    }

    /// Reads a value from its name in JSON.
    pub(crate) fn named<T: DeserializeOwned>(&self, column: &'static str, text: &str) -> Result<T, StoreError> {
        let name: StrDeserializer<'_, NameError> = text.into_deserializer();
        T::deserialize(name).map_err(|error| self.corrupt(column, error))
    }

    /// Reads JSON.
    pub(crate) fn json<T: DeserializeOwned>(&self, column: &'static str, text: &str) -> Result<T, StoreError> {
        serde_json::from_str(text).map_err(|error| self.corrupt(column, error))
    }

    /// Reads a hash.
    pub(crate) fn hash(&self, column: &'static str, bytes: &[u8]) -> Result<Hash, StoreError> {
        Hash::try_from(bytes).map_err(|error| self.corrupt(column, error))
    }
}
