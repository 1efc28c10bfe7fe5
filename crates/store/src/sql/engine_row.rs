//! Rows of either engine, and the sums of a removal.

use sqlx::FromRow;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;

use crate::retention::RemovalFigures;

/// The sums of the rows that a statement removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// The number of rows.
    pub(crate) count: i64,
    /// The bytes of their payloads.
    pub(crate) bytes: i64,
}

impl Tally {
    /// Sums rows of a count and bytes.
    pub(crate) fn of(rows: &[EngineRow]) -> Result<Self, sqlx::Error> {
        let mut tally = Self::default();
        for row in rows {
            let (count, bytes): (i64, i64) = row.read()?;
            tally.count += count;
            tally.bytes += bytes;
        }
        Ok(tally)
    }

    /// Adds the bytes to the figures; returns the number of rows.
    pub(crate) fn add_to(&self, figures: &mut RemovalFigures) -> u64 {
        figures.bytes += u64::try_from(self.bytes).unwrap_or(0);
        u64::try_from(self.count).unwrap_or(0)
    }
}

/// A row of either engine.
pub(crate) enum EngineRow {
    Postgres(PgRow),
    Sqlite(SqliteRow),
}

impl EngineRow {
    /// Reads the columns.
    pub(crate) fn read<'r, R>(&'r self) -> Result<R, sqlx::Error>
    where
        R: FromRow<'r, PgRow> + FromRow<'r, SqliteRow>,
    {
        match self {
            Self::Postgres(row) => R::from_row(row),
            Self::Sqlite(row) => R::from_row(row),
        }
    }
}
